"""From the forces of an OpenMM system, as it writes them in XML, to terms."""

from collections.abc import Callable, Sequence
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from equistein.bridges.openmm._terms import (
    AbstractTerm,
    Angles,
    Bonds,
    CustomBorn,
    Exceptions,
    Maps,
    Pairs,
    Torsions,
)

_COULOMB = 138.93545764438198  # kJ nm / mol, of two elementary charges
_NO_CUTOFF, _CUTOFF = "0", "1"
_IGNORED = {"CMMotionRemover"}  # without effect on the density
_BORN_SUM = (
    "select(step(r+sr2-or1), 0.5*(1/L-1/U+0.25*(r-sr2^2/r)*(1/U^2-1/L^2)+0.5*log(L/U)/r"
    "+select(step(sr2-r-or1), 2*(1/or1-1/L), 0)), 0); U=r+sr2; L=max(or1, abs(r-sr2))"
)
_BORN_RADIUS = (
    "1/(1/or-tanh(psi-0.8*psi^2+4.85*psi^3)/radius); psi=I*or; radius=or+0.009"
)

REMEDY = (
    "`es.from_energy_forces` takes the energies of an OpenMM context as they are, see "
    "the guide `force-fields`."
)


def read_terms(force: Element, num_atoms: int) -> Sequence[AbstractTerm]:
    """Return a force as terms."""
    kind = force.get("type", "")
    if kind in _IGNORED:
        return []
    if kind.endswith("Barostat"):
        raise ValueError(
            "it changes the volume, of which the density here knows nothing: leave it "
            "out"
        )
    if kind == "AndersenThermostat":
        raise ValueError(
            "the sampler takes its place, at the temperature `kelvin`: leave it out"
        )
    if kind not in _TRANSLATIONS:
        raise ValueError(f"this kind of force is not translated. {REMEDY}")
    periodic = force.get("usesPeriodic") == "1" or force.get("exceptionsUsePeriodic")
    if periodic in (True, "1"):
        raise ValueError(f"periodic boundaries are not translated. {REMEDY}")
    return _TRANSLATIONS[kind](force, num_atoms)


def _table(force: Element, path: str, *columns: str) -> np.ndarray:
    """Return numbers of the children, one row for each."""
    rows = [
        [float(row.get(name, "nan")) for name in columns]
        for row in force.find(path) or ()
    ]
    return np.array(rows, float).reshape(len(rows), len(columns))


def _bonds(force: Element, num_atoms: int) -> Sequence[AbstractTerm]:
    rows = _table(force, "Bonds", "p1", "p2", "d", "k")
    return [Bonds(rows[:, :2].astype(int), rows[:, 2], rows[:, 3])]


def _angles(force: Element, num_atoms: int) -> Sequence[AbstractTerm]:
    rows = _table(force, "Angles", "p1", "p2", "p3", "a", "k")
    return [Angles(rows[:, :3].astype(int), rows[:, 3], rows[:, 4])]


def _torsions(force: Element, num_atoms: int) -> Sequence[AbstractTerm]:
    """Return k (1 + cos(n phi - delta)) as one Fourier series for each dihedral."""
    columns = ("p1", "p2", "p3", "p4", "periodicity", "phase", "k")
    rows = _table(force, "Torsions", *columns)
    atoms, multiples = rows[:, :4].astype(int), rows[:, 4].astype(int)
    backwards = atoms[:, 0] > atoms[:, 3]  # where the angle is the same
    atoms[backwards] = atoms[backwards, ::-1]
    atoms, which = np.unique(atoms, axis=0, return_inverse=True)
    cosines = np.zeros((len(atoms), int(multiples.max(initial=0)) + 1))
    sines = np.zeros_like(cosines)
    phase, strength = rows[:, 5], rows[:, 6]
    place = which.ravel(), multiples
    np.add.at(cosines, place, strength * np.cos(phase))
    np.add.at(sines, place, strength * np.sin(phase))
    np.add.at(cosines[:, 0], place[0], strength)
    return [Torsions(atoms, cosines, sines)]


