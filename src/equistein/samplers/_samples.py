"""What a run gives, and its file."""

import dataclasses
import io
import json
import pathlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from equistein._types import Particles
from equistein.samplers._base import AbstractSampler
from equistein.samplers._first_state import of_runs, run_of

_FORMAT = "equistein samples 1"


class Samples(eqx.Module):
    """What a run gave; of several runs, with a leading axis of runs everywhere.

    Attributes:
        particles: The final particles, stacked on axis 0.
        history: Arrays with one entry a recorded step: `step`, the number of the step
            from 1, and what the sampler's info holds of it, such as `evaluations`, the
            number of scores taken at each particle so far; with `keep`, also
            `particles`. A run that ended before others repeats its last entry.
        num_steps: The number of steps taken.
        converged: Whether the update fell below the tolerance.
        state: The sampler's final state; give it to `run` to go on.
        summary: What the sampler ends with besides, by name: the temperatures, the
            weights of the particles and log Z of those that have them.
    """

    particles: Particles
    history: dict[str, np.ndarray]
    num_steps: int | np.ndarray
    converged: bool | np.ndarray
    state: PyTree
    summary: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __getitem__(self, index: int) -> "Samples":
        """Return the samples of one of several runs.

        Raises:
            ValueError: If they are of one run only.
            IndexError: If there is no such run.
        """
        if not isinstance(self.num_steps, np.ndarray):
            raise ValueError(
                "These samples are of one run; those of a key array have runs to "
                "choose from. `particles[i]` is a particle."
            )
        own = lambda entries: {name: value[index] for name, value in entries.items()}
        return Samples(
            self.particles[index],
            own(self.history),
            int(self.num_steps[index]),
            bool(np.asarray(self.converged)[index]),
            None if self.state is None else run_of(self.state, index),
            own(self.summary),
        )

    def save(self, path: pathlib.Path | str) -> None:
        """Write the samples to an .npz file, with the state to go on from."""
        parts = {"particles": self.particles}
        parts |= {f"history/{name}": value for name, value in self.history.items()}
        parts |= {f"summary/{name}": value for name, value in self.summary.items()}
        leaves = jax.tree.leaves(eqx.filter(self.state, eqx.is_array))
        parts |= {f"state/{i}": leaf for i, leaf in enumerate(leaves)}
        about = {
            "format": _FORMAT,
            "num_steps": np.asarray(self.num_steps).tolist(),
            "converged": np.asarray(self.converged).tolist(),
        }
        arrays = {name: np.asarray(part) for name, part in parts.items()}
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, about=json.dumps(about), **arrays)
        path = pathlib.Path(path)
        temporary = path.with_name(f".{path.name}.part")
        temporary.write_bytes(content.getvalue())
        temporary.replace(path)


def load_samples(
    path: pathlib.Path | str, sampler: AbstractSampler | None = None
) -> Samples:
    """Return samples that were saved.

    Args:
        path: The file.
        sampler: The sampler that gave them, to go on from their `state`; None to look
            at them only, with None for a state.

    Raises:
        ValueError: If the file holds no samples, or a state of another sampler.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            parts = {name: stored[name] for name in stored.files}
        about = json.loads(str(parts.pop("about")))
        if about["format"] != _FORMAT:
            raise ValueError(f"its format is {about['format']!r}")
        particles = jnp.asarray(parts["particles"])
        num_steps, converged = (about[name] for name in ("num_steps", "converged"))
        if isinstance(num_steps, list):
            num_steps, converged = np.asarray(num_steps), np.asarray(converged)
        else:
            num_steps, converged = int(num_steps), bool(converged)
    except OSError:
        raise
    except Exception as error:  # whatever a file that others wrote may hold
        raise ValueError(
            f"{path} holds no samples that `Samples.save` wrote: {error}."
        ) from None
    history, summary = (
        {name[8:]: part for name, part in parts.items() if name.startswith(start)}
        for start in ("history/", "summary/")
    )
    runs = len(num_steps) if isinstance(num_steps, np.ndarray) else None
    state = None
    if sampler is not None:
        state = _state_of(runs, sampler, particles, parts, path)
    return Samples(particles, history, num_steps, converged, state, summary)


def collected(
    state: PyTree,
    converged: Array,
    records: list[tuple[dict[str, np.ndarray], np.ndarray]],
    summary: dict[str, Any],
    done: int,
) -> Samples:
    """Return the samples of one run, or of several, from what was recorded.

    Args:
        state: The final state.
        converged: Whether the update fell below the tolerance.
        records: Of each call, arrays of shape (*run, record, ...), and which of the
            records were made.
        summary: What the sampler ends with besides.
        done: The steps taken before.
    """
    one = converged.ndim == 0
    joined = {}
    if records:
        axis = 0 if one else 1
        joined = jax.tree.map(lambda *parts: np.concatenate(parts, axis), *records)
        joined = _made(joined[0], joined[1], one)
    steps = np.asarray(state.step) - done
    return Samples(
        state.particles,
        joined,
        int(steps) if one else steps,
        bool(converged) if one else np.asarray(converged),
        state,
        {name: np.asarray(value) for name, value in summary.items()},
    )


def _made(
    history: dict[str, np.ndarray], made: np.ndarray, one: bool
) -> dict[str, np.ndarray]:
    """Return the records that were made, in some run; others repeat their last."""
    if one:
        return {name: value[made] for name, value in history.items()}
    some = np.any(made, axis=0)
    last = np.maximum.accumulate(np.where(made, np.arange(made.shape[1]), 0), axis=1)
    runs = np.arange(len(made))[:, None]
    return {name: value[runs, last[:, some]] for name, value in history.items()}


def _state_of(
    runs: int | None,
    sampler: AbstractSampler,
    particles: Particles,
    parts: dict[str, np.ndarray],
    path: pathlib.Path | str,
) -> PyTree:
    """Return the sampler's state with the arrays of a file."""
    like = eqx.filter_eval_shape(of_runs(runs, sampler.init), particles)
    dynamic, static = eqx.partition(like, lambda x: isinstance(x, jax.ShapeDtypeStruct))
    leaves, structure = jax.tree.flatten(dynamic)
    found = [parts.get(f"state/{i}") for i in range(len(leaves))]
    fits = f"state/{len(leaves)}" not in parts and all(
        part is not None and (part.shape, part.dtype) == (leaf.shape, leaf.dtype)
        for part, leaf in zip(found, leaves, strict=True)
    )
    if not fits:
        raise ValueError(
            f"{path} holds the state of another sampler than `sampler`: give the one "
            "that the samples were drawn with, or none."
        )
    arrays = [jnp.asarray(part) for part in found]
    return eqx.combine(jax.tree.unflatten(structure, arrays), static)
