"""`run`: validate, initialize, loop over compiled steps, finish."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Int, PyTree

from equistein._arrays import as_keys, on_device
from equistein._limits import check_memory
from equistein._numbers import check_integers
from equistein._progress import progress_bar
from equistein._sharding import check_agreed, check_mesh, fetch, replicate
from equistein._types import AnyKey, Keys, LogDensity
from equistein.samplers._base import AbstractSampler
from equistein.samplers._samples import (
    collect_samples,
    EvaluationFailed,
    NonFiniteError,
    RunInterrupted,
    Samples,
)
from equistein.samplers._scan import (
    CHECK_EVERY,
    RunStatus,
    take_steps,
    take_steps_of_runs,
)
from equistein.samplers._validation import (
    callback_errors,
    CallbackError,
    check_finite,
    check_signature,
    check_start,
    check_state,
    check_stored_values,
    count_runs,
    flatten_trees,
    is_tree,
    merge_runs,
    particles_inside,
    select_run,
    vmap_over_runs,
)
from equistein.samplers._warnings import (
    issue_warnings,
    symmetry_warnings,
    unguided_warning,
)

_NUM_RECORDS = 100  # by default
_NUM_CALLS = 20  # compiled calls in a run, at most; Ctrl-C stops it between two
# By default there are at most 199 records, as the steps between two are rounded down.
# Each call is padded to 10 of them, so any `num_steps` runs the same code.
_RECORDS_PER_CALL = 2 * _NUM_RECORDS // _NUM_CALLS
_BYTES_PER_RECORD = 128  # bytes of a record without particles, about


def run(
    key: Keys | AnyKey,
    sampler: AbstractSampler,
    log_density: LogDensity,
    particles: PyTree | None = None,
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
        key: A key or an integer; step number i, from 1, uses `fold_in(key, i - 1)`. An
            array of keys for as many runs.
        sampler: Such as `SVGD(kernel, optimizer)`. Equal samplers are compiled once.
        log_density: The unnormalized log density of one point.
        particles: The start, floating point, of shape (n, *shape); of several runs
            (r, n, *shape). Points may also be trees, such as dicts, lists, named tuples
            or modules: then a tree of arrays stacked on axis 0. Samplers move flat
            points, which the history and the state hold.
        num_steps: The number of steps to take.
        tol: Stop once the root mean square length of the updates is below this, in the
            units of the points; None takes all steps. Several runs stop one by one.
        record_every: The number of steps between two entries of the history; by
            default a hundredth of `num_steps`.
        keep: The number of particles, the first ones, whose positions the history holds
            at each recorded step, as `particles` of shape (record, keep, *shape).
        initial_state: The `state` of earlier samples of the same density, to continue
            from instead of `particles`.
        mesh: The devices that share the work, `es.device_mesh()`; one by default.
        progress: Whether to show a progress bar.
        check: Whether to check the density at the start, that an `initial_state` is
            of this density, and what the sampler relies on, such as the kernel's
            symmetry: at the start an error, at the end a warning.

    Returns:
        The final particles and the history, and in `warnings` the reasons to distrust
        them, each a `SamplingWarning` too.

    Raises:
        InvarianceError: If the density lacks the kernel's symmetry.
        NonFiniteError: If a particle, or the density at a recorded step, is no longer
            finite. It holds the run so far, as do the next two.
        RunInterrupted: On Ctrl-C.
        EvaluationFailed: If a density that calls Python raises.
    """
    keys = as_keys(key)
    trees = lambda points: points
    if is_tree(particles):
        axes = 1 if count_runs(keys) is None else 2
        log_density, particles = flatten_trees(log_density, particles, axes)
        trees = log_density.unflatten
        for _ in range(axes):
            trees = eqx.filter_vmap(trees)
    setup = _Setup(
        keys, sampler, log_density, count_runs(keys), num_steps, tol, record_every,
        keep, mesh, check,
    )  # fmt: skip
    adapted = sampler.for_steps(num_steps)
    if mesh is not None:
        mesh = check_mesh("run", mesh)
        adapted = adapted.shard(mesh)
    setup = dataclasses.replace(setup, mesh=mesh, sampler=adapted)
    state, warnings = _initialize(setup, particles, initial_state)
    ended = _loop(setup, state, progress)
    samples = _finish(setup, state, warnings, *ended, type(sampler).__name__)
    return dataclasses.replace(samples, particles=trees(samples.particles))


