"""Samplers in BlackJAX's form."""

from collections.abc import Callable
from typing import Any, NamedTuple

from equistein._gate import gate
from equistein._types import LogDensity, Particles
from equistein.samplers._base import AbstractSampler


class SamplingAlgorithm(NamedTuple):
    """`init(position)` and `step(key, state)`, as BlackJAX names them."""

    init: Callable[..., Any]
    step: Callable[..., tuple[Any, Any]]


@gate
def as_blackjax(sampler: AbstractSampler, log_density: LogDensity) -> SamplingAlgorithm:
    """Return a sampler in the form of `blackjax.base.SamplingAlgorithm`.

    Args:
        sampler: Any sampler of this library.
        log_density: The unnormalized log density of one point.

    Returns:
        `init(position, rng_key=None)` and `step(rng_key, state)`, where the position
        is the array of all particles.
    """

    def init(position: Particles, rng_key: Any = None):
        del rng_key  # no sampler here starts at random
        return sampler.init(position, log_density)

    def step(rng_key, state):
        return sampler.step(rng_key, state, log_density)

    return SamplingAlgorithm(init, step)
