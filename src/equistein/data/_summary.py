"""What data hold, what is off in them, the likely cause and the remedy."""

import math
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Real
from scipy.spatial.distance import cdist

from equistein._check_arguments import check_arguments
from equistein.groups import AbstractGroup
from equistein.molecules import (
    atomic_numbers_of,
    check_thermal,
    formula,
    hands,
    has_rdkit,
    main_hand,
    perceive,
    Perceived,
    stereo_smiles,
    unit_value,
)

_NUMBERS = 2e7  # of the first rows, that are looked at
_SHOWN = 200  # molecules, evenly spaced, whose bonds RDKit finds
_LARGEST = 200  # atoms of these
_APART = 2.5  # Angstrom, more than hot bonds have
_BONDED = 1.3  # factor between distances of bonded atoms and sums of covalent radii
_CONSTRAINED = 7e-4  # Angstrom, by which rounding changes the lengths of bonds
_NOBLE = ("He", "Ne", "Ar", "Kr", "Xe", "Rn")
_SECOND = 0.1  # of the molecules, that have other stereo centers than most
_SAME_SCALE = 1e3  # by which the widths of columns may differ
_DEPENDENT = 1e-3, 0.02  # of a width: left by a sum of others, and if it is rounded
_MOST_COLUMNS = 200
_FEW_VALUES = 12  # of a column, that is not continuous
_NUMBER = r"(.*[\W_])?(id|nr|no|subject|patient|plot|batch|chain|draw|run|year)"
_TIME = r"t|(.*[\W_])?time(stamp)?([\W_].*)?|date|epoch"
_STATISTIC = (
    r".*__|(minus|neg)?(log|ln)_?(prob|lik|post)\w*|log(l|wt)|ln_?[lp]|deviance"
)
_STATISTIC += "|chi2|chisq|weights|(sample|case|importance|survey)_?weights?"
_CODES = [sign * (10**n - 1) for n in range(2, 7) for sign in (-1, 1)]  # for missing
_DATE = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])[0-3]\d\.0").fullmatch  # rounded
_PERIODS = (0.03, 10)  # that points span at least and at most
_FULL_TURNS = (0, 360), (-180, 360), (0, 2 * math.pi), (-math.pi, 2 * math.pi)
_EDGE, _AT_EDGE = 0.05, 0.02  # of a turn, and of the rows that are there at least
_GAP = 5  # turns, over the number of rows, that the ends leave
COVALENT = frozenset("H B C N O F Si P S Cl Se Br I".split())  # as RDKit bonds
_BONDS = (0.6, 3)  # of covalent radii, where no bond is shorter, and none near


class DataWarning(UserWarning):
    """Something is off in data, with the likely cause and the remedy."""


class DataSummary(eqx.Module):
    """A line for each thing `describe` looked at, those that are off, and numbers."""

    lines: tuple[str, ...]
    warnings: tuple[str, ...]
    numbers: dict[str, float]

    def __str__(self) -> str:
        """Return the lines, those that are off with a mark."""
        mark = lambda line: "warning: " if line in self.warnings else ""
        return "\n".join(f"{mark(line)}{line}" for line in self.lines)


class _Lines:
    """Lines, warnings and numbers of a summary that is being made."""

    def __init__(self, notes: Sequence[str]):
        self.lines, self.warnings = list(notes), []
        self.numbers: dict[str, float] = {}

    def add(self, text: str, cause: str = "", **numbers: Any) -> None:
        self.lines.append(f"{text}: {cause}." if cause else f"{text}.")
        self.warnings += self.lines[-1:] if cause else []
        self.numbers |= {name: float(value) for name, value in numbers.items()}


