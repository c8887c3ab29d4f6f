"""An E(n)-equivariant graph neural network of all atoms."""

from collections.abc import Hashable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers, check_positive
from equistein._types import Key, Point, Scalar
from equistein.features import pair_differences, smooth_norm
from equistein.groups import encode_species, PointCloud
from equistein.networks._base import AbstractNoiseNetwork
from equistein.networks._mlp import (
    check_weights,
    dense,
    noise_waves,
    NUM_WAVES,
    perceptron,
)

_EPSILON = 1e-3  # of the reach, below which distances are smoothed
_MAX_PRODUCT = 32  # atoms whose messages are summed by a product


def _sum_ends(atoms: Float[Array, "atom width"]) -> Float[Array, "pair width"]:
    """Return the sum of both ends of each pair of atoms, as in `np.triu_indices`."""
    num = len(atoms)
    first, second = np.triu_indices(num, k=1)
    if num > _MAX_PRODUCT:
        return atoms[first] + atoms[second]
    # A product with the pairs' ends, since the derivative of indexing is slow.
    ends, rows = np.zeros((len(first), num)), np.arange(len(first))
    ends[rows, first] = ends[rows, second] = 1
    return jnp.asarray(ends, atoms.dtype) @ atoms


class MessageLayer(eqx.Module):
    r"""One round of messages between all pairs of atoms, with attention.

    $$m_{ij} = \phi_e(h_i + h_j, d_{ij}), \qquad
      h_i' = h_i + \phi_h\Bigl(h_i, \sum_j \sigma(w \cdot m_{ij})\, m_{ij}\Bigr)$$
    """

    nodes: eqx.nn.Linear
    edges: eqx.nn.Linear
    message: eqx.nn.Linear
    attention: eqx.nn.Linear
    update: eqx.nn.Linear
    update_out: eqx.nn.Linear

    def __init__(self, width: int, num_edges: int, *, key: Key):
        keys = jr.split(key, 6)
        self.nodes = eqx.nn.Linear(width, width, use_bias=False, key=keys[0])
        self.edges = eqx.nn.Linear(num_edges, width, key=keys[1])
        self.message = eqx.nn.Linear(width, width, key=keys[2])
        self.attention = eqx.nn.Linear(width, "scalar", key=keys[3])
        self.update = eqx.nn.Linear(2 * width, width, key=keys[4])
        self.update_out = eqx.nn.Linear(width, width, key=keys[5])

    def __call__(
        self, hidden: Float[Array, "atom width"], edges: Float[Array, "pair feature"]
    ) -> tuple[Float[Array, "atom width"], Float[Array, "pair width"]]:
        """Return the next state of the atoms, and the messages."""
        silu = jax.nn.silu
        before = _sum_ends(dense(self.nodes, hidden))
        before = before + dense(self.edges, edges)
        messages = silu(dense(self.message, silu(before)))
        weight = jax.nn.sigmoid(dense(self.attention, messages))
        messages = messages * weight[:, None]
        # Over the pairs of each atom: `_sum_ends` transposed.
        (sums,) = jax.linear_transpose(_sum_ends, hidden)(messages)
        both = jnp.concatenate([hidden, sums / len(hidden) ** 0.5], axis=1)
        step = dense(self.update_out, silu(dense(self.update, both)))
        return hidden + step, messages


