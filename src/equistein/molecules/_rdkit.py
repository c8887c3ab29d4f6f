"""Molecules of RDKit: bonds from positions, SMILES, lengths and angles."""

import collections
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from equistein._check_arguments import check_arguments
from equistein._extras import require
from equistein.molecules._elements import atomic_numbers_of
from equistein.molecules._frames import Molecule

_REACH = 1.15  # of the sum of two covalent radii, up to which there is a bond
_STRETCHED = 1.25  # the same where molecules vibrate
_MAX_ITERATIONS = 20_000  # of the search for bond orders, which can take for ever
_MAX_FORMS = 50  # resonance structures
_MOST_MATCHES = 1_000_000
_CHARGED = (  # groups of stable molecules, each with all of its charged atoms
    "[N+X3](=*)[O-X1]", "[n+][O-X1]", "[N+X4H0][O-X1]", "[N+X2](#*)[O-X1]",  # N-oxides
    "[C-X1]#[N+,O+]", "[#7-,#7-2]~[N+X2]#N", "[N-X1]=[N+X2]=*", "N#[N+X2][#6-]",
    "N#[N+X2]C=C[O-X1]", "N#[N+X2]c~c[O-X1]", "[n+][N-]",  # isonitriles, diazo
    "[S+,Se+,Te+;X3][O-X1]", "[S+X3]C=C[O-X1]", "[S+X2](=O)[O-X1]", "[P+X4][O-X1]",
    "[O-X1][O+]=O", "[Cl,Br,I;+,+2,+3][O-X1]", "[N+X4][B-X4]", "[n,o,s;+]",
    "[O-,S-,N-]~a", "[N+X4]", "[N+X3]=C[N,n]", "[S+X3]", "[P+X4]",
    "[O-,S-]*=[O,S]",
)  # fmt: skip


@check_arguments
def has_rdkit() -> bool:
    """Whether RDKit is installed."""
    return importlib.util.find_spec("rdkit") is not None


def rdkit() -> Any:
    """Return `rdkit.Chem`, with its log silenced."""
    require("rdkit", "RDKit", "molecules")
    from rdkit import Chem, rdBase
    from rdkit.Chem import Draw, rdDetermineBonds  # noqa: F401

    rdBase.DisableLog("rdApp.*")
    return Chem


class Perceived(NamedTuple):
    """A molecule of RDKit, or fragments, and its SMILES, or why it is not valid."""

    smiles: str | None
    problem: str | None
    mol: Any = None


@check_arguments
def perceive(
    symbols: Sequence[str], positions: np.ndarray, charge: int = 0
) -> Perceived:
    """Return the molecule of positions in Angstrom, `(atom, 3)`, by RDKit if valid.

    Valid is one connected molecule of all the atoms, without radicals or hydrogens to
    add. Formal charges are those of stable groups, such as nitro, and of zwitterions;
    an ion has others too, as many as its charge. Bonds are pairs closer than 1.15
    covalent radii, since RDKit's default refuses 5 of QM9's 48 isomers of C5H8O. (The
    bonds of H2 and F2 are longer, and not recognized.)
    """
    chem = rdkit()
    atomic_numbers_of(symbols)
    if not len(symbols) or not np.isfinite(positions).all():
        return Perceived(None, "no atoms, or positions are not finite")
    try:
        mol = connected(symbols, positions, _REACH)
    except (ValueError, RuntimeError):  # RDKit's exceptions, also of C++
        return Perceived(None, "no bond orders fit")
    if len(chem.GetMolFrags(mol)) > 1:
        return Perceived(None, "several fragments", mol)
    problem, candidates = "no bond orders fit", []
    # In some orders of the atoms RDKit misses charges, as in NO2.
    numbers = [atom.GetAtomicNum() for atom in mol.GetAtoms()]
    given = list(range(len(numbers)))
    heavy_last = sorted(given, key=lambda index: numbers[index])
    others = [heavy_last, heavy_last[::-1], given[::2] + given[1::2]]
    for order in [given, *(others if {7, 16}.intersection(numbers) else [])]:
        ordered = chem.RenumberAtoms(mol, order)
        try:
            chem.rdDetermineBonds.DetermineBondOrders(
                ordered, charge=charge, embedChiral=False, maxIterations=_MAX_ITERATIONS
            )
            chem.SanitizeMol(ordered)
        except (ValueError, RuntimeError):
            continue
        found = chem.RenumberAtoms(ordered, np.argsort(order).tolist())
        problem = _problem(found, charge)
        candidates.append(found)
        if problem is None:
            break
    if problem == "charges":  # another resonance structure may be the usual one
        flags = chem.ResonanceFlags.ALLOW_CHARGE_SEPARATION
        candidates = list(chem.ResonanceMolSupplier(candidates[0], flags, _MAX_FORMS))
    for found in reversed(candidates):
        if found is not None and _problem(found, charge) is None:
            return Perceived(graph_smiles(found), None, found)
    return Perceived(None, problem)


