"""What kernels that average over a group share."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from equistein._types import Key
from equistein.groups import AbstractFiniteGroup, AbstractGroup, PointCloud
from equistein.kernels._base import centered, flatten, squared_distances
from equistein.kernels._cloud_copies import enumerable, MAX_PERMUTATIONS
from equistein.kernels._radial import AbstractRadialKernel


class Elements(eqx.Module):
    """The group elements an average runs over, stacked on axis 0."""

    group: AbstractGroup
    stacked: PyTree

    def act(self, particles: Float[Array, "n *shape"]) -> Float[Array, "g n *shape"]:
        """Return $g x$ for all elements and particles."""
        move = jax.vmap(jax.vmap(self.group.act, (None, 0)), (0, None))
        return move(self.stacked, particles)

    def act_inverse(
        self, particles: Float[Array, "g n *shape"]
    ) -> Float[Array, "g n *shape"]:
        """Return $g^{-1} x$ for the particles that stand at $g$."""
        inverse = jax.vmap(self.group.inverse)(self.stacked)
        move = jax.vmap(jax.vmap(self.group.act, (None, 0)), (0, 0))
        return move(inverse, particles)

    def squared_orbit_distances(
        self, particles: Float[Array, "n *shape"]
    ) -> Float[Array, "n n"]:
        r"""Return $\min_g |x_i - g x_j|^2$."""

        def closer(least, moved):
            x, y = centered(flatten(particles), flatten(moved))
            return jnp.minimum(least, squared_distances(x, y)), None

        start = jnp.full((len(particles),) * 2, jnp.inf, particles.dtype)
        return jax.lax.scan(closer, start, self.act(particles))[0]


def choose_elements(
    name: str, group: AbstractGroup, num_samples: int | None, key: Key | None
) -> Elements:
    """Return all elements of a finite group, or relative elements of a Haar sample.

    Of `num_samples` Haar draws $h_i$ all products $h_i^{-1} h_j$ are used. A kernel
    averaged over them is positive definite like the exact one, which an average over
    the draws themselves is not.

    Raises:
        ValueError: If the group is not finite and no sample is asked for.
    """
    if num_samples is None:
        if isinstance(group, AbstractFiniteGroup):
            return Elements(group, group.elements())
        raise ValueError(
            f"{name} has no exact average over {group} for this kernel"
            f"{_why_not(group)}: use Pullback or Gradient with invariant features such "
            "as PairHistogram(species), or give `num_samples` (16, say) and `key` to "
            "average over a Haar sample."
        )
    if key is None or num_samples < 1:
        raise ValueError(
            f"{name} with a Haar sample needs `num_samples` >= 1 and a `key`, but got "
            f"num_samples={num_samples!r} and key={key!r}."
        )
    drawn = group.sample(key, num_samples)
    relative = jax.vmap(
        jax.vmap(lambda g, h: group.compose(group.inverse(g), h), (None, 0)), (0, None)
    )(drawn, drawn)
    merged = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), relative)
    return Elements(group, merged)


def _why_not(group: AbstractGroup) -> str:
    """Return what is in the way of an exact average over point clouds."""
    if isinstance(group, PointCloud) and not enumerable(group):
        return (
            f": the species allow {group.num_permutations} permutations, of which "
            f"{MAX_PERMUTATIONS} can be enumerated"
        )
    return ""


def check_base(name: str, base: AbstractRadialKernel, group: AbstractGroup) -> None:
    """Raise `ValueError` unless the parts of a group average are what they should be.

    Raises:
        ValueError: If `base` is not a radial kernel or `group` not a group.
    """
    if not isinstance(base, AbstractRadialKernel):
        raise ValueError(
            f"{name} needs `base`, a kernel of the distance such as RBF(0.2), but got "
            f"{base!r}."
        )
    if not isinstance(group, AbstractGroup):
        raise ValueError(f"{name} needs `group`, such as Cyclic(4), but got {group!r}.")
