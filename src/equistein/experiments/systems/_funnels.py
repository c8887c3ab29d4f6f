"""The two funnels of the cluster of 38 particles: their minima, and what tells them."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Particles, Point, Scalar
from equistein.targets import LennardJones, relax

RADIUS = 2.25 * 2 ** (-1 / 6)  # of the container, in units of the pair minimum
FCC_ORDER = 0.1  # of Q4: halfway from the icosahedral minimum to the octahedron
_BOND = 1.391 * 2 ** (-1 / 6)  # the longest bond
_STEP, _LONGEST = 1e-3, 0.1  # of a descent in units of the pair energy and minimum
_DESCENT = 2_000  # steps to a minimum


def cluster(temperature: float) -> LennardJones:
    """Return LJ-38 in a container, as in the literature on heat capacities."""
    return LennardJones(38, pair_factor=1.0, container=RADIUS, temperature=temperature)


@eqx.filter_jit
def quenched(
    points: Particles, num_steps: int = _DESCENT
) -> tuple[Particles, Float[Array, " particle"], Float[Array, " particle"]]:
    """Return where points come to rest downhill, the energies and $Q_4$ there."""
    log_density = cluster(1.0).log_density
    ends = relax(log_density, points, num_steps=num_steps, step=_STEP, longest=_LONGEST)
    return ends, -jax.vmap(log_density)(ends), jax.vmap(bond_order)(ends)


def bond_order(point: Point) -> Scalar:
    r"""Return the bond-orientational order $Q_4$ of a configuration in space.

    $$Q_4^2 = \frac{4\pi}9 \sum_m |\overline{Y_{4m}}|^2
      = \overline{P_4(u \cdot v)} = \tfrac18 \bigl(35\, |\overline{u^{\otimes 4}}|^2
      - 30\, |\overline{u^{\otimes 2}}|^2 + 3\bigr)$$

    with the means over the directions u, v of all bonds: pairs nearer than 1.391 sigma.
    It is .191 for the face-centered lattice and nearly zero for an icosahedron.

    References:
        Steinhardt, Nelson and Ronchetti (1983), Bond-orientational order in liquids and
        glasses; Doye, Miller and Wales (1999), The double-funnel energy landscape of
        the 38-atom Lennard-Jones cluster, for its use here.
    """
    gaps = point[:, None] - point[None]
    squares = jnp.sum(gaps**2, axis=-1)
    is_bond = (squares < _BOND**2) & ~jnp.eye(len(point), dtype=bool)
    weights = is_bond.astype(point.dtype)
    weights = weights / jnp.maximum(jnp.sum(weights), 1)
    units = gaps / jnp.sqrt(jnp.where(is_bond, squares, 1))[..., None]
    seconds = units[..., :, None] * units[..., None, :]
    second = jnp.einsum("ij,ijab->ab", weights, seconds)
    fourth = jnp.einsum("ij,ijab,ijcd->abcd", weights, seconds, seconds)
    value = 35 * jnp.sum(fourth**2) - 30 * jnp.sum(second**2) + 3
    return jnp.sqrt(jnp.maximum(value / 8, 0))


@functools.cache
def minima() -> np.ndarray:
    """Return the lowest minimum of each funnel, shape (2, 38, 3).

    The truncated octahedron, of energy -173.928427, is a piece of the face-centered
    lattice; the lowest icosahedral minimum, -173.252378, is the icosahedron of 55
    without one end. The energies are those of the Cambridge cluster database.
    """
    starts = np.stack([_truncated_octahedron(), _clipped_icosahedron()])
    return np.asarray(quenched(jnp.asarray(starts, float))[0])


def _truncated_octahedron() -> np.ndarray:
    """Return the 38 points of the face-centered lattice nearest to a hole of it."""
    grid = np.array(list(itertools.product(range(-4, 5), repeat=3)), float)
    lattice = grid[grid.sum(axis=1) % 2 == 0] - [1.0, 0.0, 0.0]
    order = np.argsort(np.linalg.norm(lattice, axis=1), kind="stable")
    return lattice[order[:38]] / 2**0.5


def _clipped_icosahedron() -> np.ndarray:
    """Return the icosahedron of 55 without one end along a fivefold axis."""
    golden = (1 + 5**0.5) / 2
    signs = itertools.product((-1, 1), repeat=2)
    corners = [(0.0, a, b * golden) for a, b in signs]
    corners = np.array([np.roll(c, shift) for c in corners for shift in range(3)])
    corners /= np.linalg.norm(corners[0])
    side = np.min(np.linalg.norm(corners[1:] - corners[0], axis=1))
    points = {(0.0, 0.0, 0.0)}
    for shell, a, b in itertools.product((1, 2), corners, corners):
        if np.linalg.norm(a - b) < side + 1e-6:
            for k in range(shell + 1):
                points.add(tuple(np.round(shell * a + k * (b - a), 6) + 0.0))
    found = np.array(sorted(points))
    radii = np.linalg.norm(found, axis=1)
    heights = np.round(found @ found[np.argmax(radii)], 6)
    return 0.95 * found[np.lexsort((radii, heights))[:38]]
