"""The result of a run, and its file."""

import dataclasses
import pathlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from equistein._check_arguments import check_arguments
from equistein._serialization import load_arrays, save_arrays
from equistein.samplers._base import AbstractSampler
from equistein.samplers._validation import select_run, state_like

_KIND = "samples"


class Samples(eqx.Module):
    """The result of a run; of several runs, with a leading axis of runs everywhere.

    Attributes:
        particles: The final particles, stacked on axis 0; trees, if they began so.
        history: Arrays with one entry a recorded step: `step`, its number from 1, and
            the sampler's info, such as `evaluations`, the scores taken at each particle
            so far, `undefined`, the proposals of that step at which the log density is
            NaN or inf, and norms, root mean squares over the particles; with `keep`,
            also `particles`. A run that ended before others repeats its last entry.
        num_steps: The number of steps of this run; `step` also counts earlier runs.
        converged: Whether the update fell below the tolerance.
        state: The sampler's final state; pass it to `run` to continue.
        summary: Further results of the sampler by name, such as log Z.
        warnings: Reasons to distrust the samples; `run` issues them, too.
    """

    particles: PyTree
    history: dict[str, np.ndarray]
    num_steps: int | np.ndarray
    converged: bool | np.ndarray
    state: PyTree
    summary: dict[str, Any] = dataclasses.field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __getitem__(self, index: int) -> "Samples":
        """Return the samples of one of several runs."""
        if not isinstance(self.num_steps, np.ndarray):
            raise ValueError(
                "These samples are of one run; those of a key array have runs to "
                "choose from. `particles[i]` is a particle."
            )
        own = lambda entries: {name: value[index] for name, value in entries.items()}
        return Samples(
            select_run(self.particles, index),
            own(self.history),
            int(self.num_steps[index]),
            bool(np.asarray(self.converged)[index]),
            None if self.state is None else select_run(self.state, index),
            own(self.summary),
            self.warnings,
        )

    def __repr__(self) -> str:
        """Return the number, shape and type of the particles, and the steps taken."""
        runs, particles = "", jax.tree.leaves(self.particles)[0]
        if isinstance(self.num_steps, np.ndarray):
            runs, particles = f"{len(particles)} runs, each of ", particles[0]
        ends = np.unique([np.min(self.num_steps), np.max(self.num_steps)])
        steps = " to ".join(map(str, ends))
        end = ", converged" if np.all(self.converged) else ""
        count = len(self.warnings)
        warned = f"; {count} warning{'s'[: count > 1]}" if count else ""
        return (
            f"Samples({runs}{len(particles)} particles of shape {particles.shape[1:]}, "
            f"{particles.dtype}, after {steps} steps{end}; history of "
            f"{np.shape(self.history.get('step', ()))[-1]} records: "
            f"{', '.join(self.history)}{warned})"
        )

    def plot(self) -> Any:
        """Return a matplotlib figure of the particles and of how the run went.

        Of points with more than two coordinates the first two are shown, of trees the
        first leaf.
        """
        from equistein.plotting import run_figure  # loads matplotlib

        leaf = jax.tree.leaves(self.particles)[0]
        particles, history = jax.tree.map(np.asarray, (leaf, self.history))
        if not isinstance(self.num_steps, np.ndarray):
            particles, history = jax.tree.map(lambda x: x[None], (particles, history))
        return run_figure(particles, history)

    def save(self, path: pathlib.Path | str) -> None:
        """Write the samples to an .npz file, with the state to continue from.

        Trees are written as flat points.
        """
        is_array = isinstance(self.particles, jax.Array | np.ndarray)
        parts = {"particles": self.particles if is_array else self.state.particles}
        parts |= {f"history/{name}": value for name, value in self.history.items()}
        parts |= {f"summary/{name}": value for name, value in self.summary.items()}
        leaves = jax.tree.leaves(eqx.filter(self.state, eqx.is_array))
        parts |= {f"state/{i}": leaf for i, leaf in enumerate(leaves)}
        header = {
            "num_steps": np.asarray(self.num_steps).tolist(),
            "converged": np.asarray(self.converged).tolist(),
            "warnings": self.warnings,
        }
        arrays = {name: np.asarray(part) for name, part in parts.items()}
        save_arrays(pathlib.Path(path), _KIND, header, arrays)


