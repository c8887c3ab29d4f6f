"""Thermal frames of made-up molecules, with exact energies and forces."""

import dataclasses

import numpy as np

KELVIN = 300.0
KT = 8.617333262e-5 * KELVIN
KINDS = ("harmonic", "morse", "wells", "floppy")
_BOND = 1.5  # Angstrom


@dataclasses.dataclass(frozen=True)
class Frames:
    """Frames with energies in eV and forces in eV / Angstrom."""

    species: tuple[str, ...]
    positions: np.ndarray
    energies: np.ndarray
    forces: np.ndarray


def make_energy(shape, kind, rng):
    """Return energies and their slopes: springs, Morse bonds, a double well, walls."""
    i, j = np.triu_indices(len(shape), k=1)
    ends = np.eye(len(shape))[i] - np.eye(len(shape))[j]
    r0 = np.linalg.norm(ends @ shape, axis=1)
    bonded, far = r0 < 1.25 * _BOND, r0 > 2 * _BOND
    k = np.where(bonded, 30.0, np.where(far, 0.6, 6.0))
    k = k * rng.uniform(0.5, 1.5, len(r0))
    wells, walls = np.zeros(len(r0)), np.zeros(len(r0))
    if kind == "wells" and far.any():  # a torsion
        wells[rng.choice(np.flatnonzero(far))] = 2 * KT
        k[far] *= 0.02
    if kind == "floppy":  # free torsions
        walls[far], k[far] = KT, 0.0
    depth = np.where(bonded & (kind != "harmonic"), 4.0, 1e6)  # a spring, if deep
    rate = np.sqrt(k / (2 * depth))

    def value_and_slope(x):
        gaps = ends @ x
        r = np.sqrt(np.einsum("npk,npk->np", gaps, gaps))
        missing, power = -np.expm1(-rate * (r - r0)), walls * (4.0 / r**2) ** 6
        u = (r - r0) / 0.25
        value = depth * missing**2 + wells * (u**2 - 1) ** 2 + power
        slope = 2 * depth * rate * missing * (1 - missing) - 12 * power / r
        slope = slope + 16 * wells * u * (u**2 - 1)
        return value.sum(axis=1), ends.T @ ((slope / r)[..., None] * gaps)

    return value_and_slope


def shape_of(num_atoms, rng):
    """Return a branched chain without overlaps."""
    x = np.zeros((1, 3))
    while len(x) < num_atoms:
        step = rng.normal(size=3)
        new = x[rng.integers(max(0, len(x) - 3), len(x))]
        new = new + _BOND * step / np.linalg.norm(step)
        if np.linalg.norm(x - new, axis=1).min() > 0.9 * _BOND:
            x = np.concatenate([x, new[None]])
        elif rng.random() < 0.01:
            x = x[: max(1, len(x) - 3)]
    return x


def draw(shape, value_and_slope, num, rng, num_moves=30, num_steps=8):
    """Return frames by Hamiltonian Monte Carlo, one chain for each.

    It moves along the directions of the Hessian, each in its own unit.
    """
    size, step = shape.size, 1e-4
    around = shape + step * np.eye(size).reshape(size, *shape.shape)
    hessian = value_and_slope(around)[1].reshape(size, size) / step
    stiffness, axes = np.linalg.eigh((hessian + hessian.T) / 2)
    axes = axes * np.sqrt(KT / np.maximum(stiffness, KT / 0.3**2))

    def at(u):
        x = shape + (u @ axes.T).reshape(len(u), *shape.shape)
        value, slope = value_and_slope(x)
        return value / KT, slope.reshape(len(u), size) @ axes / KT, x

    u, longest = np.zeros((num, size)), 0.3
    value, slope, x = at(u)
    for move in range(num_moves):
        step = longest * rng.uniform(0.6, 1, (num, 1))
        velocity = rng.normal(size=u.shape)
        before = value + np.sum(velocity**2, axis=1) / 2
        new_u, new = u, (value, slope, x)
        with np.errstate(all="ignore"):  # where a long step goes far
            for _ in range(num_steps):
                velocity = velocity - step / 2 * new[1]
                new_u = new_u + step * velocity
                new = at(new_u)
                velocity = velocity - step / 2 * new[1]
            change = before - new[0] - np.sum(velocity**2, axis=1) / 2
        accepted = np.log(rng.random(num)) < change
        u[accepted] = new_u[accepted]
        for old, other in zip((value, slope, x), new, strict=True):
            old[accepted] = other[accepted]
        if move < num_moves // 2:
            longest *= 0.8 if accepted.mean() < 0.7 else 1.1
    return x


def rotations(num, rng):
    """Return random rotations."""
    q, r = np.linalg.qr(rng.normal(size=(num, 3, 3)))
    q = q * np.sign(np.einsum("nii->ni", r))[:, None, :]
    return q * np.sign(np.linalg.det(q))[:, None, None]


def thermal_frames(seed, num_atoms=None, kind=None, num=None):
    """Return frames at 300 K; what is not given is drawn at random."""
    rng = np.random.default_rng(seed)
    kind = kind or KINDS[seed % 4]
    num_atoms = num_atoms or int(rng.integers(3, 12 if kind == "floppy" else 41))
    num = num or int(rng.integers(200, 600))
    shape = shape_of(num_atoms, rng)
    energy = make_energy(shape, kind, rng)
    x = draw(shape, energy, num, rng, num_moves=80 if kind == "floppy" else 30)
    if seed % 3:
        x = np.einsum("nij,naj->nai", rotations(num, rng), x - x.mean(1, keepdims=True))
    energies, slope = energy(x)
    species = tuple(rng.choice(["C", "N", "O"], num_atoms).tolist())
    return Frames(species, x, energies, -slope)


def spoil(frames, how, rng):
    """Return positions, forces, energies and a temperature, with one of them wrong."""
    x, f, e = frames.positions, frames.forces, frames.energies
    centered = x - x.mean(axis=1, keepdims=True)
    turn = rng.normal(size=3) * 0.2 * f.std() / centered.std()
    spoilt = {
        "right": (x, f, e, KELVIN),
        "Hartree/Bohr": (x, f / 51.4221, e / 27.2114, KELVIN),
        "kcal/mol/Angstrom": (x, f * 23.0605, e * 23.0605, KELVIN),
        "kJ/mol/nm": (x, f * 964.853, e * 96.4853, KELVIN),
        "wrong sign": (x, -f, e, KELVIN),
        "other frames": (x, f[rng.permutation(len(f))], e, KELVIN),
        "other atoms": (x, np.roll(f, 1, axis=1), e, KELVIN),
        "another temperature": (x, f, e, KELVIN * rng.choice([1.3, 1 / 1.3])),
        "torque": (x, f + np.cross(turn, centered), e, KELVIN),
    }
    return spoilt[how]


SPOILED = (
    "Hartree/Bohr", "kcal/mol/Angstrom", "kJ/mol/nm", "wrong sign", "other frames",
    "other atoms", "another temperature", "torque",
)  # fmt: skip
