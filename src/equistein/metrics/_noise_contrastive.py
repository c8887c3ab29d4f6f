"""Noise-contrastive estimation of a linear energy, by one logistic regression."""

import math
from typing import Any

import jax
import jax.random as jr
import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import expit, gammaln, logsumexp

from equistein._check_arguments import check_finite_arguments
from equistein._types import Key
from equistein.energies import count_classes, LinearEnergy

_RIDGES = (10.0, 1.0, 0.1, 0.01)  # the last: energies far from data spread by 10 kT
_HELD_OUT = 5  # each fifth point judges the ridge
_LEAST, _MOST = 10_000, 50_000
_CENTERS = 2_000  # points that noise is near
_BLOCK = 1_000  # points whose distances to these are in memory


@check_finite_arguments
def noise_contrastive_estimation(
    key: Key, energy: LinearEnergy, data: Any, *, labels: Any = None,
    blur: float | None = None, ridge: float | None = None,
) -> LinearEnergy:  # fmt: skip
    r"""Return the energy that tells data best from noise of a known density q.

    $$\max_{c, z} \sum_i \log \sigma(G(x_i)) + \sum_j \log \sigma(-G(y_j))
      - \tfrac12 \lambda |c|^2, \qquad G(x) = -E_0(x) - c \cdot F(x) - z - \log q(x),$$

    with at most 50 000 points x of the data. Half of the noise y is from a Cauchy
    distribution with the center and shape of the base $E_0$, the fitted energy of a
    normal one, and half is near points of the data.

    With `labels`, from 0 on, each class has coefficients and a bias of its own.
    Rounded data need normal noise, of the size `blur`. The ridge $\lambda$ is, without
    one, what is best for each fifth point, held out.

    References:
        Gutmann and Hyvarinen (2012), Noise-contrastive estimation of unnormalized
        statistical models.
    """
    base: Any = energy.base
    if not isinstance(base, LinearEnergy) or base.coefficients is None:
        raise ValueError("`energy` needs a `base`, as fit_linear returns of Quadratic.")
    rng = np.random.default_rng(np.asarray(jr.key_data(key)))
    rows = np.sort(rng.permutation(len(data))[:_MOST])
    points = np.asarray(data[rows], float)
    points = points + (blur or 0) * rng.normal(size=points.shape)
    kinds = np.zeros(len(data), int) if labels is None else np.asarray(labels)
    if kinds.shape != (len(data),) or len(set(kinds[rows])) < count_classes(kinds):
        raise ValueError("`labels` need a class for each point, and points of each.")
    center, root = _moments(base, points.shape[1:])
    flat = np.linalg.solve(root, (points.reshape(len(points), -1) - center).T).T
    num = max(len(points), min(10 * len(points), _MOST), _LEAST)
    both, log_noise = _noise(rng, flat, num)
    both = (center + both @ root.T).reshape(-1, *points.shape[1:])
    known = base.features.in_double(both) @ np.asarray(base.coefficients, float)
    offsets = -known - log_noise  # both up to a constant, which z takes up
    design = np.column_stack([energy.features.in_double(both), np.ones(len(both))])
    kinds, found = np.append(kinds[rows], np.full(num, -1)), []
    for kind in range(kinds.max() + 1):
        chosen = (kinds == kind) | (kinds < 0)
        parts = [part[chosen] for part in (design, offsets, kinds >= 0)]
        best, start = _best_ridge(rng, parts) if ridge is None else (ridge, None)
        found.append(_regression(parts, best, start))
    theta = np.stack(found)
    if labels is None:
        return energy.with_coefficients(theta[0, :-1])
    return energy.with_coefficients(theta[:, :-1], -theta[:, -1])


def _best_ridge(rng: Any, parts: Any) -> tuple[float, np.ndarray]:
    """Return the ridge that is best for each fifth point, held out, and its fit."""
    is_held = rng.permutation(len(parts[0])) % _HELD_OUT == 0
    kept, held = ([part[rows] for part in parts] for rows in (~is_held, is_held))
    theta, found = None, []
    for ridge in _RIDGES:  # each begins where the one before ended
        theta = _regression(kept, ridge, theta)
        found.append((_loss(theta, *held), ridge, theta))
    return min(found, key=lambda each: each[0])[1:]


def _moments(normal: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of a normal energy, and a root of its covariance."""
    flat, origin = lambda x: normal(x.reshape(shape)), np.zeros(math.prod(shape))
    with jax.enable_x64(True):
        both = jax.jit(lambda x: (jax.grad(flat)(x), jax.hessian(flat)(x)))(origin)
    slope, curvature = map(np.asarray, both)
    root = np.linalg.inv(np.linalg.cholesky(curvature)).T
    return -root @ (root.T @ slope), root


def _noise(rng: Any, points: np.ndarray, num: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and then noise, and the log density of the noise at each."""
    dim, centers = points.shape[1], points[rng.permutation(len(points))[:_CENTERS]]
    width = (4 / (dim + 2) / len(centers)) ** (1 / (dim + 4))  # Silverman's rule
    steps, divisor = rng.normal(size=(num, dim)), abs(rng.normal(size=(num, 1)))
    near = centers[rng.integers(len(centers), size=num)] + width * steps
    drawn = np.where(rng.random((num, 1)) < 0.5, near, steps / divisor)

    def log_density(x: np.ndarray) -> np.ndarray:
        squared = cdist(x, centers, "sqeuclidean")
        squared[squared == 0] = np.inf  # a point does not count at itself
        half = (dim + 1) / 2
        cauchy = gammaln(half) - half * np.log(np.pi * (1 + np.sum(x**2, axis=1)))
        kernel = logsumexp(-squared / (2 * width**2), axis=1) - np.log(len(centers))
        kernel -= dim * np.log(width * np.sqrt(2 * np.pi))
        return np.logaddexp(cauchy, kernel) - np.log(2)

    both = np.concatenate([points, drawn])
    blocks = np.array_split(both, 1 + len(both) // _BLOCK)
    return both, np.concatenate([log_density(block) for block in blocks])


def _loss(theta: Any, design: Any, offsets: Any, is_data: Any) -> float:
    gaps = offsets - design @ theta
    return np.sum(np.logaddexp(0, np.where(is_data, -gaps, gaps)))


def _regression(parts: Any, ridge: float, start: Any) -> np.ndarray:
    """Return the coefficients, and last z, which no ridge holds."""
    design, offsets, is_data = parts
    ridges, coarse = np.full(design.shape[1], ridge), design.astype(np.float32)
    ridges[-1] = 0
    if start is None:
        start = np.zeros(design.shape[1])
        start[-1] = logsumexp(offsets[~is_data]) - np.log(is_data.sum())

    def hessian(theta: np.ndarray) -> np.ndarray:
        chances = expit(offsets - design @ theta)
        weights = (chances * (1 - chances)).astype(np.float32)
        return (coarse.T * weights) @ coarse + np.diag(ridges)

    return minimize(
        lambda theta: _loss(theta, *parts) + ridges @ theta**2 / 2,
        start, hess=hessian, method="trust-exact",
        jac=lambda x: design.T @ (is_data - expit(offsets - design @ x)) + ridges * x,
        options={"gtol": 1e-3 * len(design) ** 0.5, "initial_trust_radius": 10},
    ).x  # fmt: skip