@check_arguments
class EGNN(AbstractNoiseNetwork):
    r"""An E(n)-invariant function of atoms in space, with messages between all pairs.

    Atoms begin with an embedding of their species, one-hot with the nuclear charge and
    its square if there is one; pairs enter through Gaussians of their distances
    $\sqrt{r^2 + (\ell / 1000)^2}$, with $\ell$ the reach, so the function is smooth.
    Each layer is `MessageLayer`, with messages symmetric in the two atoms; the sum of a
    function of each atom and of each pair is read out. With a noise level, the atoms'
    embedding in $f(x, \sigma)$ also depends on $\log\sigma$.

    Args:
        species: One label for each atom.
        atomic_numbers: The atomic number of each atom, if it has one.
        dim: The dimension of space.
        reach: The last center of the Gaussians, in the units of the points.
        num_centers: Their number.

    References:
        Satorras, Hoogeboom and Welling (2021), E(n) equivariant graph neural networks,
        section 3.3 and appendix C (attention).
    """

    species: tuple[int, ...] = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    num_centers: int = eqx.field(static=True)
    reach: Scalar
    kinds: Int[Array, " atom"]
    traits: Float[Array, "kind trait"]
    embedding: eqx.nn.Linear
    noise_in: eqx.nn.Linear
    noise_out: eqx.nn.Linear
    layers: tuple[MessageLayer, ...]
    atom_read: eqx.nn.MLP
    pair_read: eqx.nn.MLP

    def __init__(
        self,
        species: Sequence[Hashable],
        *,
        atomic_numbers: Sequence[int] | None = None,
        dim: int = 3,
        width: int = 64,
        depth: int = 4,
        reach: float = 8.0,
        num_centers: int = 32,
        key: Key,
    ):
        if len(species) < 2:
            raise ValueError(
                f"EGNN needs `species` of at least 2 atoms, but got {species!r}."
            )
        check_integers("EGNN", width=width, depth=depth, dim=dim)
        check_integers("EGNN", least=2, num_centers=num_centers)
        check_positive("EGNN", reach=reach)
        check_weights("EGNN", "width", num_centers, *[width] * 7, layers=depth)
        if atomic_numbers is not None and len(atomic_numbers) != len(species):
            raise ValueError(
                f"EGNN needs one of `atomic_numbers` for each of its {len(species)} "
                f"atoms, but got {len(atomic_numbers)}."
            )
        self.species = encode_species(species)
        self.dim = dim
        self.reach = jnp.asarray(reach, float)
        self.num_centers = num_centers
        self.kinds = jnp.array(self.species)
        self.traits = _traits(self.species, atomic_numbers)
        keys = jr.split(key, 5 + depth)
        num_edges = num_centers + 2
        self.embedding = eqx.nn.Linear(self.traits.shape[1], width, key=keys[0])
        self.noise_in = eqx.nn.Linear(NUM_WAVES, width, key=keys[1])
        self.noise_out = eqx.nn.Linear(width, width, key=keys[2])
        self.layers = tuple(MessageLayer(width, num_edges, key=key) for key in keys[5:])
        self.atom_read = _readout(width, keys[3])
        self.pair_read = _readout(width, keys[4])

    def __call__(self, point: Point, noise: Scalar | None = None) -> Scalar:
        traits = jax.lax.stop_gradient(self.traits)[self.kinds]
        hidden = dense(self.embedding, traits)
        if noise is not None:
            waves = jax.nn.silu(self.noise_in(noise_waves(noise)))
            hidden = hidden + self.noise_out(waves)[None, :]
        gaps = pair_differences(point) / jax.lax.stop_gradient(self.reach)
        edges = self._edges(smooth_norm(gaps, _EPSILON))
        messages = jnp.zeros((len(edges), hidden.shape[1]), point.dtype)
        for layer in self.layers:
            hidden, messages = layer(hidden, edges)
        atoms = jnp.sum(perceptron(self.atom_read, hidden))
        pairs = jnp.sum(perceptron(self.pair_read, messages))
        return atoms + pairs / len(self.species) ** 0.5

    @property
    def has_atoms(self) -> bool:
        """Whether particles are atoms, with an atomic number each."""
        return self.traits.shape[1] > self.traits.shape[0]

    def group(self, shape: tuple[int, ...]) -> PointCloud:
        group = PointCloud(self.species, self.dim)
        group.check_shape(shape)
        return group

    def _edges(self, distances: Float[Array, " pair"]) -> Float[Array, "pair feature"]:
        """Return the features of pairs, of their distances over the reach."""
        far = distances[:, None]
        centers = jnp.linspace(0, 1, self.num_centers, dtype=distances.dtype)
        width = 1.2 / (self.num_centers - 1)
        bumps = jnp.exp(-(((far - centers[None]) / width) ** 2) / 2)
        return jnp.concatenate([2 * bumps, 2 * far, jnp.log(far)], axis=1)


def _readout(width: int, key: Key) -> eqx.nn.MLP:
    return eqx.nn.MLP(width, "scalar", width, 1, activation=jax.nn.silu, key=key)


def _traits(
    species: tuple[int, ...], atomic_numbers: Sequence[int] | None
) -> Float[Array, "kind trait"]:
    """Return the one-hot species, with their charges."""
    num = max(species) + 1
    columns = [np.eye(num)]
    if atomic_numbers is not None:
        table = np.zeros(num)
        charges = np.asarray(atomic_numbers) / 9  # fluorine's: small molecules
        table[list(species)] = charges
        columns += [table[:, None], table[:, None] ** 2]
    return jnp.asarray(np.concatenate(columns, axis=1), jnp.zeros(()).dtype)
