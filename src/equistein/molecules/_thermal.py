r"""Whether energies and forces fit thermal frames, and what is wrong if they do not.

For frames of $e^{-U / kT}$ and any displacements $v(x)$, partial integration gives
$-\langle v \cdot F \rangle = kT \langle \nabla \cdot v \rangle$, whatever the molecule.
With the positions for v the mean is noisy; with the displacement of a part that keeps
its shape from its mean structure, once that is rotated onto the frame, it is sharp.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial import KDTree

from equistein._check_arguments import check_arguments
from equistein.molecules._elements import BOLTZMANN, unit_value

_FRAMES = 1_000  # that are looked at, evenly spaced
_MOST_ERRORS = 4.0  # standard errors, beyond which a number is off
_NEIGHBORS = 1.5  # times the distance of particles on a grid
_RIGID = 0.05  # of a distance, that its standard deviation may be in a rigid part
_UNBALANCED = 0.01  # of the sum of the sizes of forces, or of torques
_ANHARMONIC = 2.0  # factor by which energies may be wider or narrower than harmonic
_UNRELATED, _KNOWN = 2.5, 0.15  # standard errors, and the largest, of no correlation
_WORK = 0.25  # by which the work between close frames may differ from the energy
_STEP = 0.1  # of the distance to the nearest atom, that atoms move between close frames
_ENERGIES = "kcal/mol kJ/mol Hartree Ry meV eV".split()
_FORCES = """kcal/mol/Angstrom kcal/mol/Bohr kcal/mol/nm kJ/mol/Angstrom kJ/mol/Bohr
    kJ/mol/nm Hartree/Bohr Hartree/Angstrom Ry/Bohr Ry/Angstrom meV/Angstrom eV/Bohr
    eV/nm""".split()
_ENERGY_UNITS = {unit: 1 / unit_value(unit, "energy") for unit in _ENERGIES}
_FORCE_UNITS = {unit: 1 / unit_value(unit, "force") for unit in _FORCES}
_IF = ", if no unit was given"
_OTHER_FRAMES = "the forces belong to other frames: keep both in one order"
_OTHER_ATOMS = "the forces belong to other atoms: keep both in one order"
_UNEQUAL = "a net force or torque: forces are rotated, incomplete or of an outer field"


class Estimate(NamedTuple):
    """A mean with its standard error, in which frames may be correlated."""

    value: float
    error: float

    @property
    def is_off(self) -> bool:
        """Whether it is more than four standard errors from 1."""
        gap = abs(self.value - 1)
        if self.error < 0.1 * self.value:  # the error grows with the value
            gap = self.value * abs(math.log(self.value))
        return gap > _MOST_ERRORS * self.error or not self.value  # of equal ones


class ThermalCheck(NamedTuple):
    """What energies and forces of frames are, over what they should be.

    The `estimates` are the `virial`, and the `displacement virial` of parts that keep
    their shape, as temperatures in K if none is given; the `width of energies` over
    `kT sqrt(m / 2)`, that of a harmonic molecule with m directions; the `correlation of
    energies` with that virial; the `energy over work` between close frames. `balance`
    has the `net force` and `net torque`, over their sums; `causes` the likeliest first.
    """

    estimates: Mapping[str, Estimate]
    balance: Mapping[str, float]
    causes: tuple[str, ...] = ()


@check_arguments
def check_thermal(
    positions: np.ndarray,
    forces: np.ndarray | None = None,
    energies: np.ndarray | None = None,
    kelvin: float | None = None,
    cell: np.ndarray | None = None,
) -> ThermalCheck:
    """Compare energies and forces with positions and temperature, and name the cause.

    The frames, `(frame, atom, 3)`, are in the order of the file, in eV and Angstrom.
    The rows of `cell` are the edges of a periodic one.
    """
    positions = np.asarray(positions, np.float64)
    rows = np.unique(np.linspace(0, len(positions) - 1, _FRAMES).round().astype(int))
    rises = 0.5 if energies is None else np.mean(np.diff(energies) >= 0)
    if abs(rises - 0.5) > 0.4:  # sorted, in the order of no simulation
        rows = np.random.default_rng(0).permutation(rows)
    x = positions[rows] - positions[rows].mean(axis=1, keepdims=True)
    unit = BOLTZMANN * (kelvin or 1.0)
    f, e = (v if v is None else np.asarray(v[rows], float) for v in (forces, energies))
    estimates, balance = {}, {}
    if f is not None and cell is None:
        estimates, balance = _virials_and_balance(x, f, e, unit)
    elif f is not None:
        estimates["displacement virial"] = _virial_of_pairs(x, f, unit, cell)
        balance = _balance("net force", f)
    if e is not None and kelvin:
        squares = ((e - e.mean()) / unit) ** 2
        directions = 3 * x.shape[1] - 3 if cell is not None else _displacements(x)[1]
        value, error = _estimate(squares, directions / 2)
        width = Estimate(value**0.5, error / (2 * max(value, 1e-99) ** 0.5))
        estimates["width of energies"] = width
    if forces is not None and energies is not None:
        estimates |= _energy_over_work(positions, forces, energies, cell)
    found = ThermalCheck(estimates, balance)
    causes = () if f is None else _causes_of_forces(found, kelvin, x, f)
    return found._replace(causes=causes or _causes_of_energies(found))


def _virials_and_balance(
    x: np.ndarray, f: np.ndarray, energies: np.ndarray | None, unit: float
) -> tuple[dict[str, Estimate], dict[str, float]]:
    # A part is an atom with all at a distance that varies little; often there is one.
    some = np.random.default_rng(0).permutation(x)[:100]
    lengths = np.linalg.norm(some[:, :, None] - some[:, None], axis=-1)
    rigid = lengths.std(axis=0) <= _RIGID * lengths.mean(axis=0)
    parts = {tuple(np.flatnonzero(row).tolist()) for row in rigid if row.sum() > 1}
    work, directions = np.zeros(len(x)), np.zeros(len(x))
    for part in map(list, parts or [range(x.shape[1])]):
        moved, divergence = _displacements(x[:, part])
        work -= np.sum(moved * f[:, part], axis=(1, 2)) / unit
        directions += divergence
    virial = _estimate(-np.sum(x * f, axis=(1, 2)) / unit, 3.0 * x.shape[1] - 3)
    virials = {"virial": virial, "displacement virial": _estimate(work, directions)}
    if energies is not None and tuple(range(x.shape[1])) in parts:  # all keep a shape
        a, b = ((v - v.mean()) / max(v.std(), 1e-99) for v in (work, energies))
        virials["correlation of energies"] = _estimate(a * b, 1.0)
    balance = _balance("net force", f)
    return virials, balance | _balance("net torque", np.cross(x, f), x, f)


def _balance(name: str, v: np.ndarray, *factors: np.ndarray) -> dict[str, float]:
    """Return the size of the sum over atoms, over the sum of the largest sizes."""
    sizes = np.prod([np.linalg.norm(each, axis=-1) for each in factors or [v]], axis=0)
    net = np.linalg.norm(v.sum(axis=1), axis=-1).sum()
    return {name: float(net / max(sizes.sum(), 1e-99))}


def _virial_of_pairs(x: np.ndarray, f: np.ndarray, unit: float, cell: Any) -> Estimate:
    """Return the virial of displacements away from neighbors in a cell."""
    # Each is the sum of u^2 times the difference, with u = 1 - r^2 / c^2 up to c; the
    # divergence that of 3 u^2 - 4 u r^2 / c^2. No other image is nearer than c.
    apart = _NEIGHBORS * (abs(np.linalg.det(cell)) / x.shape[1]) ** (1 / 3)
    reach = min(apart, 0.5 / np.linalg.norm(np.linalg.inv(cell), axis=0).max())
    work, directions = np.zeros(len(x)), np.zeros(len(x))
    for index, frame in enumerate(x):
        gaps = _nearest(frame[:, None] - frame, cell)
        square = np.sum(gaps**2, axis=-1) / reach**2
        np.fill_diagonal(square, 1)
        u = np.maximum(1 - square, 0)
        directions[index] = np.sum(3 * u**2 - 4 * u * square)
        work[index] = -np.sum((u**2)[..., None] * gaps * f[index][:, None]) / unit
    return _estimate(work, directions)


def _nearest(gaps: np.ndarray, cell: Any) -> np.ndarray:
    return gaps - np.round(gaps @ np.linalg.inv(cell)) @ cell


def _displacements(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return displacements from the mean, once that is rotated onto each frame."""
    # By Kabsch's method. The divergence, about 3N - 6, is exact: with S the sum of
    # products of mean and frame, the rotation follows a displacement d by the angle
    # K^-1 sum of m x d, with K = tr(S) - S.
    x = x - x.mean(axis=1, keepdims=True)
    mean, rotations = x[0], np.eye(3)
    for _ in range(10):
        u, _, vt = np.linalg.svd(x.swapaxes(1, 2) @ mean)
        u[:, :, -1] *= np.linalg.det(u @ vt)[:, None]
        rotations = u @ vt
        mean = (x @ rotations).mean(axis=0)
    products = mean.T @ (x @ rotations)
    products = (products + products.swapaxes(1, 2)) / 2
    inertia = np.eye(3) * np.sum(mean**2) - mean.T @ mean
    trace = np.trace(products, axis1=1, axis2=2)[:, None, None]
    inverse = np.linalg.pinv(np.eye(3) * trace - products, rcond=1e-6, hermitian=True)
    divergence = 3.0 * len(mean) - 3 - np.sum(inverse * inertia, axis=(1, 2))
    return x - mean @ rotations.swapaxes(1, 2), divergence


