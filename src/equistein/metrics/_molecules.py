"""How good molecules are: bonds by a table of lengths, RDKit's graphs; forces."""

import re
from collections.abc import Collection, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from equistein._check_arguments import check_arguments
from equistein.data import COVALENT, Dataset
from equistein.energies import AbstractEnergy, values_at
from equistein.molecules import (
    BOLTZMANN,
    geometry,
    hands,
    has_rdkit,
    main_hand,
    perceive,
    Perceived,
    VALENCES,
    valences_of,
)

# Lengths in picometers below which there is a bond of order 1, 2 and 3.
_SINGLE = {
    "HH": 84, "CH": 119, "HN": 111, "HO": 106, "FH": 102, "CC": 164, "CN": 157,
    "CO": 153, "CF": 145, "NN": 155, "NO": 150, "FN": 146, "OO": 158, "FO": 152,
    "FF": 152,
}  # fmt: skip
_DOUBLE = {"CC": 139, "CN": 134, "CO": 125, "NN": 130, "NO": 126, "OO": 126}
_TRIPLE = {"CC": 123, "CN": 119, "CO": 116, "NN": 113}
_MEASURES = (("bond", "Å", 4), ("angle", "degrees", 3))  # with how many kinds
_STRETCHED = 1.25  # covalent radii that a bond spans, where molecules vibrate
_STRAIGHT = -0.95  # the mean cosine of an angle
_AT_ONCE = 100  # molecules
_MAX_FRAMES = 5_000  # of each part, whose energies are compared


@check_arguments
def bond_orders(
    symbols: Sequence[str], positions: Float[np.ndarray, "*molecule atom 3"]
) -> np.ndarray:
    """Return the order of the bond of each pair of atoms, from its length alone.

    Of H, C, N, O and F, in Angstrom.

    References:
        Hoogeboom et al. (2022), Equivariant diffusion for molecule generation in 3D,
        appendix C: typical lengths, with margins of 10, 5 and 3 pm.
    """
    valences_of(symbols)  # raises where the table knows no lengths either
    lengths = 100 * np.linalg.norm(
        positions[..., :, None, :] - positions[..., None, :, :], axis=-1
    )
    orders = np.zeros(lengths.shape, int)
    for table in (_SINGLE, _DOUBLE, _TRIPLE):
        limits = np.array(
            [[table.get("".join(sorted(a + b)), 0) for b in symbols] for a in symbols]
        )
        orders += lengths < limits
    orders[..., np.arange(len(symbols)), np.arange(len(symbols))] = 0
    return orders


@check_arguments
def score_molecules(
    symbols: Sequence[str],
    positions: np.ndarray,
    known: Collection[str] = (),
    perceived: Sequence[Perceived] | None = None,
    charge: int = 0,
) -> dict[str, float]:
    """Return the scores of molecules of one formula and charge, in Angstrom.

    `known` are the SMILES of known graphs, and `perceived` the results of `perceive`,
    if these are known already.

    Returns:
        Of H, C, N, O and F alone `atom_stability`, the fraction of atoms whose bonds,
        by a table of lengths, sum to their valence, and `molecule_stability`, that of
        molecules whose atoms all do. With RDKit `validity`, the fraction that it
        accepts as one molecule; `uniqueness`, distinct graphs over valid molecules;
        `num_isomers`, the number of distinct graphs; `num_novel`, that of
        those not known; and `coverage`, the fraction of the known graphs among them.
    """
    positions, scores = np.asarray(positions, np.float64), {}
    if not len(positions):
        raise ValueError("`score_molecules` needs `positions` of at least one.")
    if set(symbols) <= set(VALENCES):
        stable = bond_orders(symbols, positions).sum(axis=-1) == valences_of(symbols)
        scores["atom_stability"] = float(stable.mean())
        scores["molecule_stability"] = float(stable.all(axis=1).mean())
    if not has_rdkit():
        return scores
    if perceived is None:
        perceived = [perceive(symbols, molecule, charge) for molecule in positions]
    valid = [p.smiles for p in perceived if p.smiles is not None]
    graphs, known = set(valid), set(known)
    return scores | {
        "validity": len(valid) / len(positions),
        "uniqueness": len(graphs) / len(valid) if valid else float("nan"),
        "num_isomers": float(len(graphs)),
        "num_novel": float(len(graphs - known)),
        "coverage": len(graphs & known) / len(known) if known else float("nan"),
    }