@check_arguments
def load_samples(
    path: pathlib.Path | str, sampler: AbstractSampler | None = None
) -> Samples:
    """Return samples that were saved.

    With the sampler that drew them, they can be continued from their `state`.
    """
    header, parts = load_arrays(pathlib.Path(path), _KIND)
    particles = jnp.asarray(parts["particles"])
    num_steps, converged, runs = header["num_steps"], header["converged"], None
    if isinstance(num_steps, list):
        num_steps, converged = np.asarray(num_steps), np.asarray(converged)
        runs = len(num_steps)
    history, summary = (
        {name[8:]: part for name, part in parts.items() if name.startswith(start)}
        for start in ("history/", "summary/")
    )
    state = None
    if sampler is not None:
        like = state_like(sampler, particles, runs)
        is_array = lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct)
        dynamic, static = eqx.partition(like, is_array)
        leaves, structure = jax.tree.flatten(dynamic)
        saved = [part for name, part in parts.items() if name.startswith("state/")]
        form = lambda leaf: (leaf.shape, leaf.dtype)
        if list(map(form, saved)) != list(map(form, leaves)):
            raise ValueError(
                f"{path} holds the state of another sampler than `sampler`: give the "
                "one that the samples were drawn with, or none."
            )
        arrays = jax.tree.unflatten(structure, map(jnp.asarray, saved))
        state = eqx.combine(arrays, static)
    warnings = tuple(map(str, header["warnings"]))
    return Samples(particles, history, num_steps, converged, state, summary, warnings)


def collect_samples(
    state: PyTree,
    converged: Array,
    records: list[tuple[dict[str, np.ndarray], np.ndarray]],
    summary: dict[str, Any],
    before: np.ndarray,
) -> Samples:
    """Return the samples of one run, or of several.

    `records` has, of each call, arrays of shape (*run, record, ...) and which of the
    records were made; `before` is the number of steps taken earlier.
    """
    is_single, history = converged.ndim == 0, {}
    if records:
        axis = 0 if is_single else 1
        joined = jax.tree.map(lambda *parts: np.concatenate(parts, axis), *records)
        entries, made = joined
        if is_single:
            index = (made,)
        else:  # what some run made; the others repeat their last
            numbers = np.where(made, np.arange(made.shape[1]), 0)
            last = np.maximum.accumulate(numbers, axis=1)[:, np.any(made, axis=0)]
            index = np.arange(len(made))[:, None], last
        history = {name: value[index] for name, value in entries.items()}
    steps = np.asarray(state.step) - before
    return Samples(
        state.particles,
        history,
        int(steps) if is_single else steps,
        bool(converged) if is_single else np.asarray(converged),
        state,
        {name: np.asarray(value) for name, value in summary.items()},
    )


class NonFiniteError(FloatingPointError):
    """A run met a particle that is not finite.

    `samples` are the run up to the last finite ones, `step` is that which gave it.
    """

    def __init__(self, message: str, step: int, samples: Samples):
        super().__init__(message)
        self.step, self.samples = step, samples


class RunInterrupted(KeyboardInterrupt):
    """A run was stopped with Ctrl-C; `run` continues from its `samples.state`."""

    def __init__(self, samples: Samples):
        super().__init__(f"stopped after {np.max(samples.num_steps)} steps")
        self.samples = samples


class EvaluationFailed(RuntimeError):
    """A density that calls Python raised; `run` continues from its `samples.state`."""

    def __init__(self, reason: str, samples: Samples):
        done = f"{reason.rstrip('.')}, after {np.max(samples.num_steps)} steps"
        where = "The error's `samples` hold the run up to then; `run` continues from"
        super().__init__(f"{done}. {where} their `state`.")
        self.samples = samples