def _maps(force: Element, num_atoms: int) -> Sequence[AbstractTerm]:
    patches = []
    for each in force.find("Maps") or ():
        size = int(each.get("size", 0))
        values = np.array([float(row.get("e", "nan")) for row in each])
        patches.append(_patches(values.reshape(size, size).T))  # phi varies fastest
    columns = [f"{angle}{i}" for angle in "ab" for i in range(1, 5)]
    rows = _table(force, "Torsions", *columns, "map").astype(int)
    terms: list[AbstractTerm] = []
    for size in sorted({len(each) for each in patches}):
        like = [i for i, each in enumerate(patches) if len(each) == size]
        own = rows[np.isin(rows[:, 8], like)]
        used, which = np.unique(own[:, 8], return_inverse=True)
        if len(own):
            stacked = np.stack([patches[i] for i in used])
            terms.append(Maps(own[:, :4], own[:, 4:8], which.ravel(), stacked))
    return terms


def _patches(values: np.ndarray) -> np.ndarray:
    """Return the coefficients of the bicubic spline in each cell of a periodic grid."""
    from scipy.interpolate import CubicSpline  # slow to import

    knots, closed = np.arange(len(values) + 1), np.pad(values, (0, 1), mode="wrap")
    along_phi = CubicSpline(knots, closed, 0, "periodic").c[::-1]  # (power, phi, psi)
    along_psi = CubicSpline(knots, along_phi, 2, "periodic").c[::-1]
    return along_psi.transpose(3, 1, 2, 0)


def _cutoff(force: Element) -> float | None:
    method = force.get("method")
    if method not in (_NO_CUTOFF, _CUTOFF):
        raise ValueError(
            "a periodic cell (CutoffPeriodic, Ewald, PME, LJPME) is not translated: "
            "create the system with `nonbondedMethod=NoCutoff` or `CutoffNonPeriodic`. "
            f"{REMEDY}"
        )
    return float(force.get("cutoff", "nan")) if method == _CUTOFF else None


def _nonbonded(force: Element, num_atoms: int) -> Sequence[AbstractTerm]:
    cutoff = _cutoff(force)
    if force.get("includeDirectSpace") == "0":
        raise ValueError(f"a force without direct space is not translated. {REMEDY}")
    for name in ("ParticleOffsets", "ExceptionOffsets"):
        if len(force.find(name) or ()):
            raise ValueError(f"parameter offsets are not translated. {REMEDY}")
    charge, sigma, epsilon = _table(force, "Particles", "q", "sig", "eps").T
    pair_charges = _COULOMB * np.outer(charge, charge)
    pair_sigma = (sigma[:, None] + sigma[None, :]) / 2
    pair_epsilon = np.sqrt(np.outer(epsilon, epsilon))
    rows = _table(force, "Exceptions", "p1", "p2", "q", "sig", "eps")
    atoms, values = rows[:, :2].astype(int), rows[:, 2:] * [_COULOMB, 1, 1]
    arrays = (pair_charges, pair_sigma, pair_epsilon)
    for array, own in zip(arrays, values.T, strict=True):
        # Without a cut-off exceptions are pairs like the others.
        np.fill_diagonal(array, 0.0)
        array[atoms[:, 0], atoms[:, 1]] = own if cutoff is None else 0.0
        array[atoms[:, 1], atoms[:, 0]] = own if cutoff is None else 0.0
    pair_sigma[pair_epsilon == 0] = 0.0  # 0 times infinity is no energy
    if cutoff is None:
        return [Pairs(pair_charges, pair_sigma, pair_epsilon)]
    dielectric = float(force.get("rfDielectric", "nan"))
    slope = (dielectric - 1) / (2 * dielectric + 1) / cutoff**3
    constant = 3 * dielectric / (2 * dielectric + 1) / cutoff
    switches = force.get("useSwitchingFunction") == "1"
    switch = float(force.get("switchingDistance", "nan")) if switches else None
    real = (values[:, [0, 2]] != 0).any(axis=1)
    field = (slope, constant)
    return [
        Pairs(pair_charges, pair_sigma, pair_epsilon, cutoff, field, switch),
        Exceptions(atoms[real], values[real, 0], values[real, 1], values[real, 2]),
    ]


