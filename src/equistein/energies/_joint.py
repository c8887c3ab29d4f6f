"""A classifier made an energy: joint energy models."""

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from equistein._types import Point, Scalar
from equistein.energies._base import AbstractEnergy
from equistein.energies._kernel import kernel_for
from equistein.groups import AbstractGroup
from equistein.kernels import AbstractKernel
from equistein.networks import AbstractNetwork


class JointEnergy(AbstractEnergy):
    r"""The energies of points and labels that a classifier's logits $f$ define.

    $$E(x, y) = -f(x)[y], \qquad E(x) = -\log \sum_y e^{f(x)[y]}, \qquad
      p(y | x) = \mathrm{softmax}(f(x))[y]$$

    With an invariant network all three are invariant in x.

    Args:
        network: The network $f$, with one output a class.

    References:
        Grathwohl et al. (2020), Your classifier is secretly an energy based model;
        Jaini, Holdijk and Welling (2021), equation JEM.
    """

    network: AbstractNetwork

    def __call__(self, point: Point) -> Scalar:
        return self.from_logits(self.logits(point))

    def from_logits(self, logits: Float[Array, " class"]) -> Scalar:
        """Return $E(x)$ from $f(x)$, for those who need both."""
        return -logsumexp(logits)

    def logits(self, point: Point) -> Float[Array, " class"]:
        r"""Return $f(x)$; its softmax is $p(y | x)$."""
        return self.network(point)

    def joint(self, point: Point, label: int | Int[Array, ""]) -> Scalar:
        """Return $E(x, y)$."""
        return -self.logits(point)[label]

    def given(self, label: int, temperature: float = 1.0) -> "ConditionalEnergy":
        """Return the energy of the points of one class, $p(x | y)$."""
        return ConditionalEnergy(self, jnp.asarray(label), temperature)

    def num_classes(self, shape: tuple[int, ...]) -> int:
        """Return the number of classes, for points of this shape."""
        point = jax.ShapeDtypeStruct(shape, jnp.zeros(()).dtype)
        return jax.eval_shape(lambda x: jnp.atleast_1d(self.logits(x)), point).size

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.network.group(shape)

    def kernel(self, shape: tuple[int, ...], bandwidth: float | None) -> AbstractKernel:
        return kernel_for(self.network, shape, bandwidth)


class ConditionalEnergy(AbstractEnergy):
    r"""The energy of one class, up to a constant.

    $$E(x | y) = E(x) / T - \log p(y | x)$$

    At temperature 1 it is $-f(x)[y]$.

    Args:
        energy: The joint energy.
        label: The class $y$.
        temperature: The temperature $T$ of the points; that of the classes is 1.
    """

    energy: JointEnergy
    label: Int[Array, ""]
    temperature: float = 1.0

    def __call__(self, point: Point) -> Scalar:
        total = self.energy(point)
        share = self.energy.joint(point, self.label) - total  # -log p(y | x)
        return total / self.temperature + share

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.energy.group(shape)

    def kernel(self, shape: tuple[int, ...], bandwidth: float | None) -> AbstractKernel:
        return self.energy.kernel(shape, bandwidth)
