"""What drives every sampler, and records what it did."""

import dataclasses
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Int, PyTree

from equistein._arrays import as_keys
from equistein._devices import at_home, check_agreed, checked_mesh, on_all
from equistein._donation import brought_back
from equistein._progress import progress_bar
from equistein._types import AnyKey, Keys, LogDensity, Particles
from equistein.samplers._base import AbstractSampler
from equistein.samplers._calls import Call, Calls, calls_of
from equistein.samplers._checks import (
    check_counts,
    check_density,
    check_history,
    check_ring,
    is_interrupt,
    raised_in_python,
)
from equistein.samplers._first_state import first_state, num_runs, of_runs
from equistein.samplers._minibatched import Minibatched
from equistein.samplers._recorded_steps import (
    CHUNK,
    Progress,
    record_steps,
    record_steps_of_many,
)
from equistein.samplers._run_errors import (
    EvaluationFailed,
    NonFiniteError,
    RunInterrupted,
)
from equistein.samplers._samples import collected, Samples
from equistein.samplers._warnings import doubted, lost_symmetry, zero_scores

_NUM_RECORDS = 100  # by default
_NUM_CALLS = 20  # compiled calls in a run: the moments at which it can be stopped
_LENGTH = 2 * _NUM_RECORDS // _NUM_CALLS  # records a call, for any number of steps


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
    ring: bool = False,
    progress: bool = False,
    check: bool = True,
) -> Samples:
    """Move particles towards a density for a number of steps, in compiled loops.

    Several keys are several runs, which go side by side: with `jr.split(key, r)` and
    particles of shape (r, n, *shape) the samples have a leading axis of runs, and
    `samples[i]` are those of one. The cores of a processor share the runs.

    Args:
        key: The source of randomness, `jax.random.key(0)` or an integer; step i uses
            `fold_in(key, i)`. An array of keys for as many runs.
        sampler: Such as `SVGD(kernel, optimizer)`. Equal samplers are compiled once,
            for any `num_steps`; a schedule that is a function of yours, once each.
        log_density: The unnormalized log density of one point; or `Minibatched`, of
            whose data each step takes a batch.
        particles: The start, stacked on axis 0, floating point; of several runs on
            axis 1, and the runs on axis 0.
        num_steps: The number of steps to take.
        tol: Stop once the root mean square update is below this, in the units of the
            points; None takes all steps. Of several runs each stops by itself.
        record_every: The number of steps between two entries of the history; by
            default a hundredth of `num_steps`.
        keep: The number of particles, the first ones, whose places the history holds
            at each recorded step, as `particles` of shape (record, keep, *shape).
        initial_state: The `state` of earlier samples, to go on from instead of
            `particles`.
        mesh: The devices that share the work, such as `es.device_mesh()`; None is one.
        ring: Whether the particles of SVGD are split over the devices too, and pass by
            all of them in each step, so that no device works on more than two parts:
            for large numbers, and a kernel whose bandwidth is a number.
        progress: Whether to show a progress bar.
        check: Whether to check the density at the start, and the symmetry that the
            kernel relies on.

    Returns:
        The final particles and the history, and what to doubt in `warnings`, each of
        which is a `SamplingWarning` too.

    Raises:
        ValueError: If an argument is not what it should be, with the remedy.
        InvarianceError: If the density lacks the kernel's symmetry.
        NonFiniteError: If a particle is no longer finite, or at a recorded step the
            density; it holds the last good particles.
        RunInterrupted: On Ctrl-C; it holds the run so far.
        EvaluationFailed: If a density that calls Python raises; it holds the run so
            far.
    """
    keys: Keys = as_keys(key)
    check_counts(num_steps, tol, record_every, keep)
    if not isinstance(sampler, AbstractSampler):
        raise ValueError(
            "`sampler` must be one such as SVGD(kernel, optimizer), but got "
            f"{sampler!r}."
        )
    if isinstance(log_density, Minibatched) and not sampler.takes_batches:
        raise ValueError(
            f"{type(sampler).__name__} needs the same `log_density` in each step, not "
            "that of a batch: take SVGD or Langevin, or give all data, "
            "`lambda x: posterior(x)`."
        )
    if mesh is not None:
        mesh = checked_mesh("run", mesh)
        start = initial_state if particles is None else particles
        settings = num_steps, tol, record_every, keep, ring
        check_agreed("run", (keys, sampler, start), *settings)
        sampler = sampler.on(mesh, ring=ring)
    runs = num_runs(keys)
    if ring:
        check_ring(mesh, runs)
    state = first_state(runs, sampler, log_density, particles, initial_state)
    every = record_every or max(1, num_steps // _NUM_RECORDS)
    check_history(state, runs, num_steps, every, keep)
    began, given, doubts = np.asarray(state.particles), (sampler, log_density), ()
    if check:
        starts = at_home(state.particles)
        starts = starts if runs is None else starts.reshape(-1, *starts.shape[2:])
        scores = check_density(log_density, starts, "particles")
        doubts = zero_scores(np.asarray(starts), scores)
        try:
            sampler.check(log_density, starts)
        except ValueError as error:
            error.add_note("`es.run(..., check=False)` goes on without this check.")
            raise
    if mesh is not None:
        keys, sampler, log_density = on_all((keys, sampler, log_density), mesh)
        state = on_all(state, mesh, len(state.particles) if ring else None)
    done = int(jnp.min(state.step))
    no = jnp.zeros(() if runs is None else runs, bool)
    progress_state = Progress(state, no, no)
    ends = _ends(done, num_steps, every, 1 if record_every else _LENGTH)
    recorded = record_steps if runs is None else record_steps_of_many
    calls = calls_of(
        progress_state, runs, mesh is not None, recorded, keys, (sampler, log_density),
        (None if tol is None else float(tol), keep),
    )  # fmt: skip
    del state
    records = []

    def so_far():
        return _samples(runs, sampler, progress_state, records, done)

    try:
        with progress_bar(total=num_steps, disable=not progress, unit="step") as bar:
            for call in _one_ahead(calls, progress_state, ends):
                now, *record = calls.found(call)
                told = tuple(record), now.state.step, now.failed, now.converged
                # Fetched at once: each array by itself would wait for the device.
                record, step, failed, converged = jax.device_get(at_home(told))
                progress_state = now
                records.append(record)
                bar.update(int(np.min(step)) - done - bar.n)
                if np.any(failed) or np.all(converged):
                    break
    except KeyboardInterrupt:
        raise RunInterrupted(so_far()) from None
    except (RuntimeError, ValueError) as error:
        reason = raised_in_python(error)
        if reason is None:
            raise
        if is_interrupt(reason):
            raise RunInterrupted(so_far()) from None
        raise EvaluationFailed(reason, so_far()) from None
    finally:
        calls.close()
    samples, progress_state = so_far(), brought_back(progress_state)
    if bool(jnp.any(progress_state.failed)):
        raise _failure(runs, keys, sampler, log_density, progress_state, samples)
    if check:
        found = samples.particles
        found = found if runs is None else found.reshape(-1, *found.shape[2:])
        doubts += lost_symmetry(*given, found)
    return doubted(samples, began, doubts, type(given[0]).__name__)


def _one_ahead(
    calls: Calls, progress_state: Progress, all_ends: Sequence[Int[Array, " record"]]
) -> Iterator[Call]:
    """Yield each call when the next one has begun.

    The device does not wait for the host to look at the last call. A run that failed or
    converged takes no step in the call that was begun before anyone saw it.
    """
    if not all_ends:
        return
    last, before = calls.first(progress_state, all_ends[0]), None
    for ends in all_ends:
        if before is not None:
            before = calls.kept(last)
        try:
            last = calls.begin(last, ends)
        except (KeyboardInterrupt, RuntimeError, ValueError):
            if before is not None:  # what was done before is kept
                yield before
            raise
        if before is not None:
            yield before
        before = last
    yield last


def _ends(
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


def _samples(
    runs: int | None,
    sampler: AbstractSampler,
    progress: Progress,
    records: list,
    done: int,
) -> Samples:
    """Return what the runs gave so far."""
    state, converged = at_home(brought_back((progress.state, progress.converged)))
    summary = of_runs(runs, sampler.summary)(state)
    return collected(state, converged, records, summary, done)


def _failure(
    runs: int | None,
    key: Keys,
    sampler: AbstractSampler,
    log_density: LogDensity,
    progress: Progress,
    samples: Samples,
) -> NonFiniteError:
    """Replay from the last good state to find the step that failed."""
    good, where = progress.state, ""
    if runs is not None:
        failed = int(jnp.argmax(progress.failed))
        key, good, where = key[failed], samples[failed].state, f" of run {failed}"
    chunk = jnp.arange(1, CHUNK + 1) + good.step
    no = jnp.zeros((), bool)
    replay = Progress(good, no, no)
    replay, _, _ = record_steps(replay, key, sampler, log_density, chunk, None, 0)
    step = int(replay.state.step) + 1
    held = "the last good particles of each run"
    if runs is None:
        held = f"the particles after step {step - 1}"
        samples = dataclasses.replace(
            samples,
            particles=replay.state.particles,
            state=replay.state,
            num_steps=samples.num_steps + int(replay.state.step - good.step),
        )
    return NonFiniteError(
        f"A particle or its density stopped being finite in step {step}{where}; the "
        f"error's `samples` hold {held}. Take a smaller step, clip the score "
        "(`SVGD(..., score_clip=20.0)`), or look at `log_density` there.",
        step,
        samples,
    )