def _estimate(values: np.ndarray, scale: Any) -> Estimate:
    """Return the mean over that of a scale; frames may be correlated."""
    scale = np.broadcast_to(scale, values.shape)
    value, num = values.mean() / scale.mean(), len(values)
    rest = values - value * scale  # whose autocorrelation Sokal's window sums
    spectrum = np.abs(np.fft.rfft(rest, 2 * num)) ** 2
    correlation = np.fft.irfft(spectrum)[:num]
    times = 2 * np.cumsum(correlation / max(correlation[0], 1e-300)) - 1
    time = max(1.0, times[np.argmax(np.arange(num) >= 5 * times)])
    time *= 1 + (20 * (time - 1) / num) ** 0.5  # its own standard error
    error = np.sqrt(rest.var() * time / num) / abs(scale.mean())
    # Of few independent frames not even the error is known, of equal ones nothing.
    return Estimate(float(value), float(error if error and num > 20 * time else np.inf))


def _energy_over_work(
    positions: np.ndarray, forces: np.ndarray, energies: np.ndarray, cell: Any
) -> dict[str, Estimate]:
    """Return how energies change over the work of forces, where frames are close."""
    x, f = (np.asarray(v[: 2 * _FRAMES], np.float64) for v in (positions, forces))
    steps = np.diff(x, axis=0) if cell is None else _nearest(np.diff(x, axis=0), cell)
    nearest = [KDTree(frame).query(frame, 2)[0][:, 1] for frame in x[:50]]
    reach = _STEP * np.mean(nearest)
    close = np.linalg.norm(steps, axis=-1).max(axis=1) < reach
    work = -np.sum((f[1:] + f[:-1]) / 2 * steps, axis=(1, 2))[close]
    change = np.diff(energies[: 2 * _FRAMES])[close]
    return {"energy over work": _estimate(change * work, work**2)} if work.any() else {}


