"""What `molecules` measures of a set of molecules."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from equistein.experiments.molecules._data import Reference
from equistein.molecules import (
    angles,
    distances,
    from_bonds,
    graph_smiles,
    infer_bonds,
    perceive,
    Perceived,
    relax,
    score_molecules,
)

PAIRS = (("C", "C"), ("C", "O"))
TRIPLES = (("C", "C", "C"), ("C", "C", "O"))


def measure(
    reference: Reference, symbols: Sequence[str], positions: np.ndarray
) -> dict:
    """Return the scores of molecules, one number each.

    Args:
        reference: What to compare with.
        symbols: The element of each atom; they may be in another order.
        positions: Where the atoms are, `(molecule, atom, 3)`, in Angstrom.
    """
    positions = np.asarray(positions, np.float64)
    perceived = [perceive(symbols, molecule) for molecule in positions]
    scores = dataclasses.asdict(
        score_molecules(symbols, positions, reference.graphs, perceived=perceived)
    )
    del scores["num_molecules"]
    found = {p.smiles for p in perceived if p.smiles is not None}
    scores["num_held_out"] = len(found & reference.other_graphs)
    scores |= distribution_gaps(reference, symbols, positions)
    moved = [relax(p.mol)[1] for p in perceived if p.mol is not None]
    moved = [number for number in moved if np.isfinite(number)]
    scores["median_relaxation"] = float(np.median(moved)) if moved else float("nan")
    same = inferred_alike(symbols, positions, perceived)
    scores["inferred_alike"] = float(np.mean(same)) if same else float("nan")
    return scores


def distribution_gaps(
    reference: Reference, symbols: Sequence[str], positions: np.ndarray
) -> dict[str, float]:
    """Return Wasserstein-1 distances of the distributions of distances and angles."""
    everything = reference.everything
    numbers = {}
    for pair in PAIRS:
        mine = distances(symbols, positions, *pair)
        theirs = distances(reference.symbols, everything, *pair)
        numbers[f"w1_{'_'.join(pair)}".lower()] = _gap(mine, theirs)
    for triple in TRIPLES:
        mine = angles(symbols, positions, *triple)
        theirs = angles(reference.symbols, everything, *triple)
        numbers[f"w1_angle_{'_'.join(triple)}".lower()] = _gap(mine, theirs)
    return numbers


def inferred_alike(
    symbols: Sequence[str], positions: np.ndarray, perceived: Sequence[Perceived]
) -> list[bool]:
    """Return whether the paper's bonds give RDKit's graph, for each valid molecule."""
    same = []
    for molecule, seen in zip(positions, perceived, strict=True):
        if seen.smiles is not None:
            orders = infer_bonds(symbols, molecule - molecule.mean(axis=0))
            try:
                same.append(smiles_of(symbols, orders) == seen.smiles)
            except ValueError:
                same.append(False)
    return same


def smiles_of(symbols: Sequence[str], orders: np.ndarray) -> str:
    """Return the canonical SMILES of a graph."""
    return graph_smiles(from_bonds(symbols, orders))


def _gap(mine: np.ndarray, theirs: np.ndarray) -> float:
    """Return the Wasserstein-1 distance of two samples, by 1 000 of their quantiles."""
    if not len(mine) or not len(theirs):
        return float("nan")
    levels = (np.arange(1_000) + 0.5) / 1_000
    gaps = np.quantile(mine, levels) - np.quantile(theirs, levels)
    return float(np.mean(np.abs(gaps)))
