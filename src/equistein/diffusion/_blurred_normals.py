"""Normal distributions of several classes with noise, before anything is learned."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._products import matmul, tensordot
from equistein._types import Key, Particles, Point, Scalar
from equistein.groups import AbstractFiniteGroup
from equistein.samplers import AbstractReference

_MOST_NUMBERS = 2**23  # of all directions, 32 MiB: all of 28 x 28 pixels and 13 classes
_FEWEST = 16  # directions of a class
_ROWS = 2_000  # points of a class that they are taken from, at most


@check_arguments
class BlurredNormals(eqx.Module):
    r"""Normal distributions like the data of each class, moved by a group, with noise.

    $$p_\sigma(x) = \frac{1}{|G|} \sum_{g, y} \pi_y\,
      \mathcal N(g x;\; \mu_y,\; \Sigma_y + \sigma^2 I)$$

    It is invariant, normalized, and exact for all levels $\sigma$ if it is for one. A
    covariance is that of the points of a class along its largest directions, and the
    same in all others: at most half as many as points, and as fit into 32 MiB. Of
    many small images none are left, where white noise would be seen. All are shrunk
    towards the same in all directions, the more the fewer the points.

    Labels are the class of each point, -1 where it is unknown.
    """

    group: AbstractFiniteGroup
    log_shares: Float[Array, " class"]
    means: Float[Array, "class *shape"]
    axes: Float[Array, "class rank *shape"]
    variances: Float[Array, "class rank"]
    rest: Float[Array, " class"]

    def __init__(
        self,
        data: Particles,
        group: AbstractFiniteGroup,
        labels: Int[Array, " point"] | None = None,
        num_classes: int = 1,
    ):
        if len(data) < 2:
            raise ValueError(
                f"BlurredNormals needs at least two points `data`, but got {len(data)}."
            )
        points = np.asarray(data, np.float64).reshape(len(data), -1)
        known = np.zeros(len(data), int) if labels is None else np.asarray(labels)
        sets = [points[known == label] for label in range(num_classes)]
        counts = [len(chosen) + 1 for chosen in sets]
        # A class without examples is like all.
        sets = [chosen if len(chosen) > 1 else points for chosen in sets]
        most = max(_FEWEST, _MOST_NUMBERS // (points.shape[1] * num_classes))
        rank = min(most, max(map(_num_directions, sets)))
        each = [_normals(chosen, rank) for chosen in sets]
        means, axes, variances, rest = map(np.stack, zip(*each, strict=True))
        shape = data.shape[1:]
        self.group = group
        self.log_shares, self.means, self.axes, self.variances, self.rest = (
            jnp.asarray(numbers, data.dtype)
            for numbers in (
                np.log(np.array(counts) / sum(counts)),
                means.reshape(-1, *shape),
                axes.reshape(*axes.shape[:2], *shape),
                variances,
                rest,
            )
        )

    def log_density(self, point: Point, noise: Scalar) -> Scalar:
        r"""Return $\log p_\sigma(x)$."""
        copies = jax.vmap(lambda g: self.group.act(g, point))(self.group.elements())
        return logsumexp(self._log_densities(copies, noise)) - np.log(self.group.order)

    @accept_integer_key
    def sample(self, key: Key, num: int) -> Particles:
        """Return samples without noise."""
        class_key, normal_key, rest_key, group_key = jr.split(key, 4)
        classes = jr.categorical(class_key, self.log_shares, shape=(num,))

        def draw(label, normal, rest, element):
            axes, width = self.axes[label], jnp.sqrt(self.rest[label])
            along = jnp.sqrt(self.variances[label]) * normal
            along -= width * tensordot(axes, rest, rest.ndim)
            point = self.means[label] + tensordot(along, axes, 1) + width * rest
            return self.group.act(element, point)

        shape, dtype = self.means.shape[1:], self.means.dtype
        normal = jr.normal(normal_key, (num, self.variances.shape[1]), dtype)
        rest = jr.normal(rest_key, (num, *shape), dtype)
        elements = self.group.sample(group_key, num)
        return jax.vmap(draw)(classes, normal, rest, elements)

    def at(self, noise: Scalar | float) -> "NormalsAtNoise":
        """Return the normalized density at one level of noise."""
        return NormalsAtNoise(self, jnp.asarray(noise, self.rest.dtype))

    def of_class(self, label: int) -> "BlurredNormals":
        """Return the distribution of one class."""
        parts = lambda n: (n.log_shares, n.means, n.axes, n.variances, n.rest)
        share, *others = (part[label : label + 1] for part in parts(self))
        return eqx.tree_at(parts, self, (jnp.zeros_like(share), *others))

    def _log_densities(
        self, copies: Float[Array, "copy *shape"], noise: Scalar
    ) -> Float[Array, "copy class"]:
        num, rank = self.variances.shape
        size = self.means[0].size
        axes = self.axes.reshape(num * rank, size)
        x, means = copies.reshape(-1, size), self.means.reshape(num, size)
        at_means = jnp.sum(self.axes.reshape(num, rank, size) * means[:, None], axis=-1)
        along = matmul(x, axes.T).reshape(-1, num, rank) - at_means[None]
        squares = jnp.sum((x[:, None] - means[None]) ** 2, axis=-1)
        beyond = jnp.maximum(squares - jnp.sum(along**2, axis=-1), 0)
        variances, rest = self.variances + noise**2, self.rest + noise**2
        exponents = jnp.sum(along**2 / variances[None], axis=-1) + beyond / rest[None]
        logs = jnp.sum(jnp.log(variances), axis=-1) + (size - rank) * jnp.log(rest)
        constant = self.log_shares - (logs + size * np.log(2 * np.pi)) / 2
        return constant[None] - exponents / 2


class NormalsAtNoise(AbstractReference):
    """`BlurredNormals` at one level of noise."""

    normals: BlurredNormals
    noise: Scalar

    def log_density(self, point: Point) -> Scalar:
        return self.normals.log_density(point, self.noise)

    @accept_integer_key
    def sample(self, key: Key, num: int) -> Particles:
        point_key, noise_key = jr.split(key)
        points = self.normals.sample(point_key, num)
        return points + self.noise * jr.normal(noise_key, points.shape, points.dtype)


def _num_directions(points: Float[np.ndarray, "point size"]) -> int:
    """Return how many directions have a variance of their own."""
    return min(points.shape[1] - 1, max(1, min(_ROWS, len(points)) // 2))


def _normals(
    points: Float[np.ndarray, "point size"], rank: int
) -> tuple[np.ndarray, ...]:
    """Return the mean, `rank` directions, their variances, and that beyond."""
    # Where points are too few for so many, the last directions are any that are
    # orthogonal, with the variance of all beyond.
    rows = np.linspace(0, len(points) - 1, min(_ROWS, len(points))).astype(int)
    mean, size = points.mean(axis=0), points.shape[1]
    centered = points[rows] - mean
    _, widths, found = np.linalg.svd(centered, full_matrices=False)
    own = min(rank, _num_directions(points))
    axes = np.linalg.qr(np.concatenate([found[:own], np.eye(rank, size)]).T)[0].T
    squares = widths**2 / len(centered)
    rest = squares[own:].sum() / (size - own)
    variances = np.full(rank, rest)
    variances[:own] = np.maximum(squares[:own], rest)
    # Shrunk towards a ball (Chen et al., 2010, OAS): those of few points fit their
    # noise, and leave a network that sees the same points nothing to learn.
    total = variances.sum() + (size - rank) * rest
    square = np.sum(variances**2) + (size - rank) * rest**2
    spread = (len(centered) + 1) * (square - total**2 / size)
    shrunk = min(1.0, (square + total**2) / max(spread, 1e-300))
    ball = shrunk * total / size
    variances, rest = (1 - shrunk) * variances + ball, (1 - shrunk) * rest + ball
    return mean, axes[:rank], variances, np.asarray(rest)
