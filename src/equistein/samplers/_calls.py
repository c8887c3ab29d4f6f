"""How the compiled calls of a run are begun, and what is kept of them."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Int

from equistein._cores import calls_python, Cores, num_shares, Part
from equistein._donation import copied, gives_away, giving_away, set_aside
from equistein._types import Keys
from equistein.samplers._minibatched import of_step
from equistein.samplers._recorded_steps import Progress

Call = Any
"""What a call will have found: a `Progress`, the infos, and which of them are valid."""


class Calls:
    """Calls of compiled steps, one after the other: each goes on from the last.

    Args:
        recorded: `record_steps`, or that of many runs.
        keys: The key of the run, or of each.
        settings: The sampler, and the density.
        options: The tolerance, and how many particles are kept.
    """

    def __init__(
        self, recorded: Callable[..., Call], keys: Keys, settings: tuple, options: tuple
    ):
        self.recorded, self.keys = recorded, keys
        self.settings, self.options = settings, options

    def first(self, progress: Progress, ends: Int[Array, " record"]) -> Call:
        """Return what a run begins with, as if a call had found it.

        Args:
            progress: What it begins with.
            ends: Of the first call.
        """
        return progress, None, None

    def begin(self, last: Call, ends: Int[Array, " record"]) -> Call:
        """Begin a call that goes on from the last one."""
        return self.recorded(last[0], self.keys, *self.settings, ends, *self.options)

    def kept(self, call: Call) -> Call:
        """Return what outlives the next call."""
        return call

    def found(self, call: Call) -> tuple[Progress, Any, Any]:
        """Return what a call found."""
        return call

    def close(self) -> None:
        """End what was begun."""


class CallsThatTakeOver(Calls):
    """Calls that take over the buffers of the state before, which waits elsewhere."""

    def first(self, progress: Progress, ends: Int[Array, " record"]) -> Call:
        self.recorded = giving_away(self.recorded)
        return copied(progress), None, None  # the start may be the caller's

    def kept(self, call: Call) -> Call:
        return set_aside(call[0]), *call[1:]


class CallsOnCores(Calls):
    """Calls of several runs, of which each core has some in a thread."""

    def __init__(self, cores: Cores, *arguments: Any):
        super().__init__(*arguments)
        self.cores = cores
        self.keys = cores.split(self.keys)

    def first(self, progress: Progress, ends: Int[Array, " record"]) -> Call:
        parts = [(part, None, None) for part in self.cores.split(progress)]
        # No step: equal parts are compiled once, here, and not by each thread.
        self._of_part(jnp.zeros_like(ends))(parts[0], self.keys[0])
        return parts

    def begin(self, last: Call, ends: Int[Array, " record"]) -> Call:
        return self.cores.begin(self._of_part(ends), last, self.keys)

    def found(self, call: Sequence[Part]) -> tuple[Progress, Any, Any]:
        return self.cores.joined(call)

    def close(self) -> None:
        self.cores.close()

    def _of_part(self, ends: Int[Array, " record"]) -> Callable[..., Call]:
        return lambda last, keys: self.recorded(
            last[0], keys, *self.settings, ends, *self.options
        )


def calls_of(
    progress: Progress, runs: int | None, is_shared: bool, *arguments: Any
) -> Calls:
    """Return how a run is best called where its state is.

    Args:
        progress: The state that it begins with.
        runs: The number of runs, None for one.
        is_shared: Whether devices share the work.
        arguments: Of `Calls`.
    """
    if gives_away(progress):
        return CallsThatTakeOver(*arguments)
    if runs is not None and not is_shared:
        _, keys, (_, log_density), _ = arguments
        particles = progress.state.particles
        density = of_step(jr.key(0), log_density)[1]
        num = num_shares(runs, particles)
        if num > 1 and not calls_python(density, jnp.zeros_like(particles[0, 0])):
            return CallsOnCores(Cores(runs, num), *arguments)
    return Calls(*arguments)