@dataclasses.dataclass(frozen=True)
class _Setup:
    """The arguments of a run; `num_runs` is None for one key."""

    keys: Keys
    sampler: AbstractSampler
    log_density: LogDensity
    num_runs: int | None
    num_steps: int
    tol: float | None
    record_every: int | None
    keep: int
    mesh: Mesh | None
    check: bool

    def __post_init__(self):
        if not isinstance(self.sampler, AbstractSampler):
            raise ValueError(
                "`sampler` must be a sampler such as SVGD(kernel, optimizer), but got "
                f"{self.sampler!r}."
            )
        if not callable(self.log_density):
            raise ValueError(
                "`log_density` must be a function of one point, but got "
                f"{self.log_density!r}. Of a target, give `target.log_density`."
            )
        check_integers("run", 0, num_steps=self.num_steps, keep=self.keep)
        if self.record_every is not None:
            check_integers("run", record_every=self.record_every)
        if self.tol is not None and not self.tol > 0:
            raise ValueError(f"`run` needs `tol` > 0 or None, but got {self.tol!r}.")

    @property
    def every(self) -> int:
        """The number of steps between two records."""
        return self.record_every or max(1, self.num_steps // _NUM_RECORDS)

    def on_devices(self) -> "_Setup":
        """Return the setup with its arrays on the devices of the mesh."""
        if self.mesh is None:
            return self
        names = ("keys", "sampler", "log_density")
        arrays = replicate({name: getattr(self, name) for name in names}, self.mesh)
        return dataclasses.replace(self, **arrays)


def _initialize(
    setup: _Setup, particles: Any, initial_state: PyTree | None
) -> tuple[PyTree, tuple[str, ...]]:
    """Check the arguments and the density; return the first state, and warnings."""
    num_runs, sampler, log_density = setup.num_runs, setup.sampler, setup.log_density
    if initial_state is not None and particles is not None:
        raise ValueError(
            "`run` got `initial_state` and also `particles`, which the state holds: "
            "give one or the other."
        )
    if setup.mesh is not None:
        start = initial_state if particles is None else particles
        settings = setup.num_steps, setup.tol, setup.record_every, setup.keep
        check_agreed("run", (setup.keys, sampler, start), settings)
    if initial_state is None:
        particles = check_start(num_runs, sampler, particles)
    else:
        check_state(num_runs, sampler, initial_state)
        particles = initial_state.particles
    shape = particles.shape if num_runs is None else particles.shape[1:]
    num_records = -(-setup.num_steps // setup.every) * (num_runs or 1)
    keep, one = min(setup.keep, shape[0]), jax.ShapeDtypeStruct(shape, particles.dtype)
    size = _BYTES_PER_RECORD + keep * math.prod(shape[1:]) * one.dtype.itemsize
    check_memory(
        f"The history of `run`, {num_records} records of {keep} particles",
        2 * num_records * size,  # twice, while parts are joined
        "give a larger `record_every` or a smaller `keep`",
    )
    if setup.check:
        check_signature(log_density, one)
    prepare = functools.partial(
        _prepare, num_runs, sampler, log_density, initial_state, check=setup.check
    )
    with callback_errors():
        state, evaluated = jax.block_until_ready(prepare(particles))
        if not setup.check:
            return state, ()
        thinned, resumes = (), initial_state is not None
        if not resumes and num_runs is None:
            values = fetch(evaluated)[0]
            particles, thinned = particles_inside(sampler, particles, values)
            if thinned:
                state, evaluated = jax.block_until_ready(prepare(particles))
        found = _check_density(setup, state, fetch(evaluated), resumes)
    return state, found + thinned


def _check_density(
    setup: _Setup, state: PyTree, evaluated: Any, resumes: bool
) -> tuple[str, ...]:
    """Return warnings; raise `ValueError` unless the density suits the sampler."""
    points = merge_runs(setup.num_runs, fetch(state.particles))
    values, scores, stored = jax.tree.map(np.asarray, evaluated)
    check_finite(values, scores)
    if resumes and stored is not None:
        check_stored_values(stored.ravel(), values)
    try:
        setup.sampler.check(setup.log_density, points)
        # A density may know what no start has, such as a force field too small units.
        own_check = getattr(setup.log_density, "check_start", None)
        if own_check is not None and not resumes:
            own_check(points)
    except ValueError as error:
        error.add_note("`es.run(..., check=False)` continues without this check.")
        raise
    reason = "where the density is constant, or rounded to be, nothing guides them."
    points = np.asarray(points)
    return tuple(unguided_warning(points, scores, "at the start", reason))


@eqx.filter_jit
def _prepare(num_runs, sampler, log_density, state, particles, check):
    """Return the first state; to check it, values and scores, and values it holds."""
    if state is None:
        init = lambda x: sampler.init(x, log_density)
        state = vmap_over_runs(num_runs, init)(particles)
    if not check:
        return state, None
    stored = vmap_over_runs(num_runs, sampler.log_densities)(state)
    points = merge_runs(num_runs, state.particles)
    return state, (*jax.vmap(jax.value_and_grad(log_density))(points), stored)


def _loop(
    setup: _Setup, state: PyTree, show_progress: bool
) -> tuple[RunStatus, list, Callable[[Samples], BaseException] | None]:
    """Take the steps; return also what makes the error if they were cut off."""
    take = take_steps if setup.num_runs is None else take_steps_of_runs
    tol = None if setup.tol is None else float(setup.tol)
    before = np.asarray(fetch(state.step))
    setup = setup.on_devices()
    if setup.mesh is not None:
        state = replicate(state, setup.mesh)
    false = on_device(np.zeros(setup.num_runs or (), bool))
    status, chunks = RunStatus(state, converged=false, failed=false), []
    newest, in_flight, ended = status, None, False
    bar = progress_bar(total=setup.num_steps, disable=not show_progress, unit="step")
    try:
        with callback_errors(), bar:
            # Call k + 1 is dispatched before the result of call k is fetched, so the
            # device never waits for the host. If call k ended the run, the result of
            # call k + 1 is dropped. The None at the end fetches the last result.
            for ends in [*_split_into_calls(setup), None]:
                result, in_flight = in_flight, None
                try:
                    if ends is not None:
                        in_flight = take(
                            newest, setup.keys, setup.sampler, setup.log_density,
                            before[..., None] + ends, tol, setup.keep,
                        )  # fmt: skip
                        newest = in_flight[0]
                finally:  # also if that call failed: keep the result that is complete
                    if result is not None:
                        new, *chunk = result
                        flags = new.state.step, new.failed, new.converged
                        # One transfer: separate ones would each wait for the device.
                        chunk, flags = jax.device_get(fetch((tuple(chunk), flags)))
                        # One statement: both or neither, if Ctrl-C comes.
                        status, chunks = new, [*chunks, chunk]
                        step, failed, converged = flags
                        bar.update(int(np.min(step - before)) - bar.n)
                        ended = np.any(failed) or np.all(converged)
                if ended:
                    break
    except KeyboardInterrupt:
        return status, chunks, RunInterrupted
    except CallbackError as error:
        return status, chunks, functools.partial(EvaluationFailed, str(error))
    return status, chunks, None


def _split_into_calls(setup: _Setup) -> list[Int[np.ndarray, " record"]]:
    """Return, for each compiled call, the steps to record, counted from the start."""
    # Each call gets equally many; repeats of the last number add no record.
    num_steps, every = setup.num_steps, setup.every
    least = 1 if setup.record_every else _RECORDS_PER_CALL
    if not num_steps:
        return []
    ends = np.append(np.arange(every, num_steps, every), num_steps).astype(np.int32)
    per_call = -(-len(ends) // _NUM_CALLS)
    ends = np.pad(ends, (0, -len(ends) % per_call), mode="edge").reshape(-1, per_call)
    ends = np.pad(ends, ((0, 0), (0, max(0, least - per_call))), mode="edge")
    return list(ends)


def _finish(
    setup: _Setup, start_state: PyTree, warnings: tuple[str, ...], status: RunStatus,
    chunks: list, make_error: Any, name: str,
) -> Samples:  # fmt: skip
    """Return the samples with their warnings, or raise with the samples so far."""
    num_runs, sampler, log_density = setup.num_runs, setup.sampler, setup.log_density
    state, converged = fetch((status.state, status.converged))
    if num_runs is None:
        summary = sampler.summary(state)
    else:
        on_host = jax.device_get(state)
        runs = [select_run(on_host, i) for i in range(num_runs)]
        summary = jax.tree.map(lambda *x: np.stack(x), *map(sampler.summary, runs))
    before = np.asarray(fetch(start_state.step))
    samples = collect_samples(state, converged, chunks, summary, before)
    if make_error is not None:
        raise make_error(samples)
    if np.any(np.asarray(fetch(status.failed))):
        raise _failure(setup, status, samples)
    if setup.check:
        final = merge_runs(num_runs, samples.particles)
        try:
            warnings += symmetry_warnings(sampler, log_density, final)
        except CallbackError as error:
            raise EvaluationFailed(str(error), samples) from None
    start = np.asarray(start_state.particles)
    return issue_warnings(samples, start, warnings, name)


def _failure(setup: _Setup, status: RunStatus, samples: Samples) -> NonFiniteError:
    """Replay from the last good state to find the step that failed."""
    setup = setup.on_devices()
    key, good, where = setup.keys, status.state, ""
    if setup.num_runs is not None:
        failed = int(jnp.argmax(status.failed))
        key, good, where = key[failed], samples[failed].state, f" of run {failed}"
    replay, _, _ = take_steps(
        RunStatus(good, *jnp.zeros(2, bool)), key, setup.sampler, setup.log_density,
        jnp.arange(1, CHECK_EVERY + 1) + good.step, None, 0,
    )  # fmt: skip
    step = int(replay.state.step) + 1
    content = "the last good particles of each run"
    if setup.num_runs is None:
        content = f"the particles after step {step - 1}"
        samples = dataclasses.replace(
            samples,
            particles=replay.state.particles,
            state=replay.state,
            summary=setup.sampler.summary(replay.state),
            num_steps=samples.num_steps + int(replay.state.step - good.step),
        )
    return NonFiniteError(
        f"A particle or its density stopped being finite in step {step}{where}; the "
        f"error's `samples` hold {content}. Take a smaller step, give `score_clip`, or "
        "look at `log_density` there, or at a custom kernel at x = y.",
        step,
        samples,
    )
