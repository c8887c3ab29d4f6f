"""What samplers share whose chains lie on the path from a reference to the target."""

from typing import Generic

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, PyTree

from equistein._types import Key, Keys, LogDensity, Particles, Scalar
from equistein.samplers._base import AbstractSampler, cond_if_any, Info, State
from equistein.samplers._geometric_path import (
    AbstractReference,
    fitted_normal,
    Flat,
    GeometricPath,
    PathWalker,
)
from equistein.samplers._markov_chains import (
    AbstractMarkovChains,
    ChainParameters,
    Move,
)

_NUM_CHECKED = 64  # samples of the reference


class AbstractPathSampler(AbstractSampler[State, Info], Generic[State, Info]):
    """A sampler whose chains are on the path from a reference to the target.

    Attributes:
        inner: What moves the chains.
        reference: Where the path begins, or None for a normal density fitted to the
            start.
        reaches_reference: Whether some chain is there; if not, None is no reference.
    """

    inner: eqx.AbstractVar[AbstractMarkovChains]
    reference: eqx.AbstractVar[AbstractReference | None]
    reaches_reference: eqx.AbstractVar[bool]

    def __check_init__(self):
        if self.inner.annealing is not None:
            raise ValueError(
                f"{type(self).__name__} sets the temperature of its `inner` sampler: "
                "leave out its `annealing`."
            )

    def check_shape(self, shape: tuple[int, ...]) -> None:
        self.inner.check_shape(shape)

    def check(self, log_density: LogDensity, particles: Particles) -> None:
        """Raise `ValueError` unless the path from the reference is valid."""
        reference = self._base(particles)
        if isinstance(reference, Flat):
            return
        point = jr.normal(jr.key(0), particles.shape[1:], particles.dtype)
        gap = jnp.max(jnp.abs(self.inner.project(point) - reference.project(point)))
        if not gap < 1e-4:
            raise ValueError(
                f"{type(self).__name__} needs a `reference` on the subspace of its "
                "chains: give both the same, as Normal(center, scale, cloud) and "
                "MALA(..., project=cloud.project)."
            )
        values = _values(log_density, reference)
        bad = int(jnp.sum(jnp.isnan(values) | (values == jnp.inf)))
        if bad or not bool(jnp.any(jnp.isfinite(values))):
            fault = (
                f"infinite or not a number at {bad}" if bad else "zero density at all"
            )
            raise ValueError(
                f"`log_density` is {fault} of {len(values)} samples of the reference: "
                "it must be finite, or minus infinity where the density is zero, and "
                "the `reference` must meet its support."
            )

    def scaled(self, factor: float | Scalar) -> "AbstractPathSampler":
        """Return this sampler with the inner one's step sizes multiplied."""
        return eqx.tree_at(lambda s: s.inner, self, self.inner.scaled(factor))

    def _base(self, particles: Particles) -> AbstractReference | Flat:
        """Return where the path begins, for chains that start at some particles."""
        if self.reference is not None:
            return self.reference
        if not self.reaches_reference:
            return Flat()
        return fitted_normal(particles, self.inner.project)

    def _path(
        self, log_density: LogDensity, particles: Particles, arrays: PyTree
    ) -> GeometricPath:
        """Return the path of a state that holds the arrays of its base."""
        # Of the particles now only the structure: the base was fitted to the start.
        static = eqx.filter(self._base(particles), eqx.is_array, inverse=True)
        return GeometricPath(log_density, eqx.combine(arrays, static))

    def _parameters(self, particles: Particles, num: int) -> ChainParameters:
        """Return those of `num` temperatures, before the density is known."""
        return jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf[None], (num, *leaf.shape)),
            self.inner.parameters(particles),
        )

    def _tuned_if(
        self,
        due: Bool[Array, ""],
        key: Key,
        path: GeometricPath,
        points: Float[Array, "temperature chain *shape"],
        betas: Float[Array, " temperature"],
        parameters: ChainParameters,
    ) -> tuple[ChainParameters, Int[Array, " temperature"]]:
        """Tune each temperature's parameters to its density, if it is time.

        Returns the parameters, and the evaluations of the score a chain.
        """
        num = len(betas)
        return cond_if_any(
            due,
            lambda: jax.vmap(self.inner.tune, (0, None, 0, 0, 0))(
                jr.split(key, num), path, points, betas, parameters
            ),
            (parameters, jnp.zeros(num, int)),
        )

    def _moved(
        self,
        keys: Keys,
        path: GeometricPath,
        walkers: PathWalker,
        beta: Scalar,
        parameters: ChainParameters,
    ) -> Move:
        """Move each chain of one temperature, with a key of its own."""
        return jax.vmap(
            lambda key, walker: self.inner.move(key, path, walker, beta, parameters)
        )(keys, walkers)


@eqx.filter_jit
def _values(
    log_density: LogDensity, reference: AbstractReference
) -> Float[Array, " sample"]:
    return jax.vmap(log_density)(reference.sample(jr.key(0), _NUM_CHECKED))