def _causes_of_energies(check: ThermalCheck) -> tuple[str, ...]:
    """Return what is wrong with energies beside right forces, or without any."""
    width = check.estimates.get("width of energies", Estimate(1, math.inf))
    slope = check.estimates.get("energy over work", Estimate(1, math.inf))
    if width.is_off and abs(math.log(width.value + 1e-99)) > math.log(_ANHARMONIC):
        units = {name: unit for name, unit in _ENERGY_UNITS.items() if name != "eV"}
        if width.value and (unit := _unit_of(width, units)):
            return (f"the energies are in {unit}: give --energy-unit {unit}{_IF}",)
        return ("the energies are of another temperature or unit, or rounded",)
    if slope.is_off and abs(slope.value - 1) > _WORK:
        return ("energies and forces differ in unit or sign, or in their frames",)
    value, error = check.estimates.get("correlation of energies", Estimate(1, 0))
    if value < error * (_UNRELATED if error < _KNOWN else -_UNRELATED):
        return ("the energies have the wrong sign or belong to other frames",)
    return ()


def _causes_of_forces(
    check: ThermalCheck, kelvin: float | None, x: np.ndarray, forces: np.ndarray
) -> tuple[str, ...]:
    """Return what is wrong with forces, most likely first: see `check_thermal`."""
    virial, causes = check.estimates["displacement virial"], []
    if fixed := int((forces == 0).all(axis=(0, 2)).sum()):
        return (f"no force acts on {fixed} of the atoms, as on fixed ones",)
    if max(check.balance.values()) > _UNBALANCED:
        causes.append(_match(x, forces) if "net torque" in check.balance else _UNEQUAL)
        if causes[0] != _UNEQUAL or max(check.balance.values()) > 10 * _UNBALANCED:
            return tuple(causes)
    if virial.value < -_MOST_ERRORS * virial.error:
        causes.append("the forces have the wrong sign, as gradients have: negate them")
        virial = Estimate(-virial.value, virial.error)
    if kelvin is None or not virial.is_off:
        return tuple(causes)
    if virial.value < _MOST_ERRORS * virial.error:
        return (*causes, _OTHER_FRAMES)
    width = check.estimates.get("width of energies")
    if unit := _unit_of(virial, _FORCE_UNITS, width):
        causes.append(f"the forces are in {unit}: give --force-unit {unit}{_IF}")
        return (*causes, *_causes_of_energies(check))
    agrees = width is None or 0.6 < width.value / max(virial.value, 1e-99) < 1.7
    if agrees and (width or 0.2 < virial.value < 5):
        true = f"about {virial.value * kelvin:.0f} K"
        return (*causes, f"the frames are of another temperature, {true}")
    return (*causes, f"the forces are {virial.value:.3g} times too large")


