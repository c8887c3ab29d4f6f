"""The paper's invariant scalar kernel, for reproduction and ablation."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._gate import gate
from equistein._types import Key, Point, Scalar
from equistein.groups import AbstractGroup
from equistein.kernels._base import AbstractScalarKernel, Prepared
from equistein.kernels._derived import AbstractGroupKernel
from equistein.kernels._pairs import Targets
from equistein.kernels._radial import AbstractRadialKernel
from equistein.kernels.averages._elements import Elements
from equistein.kernels.averages._table import elements_of


@gate
class Invariant(AbstractGroupKernel[Elements], AbstractScalarKernel):
    r"""The paper's average of a scalar kernel, which does not make SVGD equivariant.

    $$k_G(x, y) = \int_G k(x, g y)\, dg$$

    It is invariant in each argument, so the force it gives satisfies
    $\psi(g x) = \psi(x)$ where an equivariant one has $\psi(g x) = R_g \psi(x)$, and
    against an invariant set of particles the scores cancel: every invariant
    distribution is a fixed point, whatever the target. Kept to reproduce the paper's
    formula and to compare; sample with `Equivariant`.

    Args:
        base: The radial kernel $k$.
        group: The symmetry to average over.
        num_samples: As for `Equivariant`; None for all elements of a finite group.
        key: The key of the Haar sample.

    Raises:
        ValueError: If `base` is not radial, or the group needs a Haar sample.

    References:
        Jaini, Holdijk and Welling (2021), Examples 1 and 2.
    """

    base: AbstractRadialKernel
    group: AbstractGroup
    average: Elements

    def __init__(
        self,
        base: AbstractRadialKernel,
        group: AbstractGroup,
        *,
        num_samples: int | None = None,
        key: Key | None = None,
    ):
        self.average = elements_of("Invariant", group, num_samples, key)
        self.base = base
        self.group = group

    def __call__(self, x: Point, y: Point) -> Scalar:
        orbit = self.average.act(y[None])[:, 0]
        return jnp.mean(jax.vmap(self.base, (None, 0))(self.project(x), orbit))

    def force(self, targets: Targets, prepared: Prepared) -> Targets:
        targets = jax.vmap(self.project)(targets)
        orbits = self.average.act(prepared.points)
        moved = self.average.push(prepared.scores)
        forces = jax.vmap(self.base.stein_force, (None, 0, 0))(targets, orbits, moved)
        # grad_y k(x, g y) = R_g^T grad_2 k: the force of each copy is turned back.
        return jnp.mean(self.average.push_inverse(forces), axis=0)

    def matrix(self, x: Point, y: Point) -> Float[Array, "dim dim"]:
        basis = jnp.eye(x.size, dtype=x.dtype).reshape(-1, *x.shape)
        identity = jax.vmap(self.project)(basis).reshape(x.size, x.size)
        return self(x, y) * identity
