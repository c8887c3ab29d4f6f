"""What drives every sampler, and records what it did."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Int, PyTree

from equistein._arrays import check_particles
from equistein._progress import progress_bar
from equistein._types import Key, LogDensity, Particles, Scalar
from equistein.samplers._advance import advance_watched
from equistein.samplers._base import AbstractSampler
from equistein.samplers._checks import (
    check_counts,
    check_density,
    check_state,
)
from equistein.samplers._samples import Samples

_CHUNK = 64  # steps between two looks at whether all numbers are finite
_NUM_RECORDS = 100  # by default
_NUM_CALLS = 20  # compiled calls in a run: the moments at which it can be stopped
_LENGTH = 2 * _NUM_RECORDS // _NUM_CALLS  # records a call, for any number of steps


class NonFiniteError(FloatingPointError):
    """A run met a particle that is not finite.

    Attributes:
        step: The number of the step that gave it.
        samples: The run up to the last finite particles.
    """

    def __init__(self, message: str, step: int, samples: Samples):
        super().__init__(message)
        self.step = step
        self.samples = samples


class RunInterrupted(KeyboardInterrupt):
    """A run was stopped with Ctrl-C.

    Attributes:
        samples: The run up to then; give `samples.state` to `run` to go on.
    """

    def __init__(self, samples: Samples):
        super().__init__(f"stopped after {samples.num_steps} steps")
        self.samples = samples


def run(
    key: Key,
    sampler: AbstractSampler,
    log_density: LogDensity,
    particles: Particles | None = None,
    *,
    num_steps: int,
    tol: float | None = None,
    record_every: int | None = None,
    keep: int = 0,
    initial_state: PyTree | None = None,
    progress: bool = False,
    check: bool = True,
) -> Samples:
    """Move particles towards a density for a number of steps, in compiled loops.

    Args:
        key: The source of randomness; step i uses `fold_in(key, i)`.
        sampler: Such as `SVGD(kernel, optimizer)`. Equal samplers are compiled once,
            for any `num_steps`; a schedule that is a function of yours, once each.
        log_density: The unnormalized log density of one point.
        particles: The start, stacked on axis 0, floating point.
        num_steps: The number of steps to take.
        tol: Stop once the root mean square update is below this, in the units of the
            points; None takes all steps.
        record_every: The number of steps between two entries of the history; by
            default a hundredth of `num_steps`.
        keep: The number of particles, the first ones, whose places the history holds
            at each recorded step, as `particles` of shape (record, keep, *shape).
        initial_state: The `state` of earlier samples, to go on from instead of
            `particles`.
        progress: Whether to show a progress bar.
        check: Whether to check the density at the start, and the symmetry that the
            kernel relies on.

    Returns:
        The final particles and the history.

    Raises:
        ValueError: If an argument is not what it should be, with the remedy.
        InvarianceError: If the density lacks the kernel's symmetry.
        NonFiniteError: If a particle is no longer finite, or at a recorded step the
            density; it holds the last good particles.
        RunInterrupted: On Ctrl-C; it holds the run so far.
    """
    check_counts(num_steps, tol, record_every, keep)
    if not isinstance(sampler, AbstractSampler):
        raise ValueError(
            "`sampler` must be one such as SVGD(kernel, optimizer), but got "
            f"{sampler!r}."
        )
    state = _first_state(sampler, log_density, particles, initial_state)
    if check:
        check_density(log_density, state.particles, "particles")
        sampler.check(log_density, state.particles)
    done = int(state.step)
    no = jnp.zeros((), bool)
    progress_state = Progress(state, state, no, no)
    every = record_every or max(1, num_steps // _NUM_RECORDS)
    calls = _calls(done, num_steps, every, 1 if record_every else _LENGTH)
    records = []
    static_tol = None if tol is None else float(tol)
    try:
        with progress_bar(total=num_steps, disable=not progress, unit="step") as bar:
            for ends in calls:
                progress_state, info, valid = _record_steps(
                    key, sampler, log_density, progress_state, ends, static_tol, keep
                )
                records.append(_record(info, ends, valid, progress_state))
                bar.update(int(progress_state.state.step) - done - bar.n)
                if bool(progress_state.converged | progress_state.failed):
                    break
    except KeyboardInterrupt:
        raise RunInterrupted(_collect(sampler, progress_state, records, done)) from None
    if bool(progress_state.failed):
        raise _failure(key, sampler, log_density, progress_state, records, done)
    return _collect(sampler, progress_state, records, done)


class Progress(eqx.Module):
    """The state of a run, and the last one known to be finite."""

    state: PyTree
    good: PyTree
    converged: Bool[Array, ""]
    failed: Bool[Array, ""]


def _first_state(
    sampler: AbstractSampler,
    log_density: LogDensity,
    particles: Particles | None,
    initial_state: PyTree | None,
) -> PyTree:
    """Return the state to go on from, or that of new particles; both are checked."""
    if initial_state is not None:
        if particles is not None:
            raise ValueError(
                "`run` got `initial_state` and also `particles`, which the state "
                "holds: give one or the other."
            )
        check_state(sampler, initial_state)
        return sampler.renewed(initial_state, log_density)
    particles = check_particles(particles, "particles")
    sampler.check_shape(particles.shape[1:])
    return eqx.filter_jit(sampler.init)(particles)


@eqx.filter_jit
def _record_steps(
    key: Key,
    sampler: AbstractSampler,
    log_density: LogDensity,
    progress: Progress,
    ends: Int[Array, " record"],
    tol: float | None,
    keep: int,
) -> tuple[Progress, dict[str, Array], Bool[Array, " record"]]:
    """Step to each of `ends` in turn and record the info of the last step before it."""

    def unrecorded_steps(progress, end):
        state = progress.state
        last = jnp.minimum(state.step + _CHUNK, end - 1)
        state, converged = advance_watched(key, sampler, log_density, state, last, tol)
        return _judged(progress, state, converged)

    def recorded_step(progress):
        state = progress.state
        state, info = sampler.step(jr.fold_in(key, state.step), state, log_density)
        converged = progress.converged
        if tol is not None:
            converged = converged | (info.update_norm < tol)
        record = dict(vars(info))
        if keep:
            record["particles"] = state.particles[:keep]
        return _judged(progress, state, converged, info.log_density), record

    def segment(progress, end):
        progress = jax.lax.while_loop(
            lambda p: (p.state.step < end - 1) & ~p.converged & ~p.failed,
            lambda p: unrecorded_steps(p, end),
            progress,
        )
        # A run that converged on the way takes one more step, the one to record.
        go_on = (progress.state.step < end) & ~progress.failed
        blank = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
            jax.eval_shape(recorded_step, progress)[1],
        )
        progress, info = jax.lax.cond(
            go_on, recorded_step, lambda progress: (progress, blank), progress
        )
        return progress, (info, go_on & ~progress.failed)

    def unless_over(progress, end):
        over = progress.converged | progress.failed
        return segment(progress, jnp.where(over, progress.state.step, end))

    progress, (info, valid) = jax.lax.scan(unless_over, progress, ends)
    return progress, info, valid


def _judged(
    progress: Progress,
    state: PyTree,
    converged: Bool[Array, ""],
    log_density: Scalar | float = 0.0,
) -> Progress:
    """Keep `state` as the last good one if all is finite; otherwise the run failed."""
    finite = jnp.all(jnp.isfinite(state.particles)) & jnp.isfinite(log_density)
    good = jax.tree.map(
        lambda new, old: jnp.where(finite, new, old), state, progress.good
    )
    return Progress(state, good, converged & finite, ~finite)


def _calls(
    done: int, num_steps: int, every: int, least: int
) -> list[Int[Array, " record"]]:
    """Split the steps to record at into the ends of a few calls of equal length.

    Steps are not repeated: an end that was reached before adds no record.
    """
    ends = np.arange(done + every, done + num_steps + 1, every)
    if num_steps % every:
        ends = np.append(ends, done + num_steps)
    if not len(ends):
        return []
    records = -(-len(ends) // _NUM_CALLS)
    ends = np.pad(ends, (0, -len(ends) % records), mode="edge").reshape(-1, records)
    ends = np.pad(ends, ((0, 0), (0, max(0, least - records))), mode="edge")
    return [jnp.asarray(part) for part in ends]


def _record(info, ends, valid, progress) -> dict[str, np.ndarray]:
    valid = np.asarray(valid)
    fields = {name: np.asarray(value)[valid] for name, value in info.items()}
    steps = np.asarray(ends)[valid]
    if len(steps) and bool(progress.converged):
        steps[-1] = int(progress.state.step)
    return {"step": steps} | fields


def _collect(
    sampler: AbstractSampler, progress: Progress, records: list[dict], done: int
) -> Samples:
    history = {}
    if records:
        history = {
            name: np.concatenate([record[name] for record in records])
            for name in records[0]
        }
    state = progress.good
    return Samples(
        state.particles,
        history,
        int(state.step) - done,
        bool(progress.converged),
        state,
        {name: np.asarray(x) for name, x in sampler.summary(state).items()},
    )


def _failure(key, sampler, log_density, progress, records, done) -> NonFiniteError:
    """Replay from the last good state to find the step that failed."""
    chunk = jnp.arange(1, _CHUNK + 1) + progress.good.step
    no = jnp.zeros((), bool)
    replay = Progress(progress.good, progress.good, no, no)
    replay, _, _ = _record_steps(key, sampler, log_density, replay, chunk, None, 0)
    samples = _collect(sampler, replay, records, done)
    step = int(replay.good.step) + 1
    return NonFiniteError(
        f"A particle or its density stopped being finite in step {step}; the error's "
        f"`samples` hold the particles after step {step - 1}. Take a smaller step, "
        "clip the score (`SVGD(..., score_clip=20.0)`), or look at `log_density` "
        "there.",
        step,
        samples,
    )