@check_arguments
def describe(
    data: Real[Any, "point *shape"],
    *,
    group: AbstractGroup | None = None,
    species: Sequence[str] | None = None,
    energies: Real[Any, " point"] | None = None,
    forces: Real[Any, "point *shape"] | None = None,
    kelvin: float | None = None,
    charge: int = 0,
    columns: Sequence[str] | None = None,
    notes: Sequence[str] = (),
) -> DataSummary:
    """Look for what is wrong in data: a `DataWarning` each, with cause and remedy.

    Args:
        data: The points, stacked on axis 0, in the order of their file.
        group: The symmetry that is to be learned.
        species: Of molecules in Angstrom, `(frame, atom, 3)`, the elements.
        energies: Of each frame in eV, NaN where unknown.
        forces: On each atom in eV / Angstrom, NaN where unknown.
        kelvin: The temperature of the frames.
        charge: Of each molecule, in units of e.
        columns: What the columns of a table are called.
        notes: More lines, such as what a reader left out.
    """
    most = max(2, int(_NUMBERS / max(1, math.prod(np.shape(data)[1:]))))
    points, found = np.asarray(data[:most]), _Lines(notes)
    if points.ndim < 2 or len(points) < 2 or not np.isfinite(points).all():
        raise ValueError(
            f"`data` must be two finite points or more, but has shape {points.shape}."
        )
    for name, given, num in (
        ("species", species, points.shape[-2]), ("columns", columns, points[0].size),
    ):  # fmt: skip
        if given is not None and len(given) != num:
            raise ValueError(f"`{name}` must be {num}, as in `data`, not {len(given)}.")
    atomic_numbers_of(species or ())
    is_cloud = bool(species or getattr(group, "species", ()))
    _add_rows(found, points, len(data), is_cloud)
    axes = [re.split(r"[\[(]", name)[0].lower() for name in columns or ()]
    axes = ["".join(re.findall("(?<![a-z])[xyz](?![a-z])", name)) for name in axes]
    num = points.shape[-1]  # of axes, in the order x1, y1, x2, y2
    is_cut = len({*axes[:num]}) < num or axes != axes[:num] * points.shape[1]
    if is_cloud and is_cut and sum(map({*"xyz"}.__contains__, axes)) > len(axes) / 2:
        text = f"Particles are cut from the columns {', '.join(columns or ())}"
        found.add(text, "choose and order them by --columns, as x1,y1,x2,y2")
    if group is not None and group.is_periodic:
        _add_cell(found, points, species, group, energies, forces, kelvin)
    elif species is not None:
        _add_molecules(found, points, species, energies, forces, kelvin, charge)
    elif points.ndim == 2 and points.shape[1] <= _MOST_COLUMNS and not is_cloud:
        _add_columns(found, points, columns, getattr(group, "periods", ()))
    for text in found.warnings:
        warnings.warn(text, DataWarning, stacklevel=2)
    return DataSummary(tuple(found.lines), tuple(found.warnings), found.numbers)


def _add_rows(found: _Lines, points: np.ndarray, num: int, is_cloud: bool) -> None:
    rows = points.reshape(len(points), -1)
    repeated = _num_equal(rows, 1e-5 * rows.std() if is_cloud else 0.0)  # centered
    most = 0 if is_cloud else len(rows) / 100
    if is_cloud and points.ndim == 3 and points.shape[1] > 2:  # or rotated
        gaps = [np.linalg.norm(points - np.roll(points, k, 1), axis=2) for k in (1, 2)]
        copies = _num_equal(np.hstack(gaps), 2e-4 * rows.std())
        repeated = copies if copies > len(rows) / 100 else repeated
    if repeated > most and points.ndim == 2:  # some rounded rows are equal by chance
        steps = np.ma.masked_equal(np.diff(np.sort(rows, axis=0), axis=0), 0)
        usual = [max(Counter(row).values()) / len(rows) for row in rows.T.tolist()]
        chances = steps.min(axis=0) / (3.5 * rows.std(axis=0)) + np.square(usual)
        most = max(most, 1.5 * len(rows) ** 2 * np.ma.minimum(1, chances).prod())
    few = 0 if is_cloud or points.ndim > 3 else min(20, points.shape[1] / 10)
    found.add(
        f"{num} {'frames' if is_cloud else 'rows'} of shape {points.shape[1:]}, "
        f"{repeated} of them repeated",
        "few: transpose a table whose rows are variables, or stack the draws of chains"
        * (len(points) <= few)
        or "leave copies out, or thin a Markov chain: training sees held-out ones"
        * bool(repeated > most),
        num_rows=num, num_repeated=repeated,
    )  # fmt: skip


def _num_equal(rows: np.ndarray, limit: float) -> int:
    """Return how many rows equal others, their neighbors in the order of any sum."""
    weights = np.random.default_rng(0).normal(size=rows.shape[1])
    gaps = np.diff(rows[np.argsort(rows @ weights, kind="stable")], axis=0)
    return int((np.abs(gaps).max(axis=1) <= limit).sum())