def _unit_of(
    ratio: Estimate, units: Mapping[str, float], width: Estimate | None = None
) -> str:
    """Return the unit that explains a ratio, and that of energies, or nothing."""
    log = lambda value: math.log(max(value, 1e-99))
    gaps = {name: abs(log(ratio.value) - log(unit)) for name, unit in units.items()}
    limit = max(0.05, _MOST_ERRORS * ratio.error / max(ratio.value, 1e-99))
    near = sorted((name for name in gaps if gaps[name] < limit), key=gaps.__getitem__)
    if width:  # of two units of forces that are close, or of another temperature
        gap = lambda value: abs(log(width.value) - log(value))
        off = {name: gap(_ENERGY_UNITS[name.rpartition("/")[0]]) for name in near}
        near = [n for n in near if min(off[n], gap(1)) < 0.3 + gap(ratio.value)]
        near.sort(key=lambda name: round(off[name], 1))
    return near[0] if near else ""


def _match(x: np.ndarray, forces: np.ndarray) -> str:
    """Return why forces do not balance, by what makes them most like rough forces."""
    # These are of springs along distances, by the variance of each. A rotation or an
    # order of the atoms must explain more of the forces than of those of other frames.
    i, j = np.triu_indices(x.shape[1], k=1)
    gaps = x[:, i] - x[:, j]
    lengths = np.linalg.norm(gaps, axis=-1)
    strain = (lengths - lengths.mean(axis=0)) / (lengths.var(axis=0) + 1e-9)
    ends = np.eye(x.shape[1])[j] - np.eye(x.shape[1])[i]
    pull = ends.T @ ((strain / (lengths + 1e-9))[..., None] * gaps)

    def explained(f: np.ndarray) -> np.ndarray:
        products = pull @ f.swapaxes(1, 2)
        singular = np.linalg.svd(pull.swapaxes(1, 2) @ f, compute_uv=False)
        atoms = [each[linear_sum_assignment(-each)].sum() for each in products]
        as_it_is = np.trace(products, axis1=1, axis2=2)
        return np.stack([as_it_is, singular.sum(axis=1), np.array(atoms)])

    gains = explained(forces) - explained(np.roll(forces, len(forces) // 2, axis=0))
    means, errors = gains.mean(axis=1), gains.std(axis=1) / len(x) ** 0.5
    best = int(np.argmax(means))
    if means[best] < 5 * errors[best]:
        return _OTHER_FRAMES
    return (_UNEQUAL, _UNEQUAL, _OTHER_ATOMS)[best]
