import functools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from kernel_registry import KERNELS
from registries import normal, some_slow

# ------------------------------------------------------------ Stein's identity

_STEIN = {name: v for name, v in KERNELS.items() if name != "like distances"}
_COSTLY = ["e3", "se3", "product"]
_WRAPPED = ["periodic", "labels that wrap", "shifts"]
_MANY = 10_000  # a wrong score is then 10 standard errors or more from zero


@functools.cache
def is_centred(name):
    """Whether the kernel acts on points whose center of mass is the origin."""
    make, _, shape = KERNELS[name]
    return np.max(np.abs(make(1.0).project(jnp.ones(shape)))) < 0.1


@functools.cache
def terms_of(name):
    """Return the Stein force of each sample alone, compiled."""
    kernel = KERNELS[name][0](0.8)

    def terms(x, y, scores):
        one = lambda y, score: kernel.stein_force(x, y[None], score[None])
        return jax.vmap(one)(y, scores)

    return jax.jit(terms)


def largest_z_score(name, key, factor):
    """Return how far, in standard errors, the mean Stein force of exact samples is
    from zero, with the score of a standard normal law times `factor`."""
    shape = KERNELS[name][2]
    keys = jr.split(key)
    x, y = (
        np.asarray(normal(k, (num, *shape)))
        for k, num in zip(keys, (3, _MANY), strict=True)
    )
    if is_centred(name):
        x, y = (z - np.mean(z, axis=1, keepdims=True) for z in (x, y))
    scores = -factor * y
    if name in _WRAPPED:  # the phases have von Mises laws
        radii = np.array([1.5, 1.5, np.inf]) / np.pi
        angles = np.random.default_rng(0).vonmises(0, 2.0, y.shape)
        wraps = np.isfinite(radii)
        y = np.where(wraps, angles * np.where(wraps, radii, 1), y)
        scores = np.where(wraps, -factor * 2.0 * np.sin(angles) / radii, scores)
    if name == "shifts":  # but its density does not change with a common shift
        angles = np.random.default_rng(0).uniform(0, 2 * np.pi, len(y))
        y[:, 0] = y[:, 1] + y[:, 0]
        scores[:, 1] -= scores[:, 0]
        shift = np.outer(angles, radii[:2])
        y[:, :2] += shift
    terms = np.asarray(terms_of(name)(x, y, scores))
    mean, sd = terms.mean(axis=0), terms.std(axis=0)
    return np.max(np.abs(mean) / (sd / len(y) ** 0.5 + 1e-12))


@pytest.mark.parametrize("name", some_slow(list(_STEIN), _COSTLY))
def test_mean_stein_force_of_exact_samples_vanishes(name, key):
    assert largest_z_score(name, key, 1.0) < 5


@pytest.mark.parametrize(
    "name", some_slow([n for n in _STEIN if "invariant" not in n], _COSTLY)
)
def test_mean_stein_force_tells_a_wrong_score(name, key):
    assert largest_z_score(name, key, 2.0) > 5


def test_the_invariant_kernel_cannot_tell_a_wrong_score(key):
    assert largest_z_score("invariant c4", key, 2.0) < 5
