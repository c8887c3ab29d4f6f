"""A classifier made an energy: joint energy models."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from equistein._check_arguments import check_arguments
from equistein._numbers import check_positive, is_integer
from equistein._types import Point, Scalar
from equistein.energies._base import AbstractEnergy, Evaluation
from equistein.groups import AbstractGroup
from equistein.networks import AbstractNetwork


@check_arguments
class JointEnergy(AbstractEnergy):
    r"""The energies of points and labels that a classifier's logits $f$ define.

    $$E(x) = -\frac1T \log \sum_y e^{f(x)[y]}, \qquad
      p(y | x) = \mathrm{softmax}(f(x))[y], \qquad E(x, y) = E(x) - \log p(y | x)$$

    At temperature 1, E(x, y) is $-f(x)[y]$. With an invariant network all three are
    invariant in x.

    Args:
        network: The network $f$, with one output a class.
        temperature: The temperature $T > 0$ of the points; that of the classes is 1.

    References:
        Grathwohl et al. (2020), Your classifier is secretly an energy based model;
        Jaini, Holdijk and Welling (2021), equation JEM.
    """

    network: AbstractNetwork
    temperature: float = eqx.field(default=1.0, converter=float)

    def __check_init__(self):
        check_positive("JointEnergy", temperature=self.temperature)

    def __call__(self, point: Point) -> Scalar:
        return self.evaluate(point).energy

    def evaluate(self, point: Point) -> Evaluation:
        logits = self.logits(point)
        return Evaluation(-logsumexp(logits) / self.temperature, logits)

    def logits(self, point: Point) -> Float[Array, " class"]:
        r"""Return $f(x)$; its softmax is $p(y | x)$."""
        return self.network(point)

    def joint_energy(self, point: Point, label: int | Int[Array, ""]) -> Scalar:
        """Return $E(x, y)$; NaN if the label is traced and no class."""
        logits = jnp.atleast_1d(self.logits(point))
        num = logits.size
        if not isinstance(label, Tracer):
            check_class(label, num)
        total = -logsumexp(logits) / self.temperature
        label = jnp.asarray(label)
        known = (label >= 0) & (label < num)
        return total - jnp.where(known, jax.nn.log_softmax(logits)[label], jnp.nan)

    def condition(self, label: int | np.integer) -> "ConditionalEnergy":
        """Return the energy of the points of one class, $E(x, y)$ as one of x."""
        return ConditionalEnergy(self, label)

    def num_classes(self, shape: tuple[int, ...]) -> int:
        """Return the number of classes, for points of this shape."""
        point = jax.ShapeDtypeStruct(shape, jnp.zeros(()).dtype)
        return jax.eval_shape(lambda x: jnp.atleast_1d(self.logits(x)), point).size

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.network.group(shape)


def check_labels(owner: str, labels: Any, num: int, *, unknown: bool = False) -> None:
    """Raise `ValueError` unless labels are classes 0 to `num - 1`, or -1 if `unknown`.

    Traced labels have no values yet.
    """
    if isinstance(labels, Tracer):
        return
    values = np.asarray(labels)
    bad = (values < (-1 if unknown else 0)) | (values >= num)
    if np.any(bad):
        raise ValueError(
            f"`{owner}` needs `labels`, classes from 0 to {num - 1}"
            f"{', or -1 where unknown' if unknown else ''}, but {np.sum(bad)} of "
            f"{values.size} are not, the first {values[bad][0]} at index "
            f"{np.argmax(bad)}. Leave out points of other classes."
        )


def count_classes(labels: Any) -> int:
    """Return how many classes there are; raise `ValueError` unless all have points."""
    known = np.unique(labels)
    if known.dtype.kind not in "iu" or list(known) != [*range(len(known))]:
        raise ValueError(f"`labels` must be whole, from 0 on, not {known[:9]}.")
    return len(known)


def check_class(label: Any, num: int | None) -> None:
    """Raise `ValueError` unless a label is one of `num` classes, or of any number."""
    is_array = isinstance(label, Array | np.ndarray) and label.shape == ()
    whole = is_integer(label) or (is_array and label.dtype.kind in "iu")
    if not whole or label < 0 or (num is not None and label >= num):
        known = "on" if num is None else f"to {num - 1}"
        raise ValueError(f"`label` must be a class from 0 {known}, but got {label!r}.")


@check_arguments
class ConditionalEnergy(AbstractEnergy):
    r"""The energy of one class, up to a constant.

    $$E(x | y) = E(x) - \log p(y | x)$$
    """

    energy: JointEnergy
    label: Int[Array, ""]

    def __init__(self, energy: JointEnergy, label: int | np.integer):
        check_class(label, energy.network.num_outputs)
        self.energy = energy
        self.label = jnp.asarray(label)

    def __call__(self, point: Point) -> Scalar:
        return self.energy.joint_energy(point, self.label)

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.energy.group(shape)
