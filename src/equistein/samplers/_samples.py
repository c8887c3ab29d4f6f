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
from jaxtyping import PyTree

from equistein._types import Particles
from equistein.samplers._base import AbstractSampler

_FORMAT = "equistein samples 1"


class Samples(eqx.Module):
    """What a run gave.

    Attributes:
        particles: The final particles, stacked on axis 0.
        history: Arrays with one entry a recorded step: `step`, the number of the step
            from 1, and what the sampler's info holds of it, such as `evaluations`, the
            number of scores taken at each particle so far; with `keep`, also
            `particles`.
        num_steps: The number of steps taken.
        converged: Whether the update fell below the tolerance.
        state: The sampler's final state; give it to `run` to go on.
        summary: What the sampler ends with besides, by name: the temperatures, the
            weights of the particles and log Z of those that have them.
    """

    particles: Particles
    history: dict[str, np.ndarray]
    num_steps: int
    converged: bool
    state: PyTree
    summary: dict[str, Any] = dataclasses.field(default_factory=dict)

    def save(self, path: pathlib.Path | str) -> None:
        """Write the samples to an .npz file, with the state to go on from."""
        parts = {"particles": self.particles}
        parts |= {f"history/{name}": value for name, value in self.history.items()}
        parts |= {f"summary/{name}": value for name, value in self.summary.items()}
        leaves = jax.tree.leaves(eqx.filter(self.state, eqx.is_array))
        parts |= {f"state/{i}": leaf for i, leaf in enumerate(leaves)}
        about = {
            "format": _FORMAT,
            "num_steps": self.num_steps,
            "converged": self.converged,
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
        num_steps, converged = int(about["num_steps"]), bool(about["converged"])
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
    state = None if sampler is None else _state_of(sampler, particles, parts, path)
    return Samples(particles, history, num_steps, converged, state, summary)


def _state_of(
    sampler: AbstractSampler,
    particles: Particles,
    parts: dict[str, np.ndarray],
    path: pathlib.Path | str,
) -> PyTree:
    """Return the sampler's state with the arrays of a file."""
    like = eqx.filter_eval_shape(sampler.init, particles)
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