def _born(force: Element, num_atoms: int) -> Sequence[AbstractTerm]:
    """Return GBSAOBCForce, the model OBC2, by the expressions of its custom form."""
    cutoff = _cutoff(force)
    charge, radius, scale = _table(force, "Particles", "q", "r", "scale").T
    offset = radius - 0.009
    solute, solvent, surface = (
        float(force.get(name, "nan"))
        for name in ("soluteDielectric", "solventDielectric", "surfaceAreaEnergy")
    )
    strength = -_COULOMB * (1 / solute - 1 / solvent)
    shift = "" if cutoff is None else f"-{1 / cutoff!r}"
    pair = (
        f"{strength!r}*charge1*charge2*(1/sqrt(r^2+b*exp(-r^2/(4*b))){shift}); b=B1*B2"
    )
    area = f"{4 * np.pi * surface!r}*(radius+0.14)^2*(radius/B)^6; radius=or+0.009"
    return [
        CustomBorn(
            {"charge": charge, "or": offset, "sr": scale * offset}, {},
            np.zeros((0, 0)), (("I", _BORN_SUM, 2), ("B", _BORN_RADIUS, 0)),
            ((f"0.5*{strength!r}*charge^2/B", 0), (area, 0), (pair, 2)), (), cutoff,
        )
    ]  # fmt: skip


def _custom_born(force: Element, num_atoms: int) -> Sequence[AbstractTerm]:
    names = [
        str(each.get("name")) for each in force.find("PerParticleParameters") or ()
    ]
    columns = [f"param{i + 1}" for i in range(len(names))]
    parameters = _table(force, "Particles", *columns).T
    tables = {}
    for each in force.find("Functions") or ():
        if each.get("type") != "Discrete2DFunction":
            raise ValueError(f"a {each.get('type')} is not translated. {REMEDY}")
        values = np.array(
            [float(row.get("v", "nan")) for row in each.find("Values") or ()]
        )
        shape = int(each.get("ysize", 0)), int(each.get("xsize", 0))
        tables[str(each.get("name"))] = values.reshape(shape).T  # x varies fastest
    texts: Any = lambda path, *keys: tuple(
        (*(str(each.get(key)) for key in keys), int(each.get("type", 0)))
        for each in force.find(path) or ()
    )
    excluded = _table(force, "Exclusions", "p1", "p2").astype(int)
    pairs = np.ones((num_atoms, num_atoms))
    pairs[excluded[:, 0], excluded[:, 1]] = pairs[excluded[:, 1], excluded[:, 0]] = 0
    constants = tuple(
        (str(each.get("name")), float(each.get("default", "nan")))
        for each in force.find("GlobalParameters") or ()
    )
    return [
        CustomBorn(
            dict(zip(names, parameters, strict=True)), tables, pairs,
            texts("ComputedValues", "name", "expression"),
            texts("EnergyTerms", "expression"), constants, _cutoff(force),
        )
    ]  # fmt: skip


_TRANSLATIONS: dict[str, Callable[[Element, int], Sequence[AbstractTerm]]] = {
    "HarmonicBondForce": _bonds,
    "HarmonicAngleForce": _angles,
    "PeriodicTorsionForce": _torsions,
    "CMAPTorsionForce": _maps,
    "NonbondedForce": _nonbonded,
    "GBSAOBCForce": _born,
    "CustomGBForce": _custom_born,
}
