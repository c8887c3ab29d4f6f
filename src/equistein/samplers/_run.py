"""`run`: validate, initialize, loop over compiled steps, finish."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Int, PyTree

from equistein._arrays import as_keys
from equistein._progress import progress_bar
from equistein._sharding import check_agreed, checked_mesh, fetch, replicate
from equistein._types import AnyKey, Keys, LogDensity, Particles
from equistein.samplers._base import AbstractSampler
from equistein.samplers._samples import (
    collected,
    EvaluationFailed,
    NonFiniteError,
    RunInterrupted,
    Samples,
)
from equistein.samplers._scan import (
    CHECK_EVERY,
    record_steps,
    record_steps_of_runs,
    RunStatus,
)
from equistein.samplers._validation import (
    callback_errors,
    CallbackError,
    check_density,
    check_sampler,
    check_signature,
    check_state,
    check_stored_values,
    checked_start,
    errors_at_the_start,
    num_runs,
    over_runs,
    RunSchedule,
)
from equistein.samplers._warnings import (
    symmetry_warnings,
    with_warnings,
    zero_score_warnings,
)

_NUM_RECORDS = 100  # by default
_NUM_CALLS = 20  # compiled calls in a run: the moments at which it can be stopped
# Twice, as steps between records are rounded down: one compiled length for all runs.
_RECORDS_PER_CALL = 2 * _NUM_RECORDS // _NUM_CALLS

Result = tuple[RunStatus, dict[str, Array], Array]
"""What a compiled call returns: the status, the records, and which were made."""


def run(
    key: Keys | AnyKey,
    sampler: AbstractSampler,
    log_density: LogDensity,
    particles: Particles | None = None,
    *,
    num_steps: int,
    tol: float | None = None,
    record_every: int | None = None,
    keep: int = 0,
    initial_state: PyTree | None = None,
    mesh: Mesh | None = None,
    progress: bool = False,
    check: bool = True,
) -> Samples:
    """Move particles towards a density for a number of steps, in compiled loops.

    Several keys are several runs, vmapped: with `jr.split(key, r)` and particles of
    shape (r, n, *shape) the samples have a leading axis of runs, and `samples[i]` are
    those of one.

    Args:
        key: The source of randomness, `jax.random.key(0)` or an integer; step i uses
            `fold_in(key, i)`. An array of keys for as many runs.
        sampler: Such as `SVGD(kernel, optimizer)`. Equal samplers are compiled once,
            for any `num_steps`; each custom schedule function, once more.
        log_density: The unnormalized log density of one point.
        particles: The start, floating point, of shape (n, *shape); of several runs
            (r, n, *shape).
        num_steps: The number of steps to take.
        tol: Stop once the root mean square length of the updates is below this, in the
            units of the points; None takes all steps. Several runs stop one by one.
        record_every: The number of steps between two entries of the history; by
            default a hundredth of `num_steps`.
        keep: The number of particles, the first ones, whose positions the history holds
            at each recorded step, as `particles` of shape (record, keep, *shape).
        initial_state: The `state` of earlier samples of the same density, to continue
            from instead of `particles`.
        mesh: The devices that share the work, such as `es.device_mesh()`; None is one.
        progress: Whether to show a progress bar.
        check: Whether to check the density at the start, and the symmetry that the
            kernel relies on.

    Returns:
        The final particles and the history, and in `warnings` the reasons to distrust
        them; each is a `SamplingWarning` too.

    Raises:
        ValueError: If an argument is invalid, with the remedy.
        InvarianceError: If the density lacks the kernel's symmetry.
        NonFiniteError: If a particle, or the density at a recorded step, is no longer
            finite; it holds the last good particles.
        RunInterrupted: On Ctrl-C; it holds the run so far.
        EvaluationFailed: If a density that calls Python raises; it holds the run so
            far.
    """
    keys = as_keys(key)
    schedule = RunSchedule(num_steps, tol, record_every, keep)
    setup = _validate(keys, sampler, log_density, schedule, mesh, check)
    start = _initialize(setup, particles, initial_state)
    status, records, make_error = _loop(setup, start.state, progress)
    return _finish(setup, start, status, records, make_error)


@dataclasses.dataclass(frozen=True)
class _Setup:
    """The validated arguments of a run; `runs` is None for one key."""

    keys: Keys
    sampler: AbstractSampler
    log_density: LogDensity
    schedule: RunSchedule
    runs: int | None
    every: int
    mesh: Mesh | None
    check: bool


@dataclasses.dataclass(frozen=True)
class _Start:
    """Where a run begins: its state, particles on the host, and known warnings."""

    state: PyTree
    particles: np.ndarray
    warnings: tuple[str, ...]
    step: int


def _validate(
    keys: Keys,
    sampler: AbstractSampler,
    log_density: LogDensity,
    schedule: RunSchedule,
    mesh: Mesh | None,
    check: bool,
) -> _Setup:
    check_sampler(sampler, log_density)
    if mesh is not None:
        mesh = checked_mesh("run", mesh)
        sampler = sampler.sharded(mesh)
    every = schedule.record_every or max(1, schedule.num_steps // _NUM_RECORDS)
    return _Setup(
        keys, sampler, log_density, schedule, num_runs(keys), every, mesh, check
    )


def _initialize(
    setup: _Setup, particles: Particles | None, initial_state: PyTree | None
) -> _Start:
    """Return where the run starts; with checks of the density there."""
    runs, sampler, log_density = setup.runs, setup.sampler, setup.log_density
    if setup.mesh is not None:
        start = initial_state if particles is None else particles
        check_agreed("run", (setup.keys, sampler, start), setup.schedule)
    state = _first_state(setup, particles, initial_state)
    setup.schedule.check_history(state.particles, runs, setup.every)
    warnings = ()
    if setup.check:
        points = _merge_runs(runs, fetch(state.particles))
        scores = check_density(log_density, points, "particles")
        if initial_state is not None:
            stored = over_runs(runs, sampler.log_densities)(state)
            stored = None if stored is None else np.ravel(np.asarray(fetch(stored)))
            check_stored_values(stored, log_density, points)
        warnings = zero_score_warnings(np.asarray(points), scores)
        try:
            sampler.check(log_density, points)
        except ValueError as error:
            error.add_note("`es.run(..., check=False)` continues without this check.")
            raise
    return _Start(
        state, np.asarray(state.particles), warnings, int(jnp.min(state.step))
    )


def _on_devices(setup: _Setup) -> _Setup:
    """Return the setup with its arrays on the devices of the mesh."""
    if setup.mesh is None:
        return setup
    arrays = setup.keys, setup.sampler, setup.log_density
    keys, sampler, log_density = replicate(arrays, setup.mesh)
    return dataclasses.replace(
        setup, keys=keys, sampler=sampler, log_density=log_density
    )


def _first_state(
    setup: _Setup, particles: Particles | None, initial_state: PyTree | None
) -> PyTree:
    """Return the state to continue from, or that of new particles; both checked."""
    runs, sampler, log_density = setup.runs, setup.sampler, setup.log_density
    if initial_state is not None:
        if particles is not None:
            raise ValueError(
                "`run` got `initial_state` and also `particles`, which the state "
                "holds: give one or the other."
            )
        check_state(runs, sampler, initial_state)
        return initial_state
    particles = checked_start(runs, sampler, particles)
    if setup.check:
        check_signature(log_density, particles if runs is None else particles[0])
    with errors_at_the_start():
        return jax.block_until_ready(
            _initial_state(runs, sampler, log_density, particles)
        )


@eqx.filter_jit
def _initial_state(runs, sampler, log_density, particles):
    return over_runs(runs, lambda x: sampler.init(x, log_density))(particles)


def _loop(
    setup: _Setup, state: PyTree, show_progress: bool
) -> tuple[RunStatus, list, Callable[[Samples], BaseException] | None]:
    """Take the steps.

    Returns the status, the records of each call, and what makes the error that ended
    the run early, if one did.
    """
    done, num_steps = int(jnp.min(state.step)), setup.schedule.num_steps
    setup = _on_devices(setup)
    if setup.mesh is not None:
        state = replicate(state, setup.mesh)
    false = jnp.zeros(() if setup.runs is None else setup.runs, bool)
    status, records = RunStatus(state, converged=false, failed=false), []
    bar = progress_bar(total=num_steps, disable=not show_progress, unit="step")
    try:
        with callback_errors(), bar:
            for result in _results(setup, status, _ends(setup, done)):
                status, *record = result
                flags = status.state.step, status.failed, status.converged
                # One transfer: separate ones would each wait for the device.
                record, flags = jax.device_get(fetch((tuple(record), flags)))
                records.append(record)
                step, failed, converged = flags
                bar.update(int(np.min(step)) - done - bar.n)
                if np.any(failed) or np.all(converged):
                    break
    except KeyboardInterrupt:
        return status, records, RunInterrupted
    except CallbackError as error:
        return status, records, functools.partial(EvaluationFailed, str(error))
    return status, records, None


def _results(
    setup: _Setup, status: RunStatus, all_ends: list[Int[Array, " record"]]
) -> Iterator[Result]:
    """Yield the result of each compiled call once the next one is dispatched.

    So the device never waits for the host. If a call ended the run, the next one, which
    is dispatched before the host knows, takes no steps.
    """
    record = record_steps if setup.runs is None else record_steps_of_runs
    schedule, previous = setup.schedule, None
    tol = None if schedule.tol is None else float(schedule.tol)
    for ends in all_ends:
        try:
            result = record(
                status, setup.keys, setup.sampler, setup.log_density, ends, tol,
                schedule.keep,
            )  # fmt: skip
        except (KeyboardInterrupt, RuntimeError, ValueError):
            if previous is not None:  # keep the result that is complete
                yield previous
            raise
        if previous is not None:
            yield previous
        status, previous = result[0], result
    if previous is not None:
        yield previous


def _ends(setup: _Setup, done: int) -> list[Int[Array, " record"]]:
    """Split the steps to record at into the ends of a few calls of equal length.

    The last end is repeated to fill a call: reached before, it adds no record.
    """
    num_steps, every = setup.schedule.num_steps, setup.every
    least = 1 if setup.schedule.record_every else _RECORDS_PER_CALL
    ends = np.arange(done + every, done + num_steps + 1, every)
    if num_steps % every:
        ends = np.append(ends, done + num_steps)
    if not len(ends):
        return []
    records = -(-len(ends) // _NUM_CALLS)
    ends = np.pad(ends, (0, -len(ends) % records), mode="edge").reshape(-1, records)
    ends = np.pad(ends, ((0, 0), (0, max(0, least - records))), mode="edge")
    return [jnp.asarray(part) for part in ends]


def _finish(
    setup: _Setup, start: _Start, status: RunStatus, records: list, make_error: Any
) -> Samples:
    """Return the samples with their warnings, or raise with the samples so far."""
    runs, sampler, log_density = setup.runs, setup.sampler, setup.log_density
    state, converged = fetch((status.state, status.converged))
    summary = over_runs(runs, sampler.summary)(state)
    samples = collected(state, converged, records, summary, start.step)
    if make_error is not None:
        raise make_error(samples)
    if bool(jnp.any(status.failed)):
        raise _failure(setup, status, samples)
    warnings = start.warnings
    if setup.check:
        ends = _merge_runs(runs, samples.particles)
        warnings += symmetry_warnings(sampler, log_density, ends)
    return with_warnings(samples, start.particles, warnings, type(sampler).__name__)


def _failure(setup: _Setup, status: RunStatus, samples: Samples) -> NonFiniteError:
    """Replay from the last good state to find the step that failed."""
    setup = _on_devices(setup)
    key, good, where = setup.keys, status.state, ""
    if setup.runs is not None:
        failed = int(jnp.argmax(status.failed))
        key, good, where = key[failed], samples[failed].state, f" of run {failed}"
    false = jnp.zeros((), bool)
    replay, _, _ = record_steps(
        RunStatus(good, false, false), key, setup.sampler, setup.log_density,
        jnp.arange(1, CHECK_EVERY + 1) + good.step, None, 0,
    )  # fmt: skip
    step = int(replay.state.step) + 1
    content = "the last good particles of each run"
    if setup.runs is None:
        content = f"the particles after step {step - 1}"
        samples = dataclasses.replace(
            samples,
            particles=replay.state.particles,
            state=replay.state,
            num_steps=samples.num_steps + int(replay.state.step - good.step),
        )
    return NonFiniteError(
        f"A particle or its density stopped being finite in step {step}{where}; the "
        f"error's `samples` hold {content}. Take a smaller step, clip the score "
        "(`SVGD(..., score_clip=20.0)`), or look at `log_density` there.",
        step,
        samples,
    )


def _merge_runs(runs: int | None, particles: Any) -> Any:
    """Return the particles of all runs, stacked on axis 0."""
    return particles if runs is None else particles.reshape(-1, *particles.shape[2:])