def _problem(mol: Any, charge: int) -> str | None:
    """Return why a molecule with bonds of these orders is not valid, or None."""
    chem, left = rdkit(), {}
    for atom in mol.GetAtoms():
        if atom.GetNumRadicalElectrons() or atom.GetNumImplicitHs():
            return "radicals"
        if atom.GetFormalCharge():
            left[atom.GetIdx()] = atom.GetFormalCharge()
    for group in map(chem.MolFromSmarts, _CHARGED) if left else ():
        for match in mol.GetSubstructMatches(group):
            for index in match:
                left.pop(index, None)
    is_ion = len(left) <= abs(charge) and all(q * charge > 0 for q in left.values())
    return None if is_ion else "charges"


@check_arguments
def bonds_of(mol: Any) -> np.ndarray:
    """Return the orders of bonds, `(atom, atom)`; of aromatic ones 1 and 2 in turn."""
    chem = rdkit()
    plain = chem.Mol(mol)
    chem.Kekulize(plain, clearAromaticFlags=True)
    return chem.GetAdjacencyMatrix(plain, useBO=True).astype(int)


@check_arguments
def order_by_bonds(
    molecule: Molecule, symbols: Sequence[str], bonds: Sequence[tuple[int, int]]
) -> list[int]:
    """Return which atom takes each place of a molecule with bonds, or nothing."""
    found = connected(molecule.symbols, molecule.positions, _STRETCHED)
    wanted = without_bonds(symbols)
    for i, j in bonds:
        wanted.AddBond(i, j, rdkit().BondType.SINGLE)
    return list(found.GetSubstructMatch(wanted))


def connected(symbols: Sequence[str], positions: np.ndarray, reach: float) -> Any:
    """Return the RDKit molecule with single bonds up to a factor of covalent radii."""
    mol, conformer = without_bonds(symbols), rdkit().Conformer(len(symbols))
    conformer.SetPositions(np.ascontiguousarray(positions, np.float64))
    mol.AddConformer(conformer)
    determine = rdkit().rdDetermineBonds.DetermineConnectivity
    determine(mol, useVdw=True, covFactor=reach)
    return mol


def without_bonds(symbols: Sequence[str]) -> Any:
    """Return the RDKit molecule of atoms that are not bonded."""
    chem, smiles = rdkit(), ".".join(f"[{symbol}]" for symbol in symbols)
    return chem.RWMol(chem.MolFromSmiles(smiles, sanitize=False))


@check_arguments
def graph_smiles(mol: Any) -> str:
    """Return the canonical SMILES of a molecule, without stereochemistry."""
    chem = rdkit()
    text = chem.MolToSmiles(chem.RemoveHs(mol), isomericSmiles=False)
    # Through the text, without what perception left on the atoms.
    return chem.MolToSmiles(chem.MolFromSmiles(text))


class Geometry(NamedTuple):
    """Lengths of bonds, such as CO, in Angstrom, and angles, such as CCO, in degrees.

    The most frequent come first; angles are between bonds to other than hydrogen.
    """

    bonds: Mapping[str, np.ndarray]
    angles: Mapping[str, np.ndarray]


@check_arguments
def geometry(mols: Sequence[Any]) -> Geometry:
    """Return bonds and angles of RDKit molecules, as of `perceive`."""
    pair, triple = map(rdkit().MolFromSmarts, ("*~*", "[!#1]~*~[!#1]"))
    from rdkit.Chem.rdMolTransforms import GetAngleDeg, GetBondLength

    bonds: dict[str, list[float]] = collections.defaultdict(list)
    angles: dict[str, list[float]] = collections.defaultdict(list)
    for mol in mols:
        names, shape = [atom.GetSymbol() for atom in mol.GetAtoms()], mol.GetConformer()
        for ends in mol.GetSubstructMatches(pair, maxMatches=_MOST_MATCHES):
            name = "".join(sorted(names[end] for end in ends))
            bonds[name].append(GetBondLength(shape, *ends))
        # Of a ring of three atoms all angles count, so each is found twice.
        both = mol.GetSubstructMatches(triple, uniquify=False, maxMatches=_MOST_MATCHES)
        for first, at, last in both:
            if first < last:
                ends = sorted((names[first], names[last]))
                angle = GetAngleDeg(shape, first, at, last)
                angles[ends[0] + names[at] + ends[1]].append(angle)
    rank = lambda item: (-len(item[1]), item[0])
    ordered = lambda lists: {k: np.array(v) for k, v in sorted(lists.items(), key=rank)}
    return Geometry(ordered(bonds), ordered(angles))
