"""Ladders of inverse temperatures, and the checks of what lies on them."""

import os
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from equistein._limits import check_made
from equistein._types import LogDensity, Particles, Point
from equistein.samplers._geometric_path import Flat
from equistein.samplers._markov_chains import AbstractMarkovChains
from equistein.samplers._reference import AbstractReference

_ROUNDS = 12  # of adaptation, at most; each is as long as all before it
_LEAST = 1e-3  # rejection of a pair, or temperatures would coincide
_NUM_LOOKED_AT = 64  # samples of the reference
_BYTES = 256  # of a temperature's own state, about

COPIES = 8
"""How many of a point a chain needs: values, scores, proposals."""


def first_ladder(num: int) -> Float[Array, " temperature"]:
    """Return inverse temperatures from 1 to 0, closest at the hot end."""
    return (jnp.arange(num - 1, -1, -1) / (num - 1)) ** 4


def is_round_end(step: Int[Array, ""], num_adapt: int) -> Bool[Array, ""]:
    """Return whether the ladder moves after this many steps.

    The rounds double in length; the last half of the adaptation is for step sizes.
    """
    ends = [num_adapt >> j for j in range(1, _ROUNDS) if num_adapt >> j]
    return jnp.any(step == jnp.asarray(ends, int))


def equal_rejection(
    betas: Float[Array, " temperature"], rejections: Float[Array, " pair"]
) -> Float[Array, " temperature"]:
    r"""Return the ladder whose neighbors would all refuse equally often.

    The rejections, summed along the ladder, are the barrier $\Lambda(\beta)$ whatever
    the ladder; it is inverted at equal distances, linearly between temperatures.

    References:
        Syed et al. (2022), Non-reversible parallel tempering, algorithm 2.
    """
    barrier = jnp.cumsum(jnp.maximum(rejections, _LEAST))
    barrier = jnp.concatenate([jnp.zeros_like(barrier[:1]), barrier])
    wanted = barrier[-1] * jnp.linspace(0, 1, len(betas), dtype=betas.dtype)
    return jnp.interp(wanted, barrier, betas).at[0].set(1).at[-1].set(betas[-1])


def check_chains(name: str, inner: Any, reference: Any) -> None:
    """Raise unless chains can be moved by `inner`, from `reference` on.

    Raises:
        ValueError: If they cannot.
    """
    if not isinstance(inner, AbstractMarkovChains):
        raise ValueError(
            f"{name} needs `inner`, a sampler whose chains are independent and leave "
            "the density invariant, such as MALA(0.1) or one of from_blackjax, but got "
            f"{type(inner).__name__}: particles of SVGD interact, and Langevin without "
            "acceptance is biased."
        )
    inner.check_invariant()
    if reference is not None and not isinstance(reference, AbstractReference):
        raise ValueError(
            f"{name} needs `reference`, a normalized density with exact samples such "
            f"as Normal(center, scale), but got {reference!r}."
        )


def check_ladder(
    name: str, inner: Any, ladder: Any, num: Any, reference: Any, num_adapt: Any
) -> None:
    """Raise unless the settings of tempering are what they should be.

    Raises:
        ValueError: If one is not, naming it.
    """
    check_chains(name, inner, reference)
    if not isinstance(num_adapt, int) or num_adapt < 0:
        raise ValueError(f"{name} needs `num_adapt` >= 0, but got {num_adapt!r}.")
    if ladder is None:
        if not isinstance(num, int) or num < 2:
            raise ValueError(f"{name} needs `num_temperatures` >= 2, but got {num!r}.")
        what = f"{name} with `num_temperatures` of {num}"
        check_made(what, _BYTES * num, "take fewer")
        if num_adapt < 4:
            raise ValueError(
                f"{name} needs `num_adapt` >= 4 for a ladder that adapts, but got "
                f"{num_adapt!r}: give `inverse_temperatures` to have it fixed."
            )
        return
    ladder = np.asarray(ladder)
    good = (
        ladder.ndim == 1
        and len(ladder) >= 2
        and ladder[0] == 1
        and bool(np.all(np.diff(ladder) < 0))
        and ladder[-1] >= 0
    )
    if not good:
        raise ValueError(
            f"{name} needs `inverse_temperatures`, at least two numbers that fall from "
            f"1, as [1, 0.5, 0.1, 0], but got {ladder.tolist()}."
        )
    if reference is not None and ladder[-1] > 0:
        raise ValueError(
            f"{name} got a `reference` that its ladder, which ends at {ladder[-1]:g}, "
            "never reaches: end `inverse_temperatures` at 0."
        )


def check_path(
    name: str,
    log_density: LogDensity,
    particles: Particles,
    reference: AbstractReference | Flat,
    project: Callable[[Point], Point],
    num: int,
) -> None:
    """Raise unless a path from the reference to the density can be walked.

    Raises:
        ValueError: If the chains need more memory than there is, live on another
            subspace, or the density is infinite or not a number somewhere.
    """
    needed, there = COPIES * num * particles.nbytes, _memory()
    if needed > there:
        raise ValueError(
            f"{name} needs about {needed / 2**30:.1f} GiB for {num} temperatures of "
            f"{len(particles)} chains, but there are {there / 2**30:.1f}: take fewer "
            "particles or temperatures."
        )
    if isinstance(reference, Flat):
        return
    point = jr.normal(jr.key(0), particles.shape[1:], particles.dtype)
    gap = jnp.max(jnp.abs(project(point) - reference.project(point)))
    if not gap < 1e-4:
        raise ValueError(
            f"{name} needs a `reference` on the subspace of its chains: give both the "
            "same, as Normal(center, scale, cloud) and MALA(..., "
            "project=cloud.project)."
        )
    values = _values(log_density, reference)
    bad = int(jnp.sum(jnp.isnan(values) | (values == jnp.inf)))
    if bad:
        raise ValueError(
            f"`log_density` is infinite or not a number at {bad} of {len(values)} "
            "samples of the reference: it must be finite, or minus infinity where the "
            "density is zero."
        )
    if not bool(jnp.any(jnp.isfinite(values))):
        raise ValueError(
            f"`log_density` is zero density at all of {len(values)} samples of the "
            "reference: give a `reference` that meets the support of the density."
        )


@eqx.filter_jit
def _values(
    log_density: LogDensity, reference: AbstractReference
) -> Float[Array, " sample"]:
    return jax.vmap(log_density)(reference.sample(jr.key(0), _NUM_LOOKED_AT))


def _memory() -> float:
    """Return the bytes of the device that computes."""
    stats = jax.devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return float(stats["bytes_limit"])
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