@check_arguments
def compare_molecules(
    symbols: Sequence[str], data: np.ndarray, samples: np.ndarray, charge: int = 0
) -> tuple[dict[str, float], dict[str, float], dict[str, Any]]:
    """Judge new molecules beside the data, by scores, bonds, angles and hands.

    Returns:
        The numbers of the new ones, those of the data (of bonds, angles and the main
        hand), and what a figure shows; without RDKit only scores of the new ones.
    """
    if not has_rdkit():
        return score_molecules(symbols, samples), {}, {}
    of_data, of_samples = (
        [perceive(symbols, np.asarray(each, np.float64), charge) for each in positions]
        for positions in (data, samples)
    )
    known = {seen.smiles for seen in of_data if seen.smiles is not None}
    numbers = score_molecules(symbols, samples, known, of_samples)
    theirs, mine = (
        geometry([seen.mol for seen in each if seen.mol is not None])
        for each in (of_data, of_samples)
    )
    floor, panels = {}, {}
    for kind, unit, most in _MEASURES:
        for name, values in list(getattr(theirs, f"{kind}s").items())[:most]:
            others = getattr(mine, f"{kind}s").get(name, np.full(1, np.nan))
            title = f"{kind} {'–'.join(re.findall('[A-Z][^A-Z]*', name))} / {unit}"
            panels[title] = {"data": values, "samples": others[np.isfinite(others)]}
            for found, some in ((floor, values), (numbers, others)):
                found[f"{kind}_{name}"] = float(some.mean())
                found[f"{kind}_{name}_width"] = float(some.std())
    if hand := main_hand(symbols, data):
        signs = hands(symbols, samples, hand[0])
        numbers["same_hand"] = np.sum(signs == 1) / max(1, np.sum(signs != 0))
        numbers["other_stereo_centers"] = np.mean(signs == 0)
        floor["same_hand"] = hand[1]
    return numbers, floor, panels


@check_arguments
def force_errors(energy: AbstractEnergy, dataset: Dataset) -> dict[str, float]:
    """Return mean absolute errors of held-out frames; none without a temperature.

    Of a component of the forces in eV / Angstrom, beside what zero forces would have,
    and of the energies in meV an atom, without the mean gap of training frames. The
    learned energy is in kT.
    """
    if dataset.kelvin is None:
        return {}
    unit, found = BOLTZMANN * dataset.kelvin, {}
    train, held_out = dataset.train(), dataset.held_out()
    forces = held_out.forces
    if forces is not None and (known := np.isfinite(forces).all(axis=(1, 2))).any():
        learned = values_at(jax.grad(energy.log_density), held_out.points[known])
        force_gaps = unit * np.asarray(learned) - forces[known]
        found["held_out_force_error"] = float(np.abs(force_gaps).mean())
        found["held_out_force_error_of_zero"] = float(np.abs(forces[known]).mean())
    energy_gaps = []
    for part in (train, held_out):
        if part.energies is not None and np.isfinite(part.energies).any():
            rows = np.flatnonzero(np.isfinite(part.energies))[:_MAX_FRAMES]
            learned = np.asarray(values_at(energy, part.points[rows]))
            energy_gaps.append(unit * learned - part.energies[rows])
    if len(energy_gaps) == 2:
        training, others = energy_gaps
        error = np.abs(others - training.mean()).mean() / dataset.points.shape[1]
        found["held_out_energy_error"] = 1_000 * float(error)
    return found


@check_arguments
def shared_bonds(data: Dataset) -> list[tuple[int, int]]:
    """Return the bonds by covalent radii, none unless all molecules have the same.

    Nor if RDKit is not installed, there is a metal or a noble gas, an atom has no
    bond or more than four, or an angle is straight: no torsion about it is defined.
    """
    if not has_rdkit() or not set(data.species or "?") <= COVALENT:
        return []
    from rdkit.Chem import GetPeriodicTable

    radius, points = GetPeriodicTable().GetRcovalent, np.asarray(data.points)
    radii = np.array([radius(symbol) for symbol in data.species or ()])
    reach = _STRETCHED * (radii[:, None] + radii)
    np.fill_diagonal(reach, 0)
    gaps = lambda part: np.linalg.norm(part[:, :, None] - part[:, None], axis=-1)
    bonded = (gaps(points[:1]) < reach)[0]
    parts = np.array_split(points, -(-len(points) // _AT_ONCE))
    if not all(((gaps(part) < reach) == bonded).all() for part in parts):
        return []
    if not 1 <= bonded.sum(axis=1).min() <= bonded.sum(axis=1).max() <= 4:
        return []
    for atom, near in enumerate(bonded):
        ends = parts[0][:, near] - parts[0][:, [atom]]
        ends = ends / np.linalg.norm(ends, axis=-1, keepdims=True)
        if np.mean(ends @ ends.swapaxes(1, 2), axis=0).min() < _STRAIGHT:
            return []
    return [(i, j) for i, j in np.argwhere(np.triu(bonded)).tolist()]
