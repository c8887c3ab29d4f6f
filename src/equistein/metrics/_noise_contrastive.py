"""Noise-contrastive estimation of a linear energy, by one logistic regression."""

import math
from typing import Any

import jax
import jax.random as jr
import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from equistein._check_arguments import check_finite_arguments
from equistein._types import Key
from equistein.energies import LinearEnergy

_RIDGES = (0.01, 0.1, 1.0, 10.0)  # the first: energies far from data spread by 10 kT
_HELD_OUT = 5  # each fifth point judges the ridge
_LEAST, _MOST = 10_000, 50_000


@check_finite_arguments
def noise_contrastive_estimation(
    key: Key, energy: LinearEnergy, data: Any, *, labels: Any = None,
    blur: float | None = None, ridge: float | None = None,
) -> LinearEnergy:  # fmt: skip
    r"""Return the energy that tells data best from noise of a wide density q.

    $$\max_{c, z} \sum_i \log \sigma(G(x_i)) + \sum_j \log \sigma(-G(y_j))
      - \tfrac12 \lambda |c|^2, \qquad G(x) = -E_0(x) - c \cdot F(x) - z - \log q(x),$$

    with at most 50 000 points x of the data, and the noise y from a Cauchy distribution
    with the center and shape of the base $E_0$, the fitted energy of a normal one.

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
    kinds = np.zeros(len(points), int) if labels is None else np.asarray(labels)[rows]
    num, (wide, widths) = len(points), _cauchy(base, points.shape[1:])
    drawn = wide.rvs(max(num, min(10 * num, _MOST), _LEAST), random_state=rng)
    drawn = drawn.reshape(-1, len(widths)) * widths
    both = np.concatenate([points, drawn.reshape(-1, *points.shape[1:])])
    known = base.features.in_double(both) @ np.asarray(base.coefficients, float)
    offsets = -known - wide.logpdf(both.reshape(len(both), -1) / widths)
    design = np.column_stack([energy.features.in_double(both), np.ones(len(both))])
    kinds = np.append(kinds, np.full(len(drawn), -1))
    found = []
    for kind in range(kinds.max() + 1):
        chosen = (kinds == kind) | (kinds < 0)
        parts = [part[chosen] for part in (design, offsets, kinds >= 0)]
        found.append(
            _regression(parts, _best_ridge(rng, parts) if ridge is None else ridge)
        )
    theta = np.stack(found)
    if labels is None:
        return energy.with_coefficients(theta[0, :-1])
    return energy.with_coefficients(
        theta[:, :-1], math.log(len(drawn) / num) - theta[:, -1]
    )


def _best_ridge(rng: Any, parts: Any) -> float:
    """Return the ridge that is best for each fifth point, held out."""
    is_held = rng.permutation(len(parts[0])) % _HELD_OUT == 0
    kept, held = ([part[rows] for part in parts] for rows in (~is_held, is_held))
    return min(_RIDGES, key=lambda each: _loss(_regression(kept, each), *held))


def _cauchy(normal: Any, shape: tuple[int, ...]) -> tuple[Any, np.ndarray]:
    """Return the noise's distribution, in units of widths of coordinates, and these."""
    from scipy.stats import multivariate_t  # which takes a third of a second

    flat, origin = lambda x: normal(x.reshape(shape)), np.zeros(math.prod(shape))
    with jax.enable_x64(True):
        both = jax.jit(lambda x: (jax.grad(flat)(x), jax.hessian(flat)(x)))(origin)
    slope, curvature = map(np.asarray, both)
    widths = 1 / np.sqrt(np.diag(curvature))
    covariance = np.linalg.inv(widths * curvature * widths[:, None])
    parts: Any = -covariance @ (widths * slope), covariance
    return multivariate_t(*parts, df=1), widths


def _loss(theta: Any, design: Any, offsets: Any, is_data: Any) -> float:
    gaps = offsets - design @ theta
    return np.sum(np.logaddexp(0, np.where(is_data, -gaps, gaps)))


def _regression(parts: Any, ridge: float) -> np.ndarray:
    """Return the coefficients, and last z, which no ridge holds."""
    design, offsets, is_data = parts
    ridges, start = np.full(design.shape[1], ridge), np.zeros(design.shape[1])
    ridges[-1], start[-1] = 0, logsumexp(offsets[~is_data]) - np.log(is_data.sum())
    chances = lambda theta: expit(offsets - design @ theta)
    hessian = lambda p: (design.T * (p * (1 - p))) @ design + np.diag(ridges)
    return minimize(
        lambda theta: _loss(theta, *parts) + ridges @ theta**2 / 2,
        start, jac=lambda theta: design.T @ (is_data - chances(theta)) + ridges * theta,
        hess=lambda theta: hessian(chances(theta)), method="trust-exact",
        options={"gtol": 1e-3 * len(design) ** 0.5},
    ).x  # fmt: skip
