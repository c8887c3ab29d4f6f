"""Where particles start: a box around the data, or normal distributions like it."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._arrays import on_device
from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._products import tensordot
from equistein._types import Key, Particles, Point, Scalar
from equistein.groups import AbstractGroup
from equistein.training._data import Labels

_RANK = 128  # the directions of a class's covariance


class AbstractInitial(eqx.Module):
    """A distribution that particles start from, on the group's subspace."""

    center: eqx.AbstractVar[Float[Array, "..."]]
    reach: eqx.AbstractVar[Scalar]  # the data's largest coordinate, from the center
    group: eqx.AbstractVar[AbstractGroup]

    @abc.abstractmethod
    def sample(self, key: Key, num: int, label: Any = None) -> Particles:
        """Draw `num` points; of a class, which may be traced, if there are classes."""


@check_arguments
class Box(AbstractInitial):
    """The uniform distribution on a cube that holds the data, on the group's subspace.

    Centered at the origin, or without a symmetry at the mean of the data. Particles in
    a periodic cell start near the sites of a grid.
    """

    center: Float[Array, "..."]
    reach: Scalar
    group: AbstractGroup

    def __init__(self, data: Particles, group: AbstractGroup):
        self.center, self.reach = _center_and_reach(group.project_points(data), group)
        self.group = group

    @accept_integer_key
    @eqx.filter_jit
    def sample(self, key: Key, num: int, label: Any = None) -> Particles:
        shape, dtype = (num, *self.center.shape), self.center.dtype
        if self.group.is_periodic:
            group: Any = self.group
            return group.start(key, num).astype(dtype)
        offset = jr.uniform(key, shape, dtype, minval=-1.0, maxval=1.0)
        return jax.vmap(self.group.project)(self.center[None] + self.reach * offset)


@check_arguments
class DataPoints(AbstractInitial):
    """Points of the data, for chains that cross between basins by themselves."""

    points: Float[Array, "point *shape"]
    center: Float[Array, "..."]
    reach: Scalar
    group: AbstractGroup

    def __init__(self, data: Particles, group: AbstractGroup):
        self.points, self.group = jnp.asarray(group.project_points(data)), group
        self.center, self.reach = _center_and_reach(self.points, group)

    @accept_integer_key
    def sample(self, key: Key, num: int, label: Any = None) -> Particles:
        return self.points[jr.randint(key, (num,), 0, len(self.points))]


def _center_and_reach(points: Any, group: AbstractGroup) -> tuple[Point, Scalar]:
    values = np.asarray(points)
    center = values.mean(axis=0) if group.order == 1 else np.zeros_like(values[0])
    return on_device(center), on_device(np.max(np.abs(values - center)))


@check_arguments
class Normals(AbstractInitial):
    r"""Normal distributions like the data of each class, moved by the group.

    $$x = g \Bigl(\bar x_y + \tfrac{1}{\sqrt m} \sum_{i \le m} \xi_i (x_i - \bar x_y)
      \Bigr), \qquad \xi_i \sim N(0, 1)$$

    over m = 128 points of the class, or all if it has fewer: the mean and the
    covariance are those of the data.

    Labels are the class of each point, -1 where it is unknown.

    References:
        Yang and Ji (2021), JEM++, section 3.4: informative initialization.
    """

    center: Float[Array, "..."]
    reach: Scalar
    group: AbstractGroup
    means: Float[Array, "class *shape"]
    factors: Float[Array, "class rank *shape"]

    def __init__(
        self,
        data: Particles,
        group: AbstractGroup,
        labels: Labels = None,
        num_classes: int = 1,
    ):
        points: Any = np.asarray(group.project_points(data))
        self.center, self.reach = _center_and_reach(points, group)
        self.group = group
        known = np.zeros(len(data), int) if labels is None else np.asarray(labels)
        means = np.zeros((num_classes, *points.shape[1:]), points.dtype)
        factors = np.zeros((num_classes, _RANK, *points.shape[1:]), points.dtype)
        for label in range(num_classes):
            chosen = points[known == label]
            chosen = chosen if len(chosen) else points  # a class without examples
            means[label] = chosen.mean(axis=0)
            rows = np.linspace(0, len(chosen) - 1, min(_RANK, len(chosen)))
            some = chosen[rows.astype(int)]  # evenly, should the data be sorted
            factors[label, : len(some)] = (some - means[label]) / len(some) ** 0.5
        self.means, self.factors = on_device(means), on_device(factors)

    @accept_integer_key
    @eqx.filter_jit
    def sample(self, key: Key, num: int, label: Any = None) -> Particles:
        class_key, normal_key, group_key = jr.split(key, 3)
        num_classes, rank = self.factors.shape[:2]
        classes = jr.randint(class_key, (num,), 0, num_classes)
        if label is not None:
            classes = jnp.full_like(classes, label)
        weights = jr.normal(normal_key, (num, num_classes, rank), self.means.dtype)
        mine = jax.nn.one_hot(classes, num_classes, dtype=weights.dtype)
        offset = tensordot(weights * mine[:, :, None], self.factors, axes=2)
        elements = self.group.sample(group_key, num)
        points = jax.vmap(self.group.act)(elements, self.means[classes] + offset)
        return jax.vmap(self.group.project)(points)