def _add_start(found: _Lines, values: np.ndarray) -> None:
    """Add first rows that are far from all others, which do not drift, in a number."""
    rest = values[len(values) // 2 :]
    far = np.abs(values - np.median(rest, axis=0)) > 4 * rest.std(axis=0)
    first = np.where(far.all(axis=0), 0, far.argmin(axis=0))
    early, late = np.array_split(values[len(values) // 5 :], 2)
    first[abs(early.mean(axis=0) - late.mean(axis=0)) >= late.std(axis=0)] = 0
    if 3 <= (num := first.max(initial=0)) < len(values) / 5:
        cause = "leave out what a chain or a simulation starts with"
        found.add(f"The first {num} rows are far from the others", cause)


def _add_molecules(
    found: _Lines, points: np.ndarray, species: Sequence[str],
    energies: Any, forces: Any, kelvin: float | None, charge: int,
) -> None:  # fmt: skip
    unit, ratio, cause = _unit_of_length(species, points)
    some = points[:50]
    gaps = np.linalg.norm(some[:, :, None] - some[:, None], axis=-1)
    hydrogen = np.sort(gaps[:, np.array(species) == "H"], axis=2)
    spread = hydrogen.std(axis=0).max(axis=0, initial=0)[1:3]
    relaxed = _CONSTRAINED < spread[-1] < 50 * _CONSTRAINED  # angles vary little, too
    if hydrogen.size and len(gaps) > 10 and spread[0] < _CONSTRAINED and not relaxed:
        cause = cause or "hydrogens keep bond lengths: simulate without constraints"
    widths = gaps.std(axis=0)[np.triu_indices(len(species), 1)]
    if len(gaps) > 10 and widths.min() < _CONSTRAINED < 0.05 * np.median(widths):
        cause = cause or "some atoms keep their distance: let fixed atoms move"
    spans = np.linalg.svd(some - some.mean(axis=1, keepdims=True), compute_uv=False)
    is_saturated = 2 * hydrogen.shape[1] > len(species) + 2
    if is_saturated and spans[:, 2].max() < _CONSTRAINED < np.median(widths):
        cause = cause or "all atoms lie in a plane: draw molecules in three dimensions"
    charged = f" with charge {charge:+d}" if charge else ""
    apart = f", whose nearest atoms are {ratio:.3g} times their covalent radii apart"
    found.add(
        f"Molecules of {formula(species)}{charged}" + apart * math.isfinite(ratio),
        cause, nearest_distance=ratio,
    )  # fmt: skip
    points = np.asarray(points, np.float64) * unit_value(unit, "length")
    _add_thermal(found, points, energies, forces, kelvin)
    if not has_rdkit() or len(species) > _LARGEST:
        return
    some = np.unique(np.linspace(0, len(points) - 1, _SHOWN).astype(int))
    seen = [perceive(species, each, charge) for each in points[some]]
    graphs = Counter(each.smiles for each in seen if each.smiles is not None)
    most = ", ".join(f"{name} ({num})" for name, num in graphs.most_common(3))
    cut = np.array([each.problem == "several fragments" for each in seen])
    span = np.ptp(points[some], axis=1).max(axis=1)
    whole, parted = (span @ each / max(1, each.sum()) for each in (~cut, cut))
    # Hot molecules fall apart, and RDKit knows no bonds of metals.
    wrong = [s for s in seen if s.problem not in (None, "several fragments")]
    is_organic = {*species} <= COVALENT and "H" in species and {"C", "N"} & {*species}
    torn = is_organic and not cause and 2 * sum(map(_is_torn, seen)) > len(seen)
    is_off = is_organic and len(species) > 2 and 2 * len(wrong) > len(seen)
    found.add(
        f"{graphs.total()} of {len(some)} molecules are valid, of {len(graphs)} graphs"
        f"{': ' * bool(most)}{most}{f', {cut.sum()} in parts' * bool(cut.any())}",
        "leave those out, or undo the wrapping" * bool(parted > 1.5 * whole > 0 or torn)
        or "check --charge, elements, --length-unit, missing hydrogens, or radicals"
        * bool(is_off and not cause),
        num_graphs=len(graphs), validity=graphs.total() / len(some),
    )  # fmt: skip
    if (main := main_hand(species, points[some])) is not None:
        signs = Counter(hands(species, points[some], main[0]).tolist())
        which = "one hand, and so will samples" if main[1] == 1 else "both hands"
        found.add(
            f"Stereo centers of {which}: {signs[1]} as in {main[0][0]}, "
            f"{signs[-1]} mirrored, {signs[0]} others", same_hand=main[1],
        )  # fmt: skip
    elif len(graphs) == 1:
        pairs = [stereo_smiles(species, each) for each in points[some]]
        kinds = Counter(tuple(sorted(pair)) for pair in pairs).most_common(2)
        shown = [f"{kind} ({num})" for (kind, _), num in kinds]
        has_hand = any(kind != mirrored for (kind, mirrored), _ in kinds)
        if has_hand and len(kinds) > 1 and kinds[1][1] > _SECOND * len(pairs):
            found.add(
                f"Stereo centers of several kinds, such as {' and '.join(shown)}",
                "samples will have both hands of each: give the frames of one kind",
            )


def _is_torn(seen: Perceived) -> bool:
    """Return whether a part far from the others is no molecule by itself."""
    from rdkit.Chem import GetMolFrags

    if seen.problem != "several fragments":
        return False
    names = np.array([atom.GetSymbol() for atom in seen.mol.GetAtoms()])
    at, parts = seen.mol.GetConformer().GetPositions(), GetMolFrags(seen.mol)
    is_far = lambda part: cdist(at[part], np.delete(at, part, 0)).min() > _APART
    is_none = lambda part: perceive(names[part].tolist(), at[part]).problem
    return any(is_far(part) and is_none(part) for part in map(list, parts))


def _add_cell(
    found: _Lines, points: np.ndarray, species: Sequence[str] | None, group: Any,
    energies: Any, forces: Any, kelvin: float | None,
) -> None:  # fmt: skip
    """Add what can be checked in a cell: distances, energies and forces."""
    ratio, cause = math.nan, ""
    if species is not None:
        nearest = lambda gaps: group.minimum_image(jnp.asarray(gaps))
        _, ratio, cause = _unit_of_length(species, points, nearest)
    inverse = np.linalg.inv(group.cell)
    at = np.sort(points[:50] @ inverse % 1, axis=1)
    empty = np.diff(at, axis=1, append=at[:, :1] + 1).max(axis=1).mean(axis=0)
    if empty.min() > 0.4 and (empty / np.linalg.norm(inverse, axis=0)).min() > 5:
        cause = cause or 'much is empty: is the cell in Bohr, or no cell (pbc="F F F")?'
    apart = f", the nearest {ratio:.3g} times their covalent radii apart"
    found.add(
        f"{points.shape[1]} particles in a periodic cell{apart * math.isfinite(ratio)}",
        cause, nearest_distance=ratio,
    )  # fmt: skip
    _add_thermal(found, points, energies, forces, kelvin, np.array(group.cell))


def _unit_of_length(
    species: Sequence[str], points: np.ndarray, nearest: Any = lambda gaps: gaps
) -> tuple[str, float, str]:
    """Return the likely unit, how far nearest atoms are in covalent radii, what is off.

    Nearly all must be as if bonded in another unit, and not in Angstrom; noble gases do
    not count. The median distance is in Angstrom, and NaN without RDKit.
    """
    atoms = [at for at, symbol in enumerate(species) if symbol not in _NOBLE]
    if not has_rdkit() or len(atoms) < 2:
        return "Angstrom", math.nan, ""
    from rdkit.Chem import GetPeriodicTable

    some = np.asarray(points[:: max(1, len(points) // 50)], np.float64)[:, atoms]
    radii = np.array([GetPeriodicTable().GetRcovalent(species[at]) for at in atoms])
    gaps = np.asarray(nearest(some[:, :, None] - some[:, None]))
    gaps = np.linalg.norm(gaps, axis=-1)
    gaps = gaps / (radii[:, None] + radii) + np.diag(np.full(len(atoms), np.inf))
    ratios = np.median(gaps.min(axis=2), axis=0)
    fits = {}
    for unit in ("Angstrom", "Bohr", "nm", "pm"):
        off = np.log(ratios * unit_value(unit, "length") + 1e-9)
        fits[unit] = np.mean(np.abs(off) < math.log(_BONDED))
    best = max(fits, key=lambda unit: fits[unit])
    ratio = float(np.median(ratios))
    if fits[best] > 0.8 and fits["Angstrom"] < 0.2:
        return best, ratio, f"the positions are in {best}, so give --length-unit {best}"
    wrong = np.flatnonzero((ratios < _BONDS[0]) | (ratios.min() > _BONDS[1]))
    names = ", ".join(sorted({species[atoms[at]] for at in wrong}))
    cause = f"{names} are not as far apart as in bonds: check elements, --length-unit"
    return "Angstrom", ratio, cause if names else ""


def _add_thermal(
    found: _Lines, points: np.ndarray, energies: Any, forces: Any,
    kelvin: float | None, cell: Any = None,
) -> None:  # fmt: skip
    """Add how frames begin, what forces say, and energies with them or alone."""
    numbers = [points.std(axis=(1, 2))]
    if energies is not None and np.isfinite(energies).all():
        numbers.append(np.asarray(energies)[: len(points)])
    _add_start(found, np.stack(numbers, axis=1))
    known = {"energies": energies, "forces": forces}
    known = {k: np.asarray(v)[: len(points)] for k, v in known.items() if v is not None}
    is_known = {
        name: np.isfinite(values).reshape(len(points), -1).min(axis=1)
        for name, values in known.items()
    }
    rows = is_known.get("forces", is_known.get("energies", np.zeros(0, bool)))
    if rows.sum() < 2 or points.shape[1] < 2:
        return
    known = {k: v[rows] for k, v in known.items() if is_known[k][rows].all()}
    check = check_thermal(points[rows], kelvin=kelvin, cell=cell, **known)
    causes, acts = check.causes, 1.0 * known.get("forces", points).any(axis=(1, 2))
    is_far = rows.sum() > 10 and _ends_far_off(np.sort(known.get("energies", acts)))
    if is_far or (acts.any() and not acts.all()):
        causes = ("energies far off, or forces of 0: leave failed calculations out",)
    texts = [f"{k} {v:.3g} ± {e:.2g}" for k, (v, e) in check.estimates.items()]
    texts += [f"{k} {v:.2g}" for k, v in check.balance.items()]
    right = f"right: 1 at {kelvin:g} K, net 0" if kelvin else "in K; right: net 0"
    found.add(
        f"{' and '.join(known).capitalize()} of {rows.sum()} frames ({right}): "
        f"{', '.join(texts) or 'not compared'}",
        "; ".join(causes),
        **{k.replace(" ", "_"): v.value for k, v in check.estimates.items()},
        **{k.replace(" ", "_"): v for k, v in check.balance.items()},
    )


def _add_columns(
    found: _Lines, points: np.ndarray, columns: Sequence[str] | None,
    periods: Sequence[float],
) -> None:  # fmt: skip
    """Add columns that are no parameters, not continuous, or of other scales."""
    names = np.array(columns or [f"{i + 1}" for i in range(points.shape[1])], object)
    points = points.astype(np.float64)
    ordered, whole = np.sort(points, axis=0), (points % 1 == 0).all(axis=0)
    widths, steps = points.std(axis=0), np.diff(ordered, axis=0)
    rounding = 2.0**-23 * np.abs(points).max(axis=0)
    constant = widths <= rounding
    counting = np.abs(steps - steps.mean(axis=0)).max(axis=0) <= rounding
    counting &= steps.mean(axis=0) > 4 * rounding
    num_values = 1 + (steps > 0).sum(axis=0)
    like = lambda text: np.array([bool(re.fullmatch(text, n, re.I)) for n in names])
    counting |= (whole | like(_TIME)) & ((points[1:] > points[:-1]).mean(axis=0) >= 0.9)
    counting |= whole & like(_NUMBER) & (num_values > _FEW_VALUES)
    counting &= len(points) > 10
    few = len(points) >= np.where(whole, 10, 20) * num_values
    few &= (num_values <= _FEW_VALUES) & ~constant
    dates = np.array([all(map(_DATE, map(str, column))) for column in points.T])
    far = np.array([_ends_far_off(column) for column in ordered.T]) & (len(points) > 10)
    spans = np.ptp(points, axis=0) / (np.array(periods) if len(periods) else np.inf)
    off = (spans > _PERIODS[1]) | ((0 < spans) & (spans < _PERIODS[0]))
    turned = np.zeros(len(names), bool)
    for start, turn in _FULL_TURNS if not len(periods) else ():
        at = (points - start) / turn
        low, high = np.quantile(at, (_AT_EDGE, 1 - _AT_EDGE), axis=0)
        fills = np.abs(np.ptp(at, axis=0) - 1) < _GAP / len(points)
        turned |= (low < _EDGE) & (high > 1 - _EDGE) & fills
    listed = lambda which: ", ".join(repr(name) for name in names[which])
    for which, what, remedy in (
        (counting | dates, "counts, names or dates rows", "leave it out by --columns"),
        (like(_STATISTIC), "is no parameter", "leave it out by --columns"),
        (constant, "is constant", "leave it out by --columns"),
        (few & bool(columns), "has few values, which have no density",
         "give --class-column if it names classes, or leave it out by --columns"),
        (off, "spans many periods, or hardly any",
         "angles in degrees have the period 360, in radians 6.2832"),
        (turned & ~few, "seems to be an angle, which jumps where a turn ends",
         "cut the turn where there are few points, as by (x + 90) % 360"),
        (far, "has a number far from all others",
         "leave these rows out if it stands for missing values"),
    ):  # fmt: skip
        if which.any():
            found.add(f"Column {listed(which)} {what}", remedy)
    rest = np.flatnonzero(~constant & ~counting)
    if not len(rest) or len(points) <= 2 * len(names):
        return
    points, scales = points[:, rest], widths[rest]
    if (ratio := scales.max() / scales.min()) > _SAME_SCALE:
        wide, narrow = listed([rest[scales.argmax()]]), listed([rest[scales.argmin()]])
        found.add(
            f"Column {wide} is {ratio:.2g} times as wide as {narrow}",
            "divide each by its standard deviation, or choose other units",
        )
    for last in range(max(2, len(points) - 8), len(points)):  # of spreadsheets
        above = np.stack([f(points[:last], axis=0) for f in (np.sum, np.mean, np.std)])
        if len(rest) > 1 and (abs(points[last] - above) < 1e-3 * scales).all(1).any():
            found.add(f"Row {last + 1} sums up those above", "leave it out")
    _add_dependent(found, points, names[rest])
    _add_start(found, points)


def _add_dependent(found: _Lines, points: np.ndarray, names: np.ndarray) -> None:
    """Add columns that are sums of others or, by their ranks, functions of them."""
    ranks = np.argsort(np.argsort(points, axis=0, kind="stable"), axis=0)
    near, next_to = (np.square(ranks[k:] - ranks[:-k]).mean(axis=0) for k in (1, 2))
    rises = (points[1:] >= points[:-1]).mean(axis=0)
    chained = (next_to > 1.5 * near) & (np.abs(rises - 0.5) < 0.4)
    if len(points) > 100 and chained.any():
        found.add(
            f"Column {', '.join(map(repr, names[chained]))} follows the rows before",
            "thin a chain or a series: rows held out are like those of training",
        )
    for values, how in ((points, "sum"), (ranks, "function")):
        scaled = (values - values.mean(axis=0)) / values.std(axis=0)
        _, singular, axes = np.linalg.svd(scaled, full_matrices=False)
        rounded = np.ma.masked_equal(np.diff(np.sort(scaled, axis=0), axis=0), 0)
        limit = np.clip(rounded.min(axis=0).max(), *_DEPENDENT)
        if singular[-1] < limit * len(points) ** 0.5:
            listed = ", ".join(map(repr, names[np.abs(axes[-1]) > 0.05]))
            found.add(
                f"Of the columns {listed} each is a {how} of the others",
                "leave one out by --columns, as points on a subspace have no density",
            )
            return


def _ends_far_off(values: np.ndarray) -> bool:
    """Return whether sorted values end in some far from all others."""
    steps = np.diff(values)
    few, rest = sorted(np.split(values, [steps.argmax() + 1]), key=len)
    below = values[values < 0]  # where all others are not
    if 4 <= len(below) < 0.2 * len(values) and (below == round(below[0])).all():
        return True
    gap = steps.max() / (np.ptp(rest) or np.inf)
    is_code, num = np.isin(few, _CODES).any(), len(np.unique(few))
    is_often = 4 * num <= len(few) < 0.2 * len(values)  # as 0, or 77 and 99
    is_often &= num < 4 and len(np.unique(rest)) > _FEW_VALUES
    least = 0.15 if is_often else 0.3 if is_code else 2 if len(few) > 1 else 100
    return bool(gap > least and (is_often or np.ptp(few) <= 2 * is_code))  # or -998
