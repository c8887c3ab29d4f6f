"""Thermal frames of made-up molecules, with exact energies and forces."""

import dataclasses

import jax
import jax.numpy as jnp
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
    """Return an energy of springs, Morse bonds, a double well and walls."""
    i, j = np.triu_indices(len(shape), k=1)
    r0 = np.linalg.norm(shape[i] - shape[j], axis=1)
    bonded, far = r0 < 1.25 * _BOND, r0 > 2 * _BOND
    k = np.where(bonded, 30.0, np.where(far, 0.6, 6.0))
    k = k * rng.uniform(0.5, 1.5, len(r0))
    is_morse = bonded & (kind != "harmonic")
    wells, walls = np.zeros(len(r0)), np.zeros(len(r0))
    if kind == "wells" and far.any():  # a torsion
        wells[rng.choice(np.flatnonzero(far))] = 2 * KT
        k[far] *= 0.02
    if kind == "floppy":  # free torsions
        walls[far], k[far] = KT, 0.0

    def energy(x):
        gap = x[i] - x[j]
        r = jnp.sqrt(jnp.sum(gap**2, axis=-1))
        depth = 4.0
        morse = depth * (1 - jnp.exp(-jnp.sqrt(k / (2 * depth)) * (r - r0))) ** 2
        bonds = jnp.where(is_morse, morse, k * (r - r0) ** 2 / 2)
        double = wells * (((r - r0) / 0.25) ** 2 - 1) ** 2
        return jnp.sum(bonds + double + walls * (2.0 / r) ** 12)

    return energy


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


def draw(shape, energy, num, rng, num_moves=30, num_steps=8):
    """Return exact frames by Hamiltonian Monte Carlo, one chain for each.

    It moves along the directions of the Hessian, each in its own unit.
    """
    size = shape.size
    hessian = jax.hessian(lambda flat: energy(flat.reshape(shape.shape)))(shape.ravel())
    stiffness, axes = np.linalg.eigh(np.asarray(hessian))
    axes = axes * np.sqrt(KT / np.maximum(stiffness, KT / 0.3**2))
    place = lambda u: shape + jnp.reshape(axes @ u, shape.shape)
    value_and_slope = jax.vmap(jax.value_and_grad(lambda u: energy(place(u)) / KT))

    @jax.jit
    def moved(u, velocity, step):
        def leap(_, state):
            u, velocity, _, slope = state
            velocity = velocity - step / 2 * slope
            u = u + step * velocity
            value, slope = value_and_slope(u)
            return u, velocity - step / 2 * slope, value, slope

        value, slope = value_and_slope(u)
        before = value + jnp.sum(velocity**2, axis=1) / 2
        u, velocity, value, _ = jax.lax.fori_loop(
            0, num_steps, leap, (u, velocity, value, slope)
        )
        return u, before - value - jnp.sum(velocity**2, axis=1) / 2

    u, step_size = np.zeros((num, size)), 0.3
    for move in range(num_moves):
        step = step_size * rng.uniform(0.6, 1, (num, 1))
        new_u, change = map(np.asarray, moved(u, rng.normal(size=u.shape), step))
        accepted = np.log(rng.random(num)) < change
        u = np.where(accepted[:, None], new_u, u)
        if move < num_moves // 2:
            step_size *= 0.8 if accepted.mean() < 0.7 else 1.1
    return np.asarray(jax.vmap(place)(u))


def rotations(num, rng):
    """Return random rotations."""
    q, r = np.linalg.qr(rng.normal(size=(num, 3, 3)))
    q = q * np.sign(np.einsum("nii->ni", r))[:, None, :]
    return q * np.sign(np.linalg.det(q))[:, None, None]


def thermal_frames(seed, num_atoms=None, kind=None, num=None):
    """Return frames at 300 K; what is not given is drawn by chance."""
    rng = np.random.default_rng(seed)
    kind = kind or KINDS[seed % 4]
    num_atoms = num_atoms or int(rng.integers(3, 12 if kind == "floppy" else 41))
    num = num or int(rng.integers(200, 600))
    shape = shape_of(num_atoms, rng)
    energy = make_energy(shape, kind, rng)
    x = draw(shape, energy, num, rng)
    if seed % 3:
        x = np.einsum("nij,naj->nai", rotations(num, rng), x - x.mean(1, keepdims=True))
    energies, slope = map(np.asarray, jax.jit(jax.vmap(jax.value_and_grad(energy)))(x))
    species = tuple(rng.choice(["C", "N", "O"], num_atoms).tolist())
    return Frames(species, x, energies, -slope)
