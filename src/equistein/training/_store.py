"""Fits in files."""

import pathlib
from typing import Any

import jax.numpy as jnp

from equistein._types import Particles
from equistein.energies import AbstractEnergy
from equistein.training._checkpoint import load_checkpoint, save_checkpoint
from equistein.training._config import FitConfig
from equistein.training._fitted import Fitted
from equistein.training._kernel import choose_kernel
from equistein.training._labels import num_classes_of
from equistein.training._lengths import Lengths
from equistein.training._start import start_for


def save_fitted(path: pathlib.Path, fitted: Fitted, header: dict[str, Any]) -> None:
    """Write what is needed to draw from a fit again.

    Args:
        path: The file.
        fitted: The fit.
        header: What tells how to build its structure, as a JSON object.
    """
    parts = (fitted.energy, fitted.particles, fitted.start, fitted.lengths)
    save_checkpoint(path, parts, header)


def load_fitted(
    path: pathlib.Path, energy: AbstractEnergy, like: Particles, config: FitConfig,
    header: dict[str, Any],
) -> Fitted:  # fmt: skip
    """Return a fit that `save_fitted` wrote.

    Args:
        path: The file.
        energy: An energy of the same structure, with any weights.
        like: Points of the same shape as the data.
        config: The settings of the fit.
        header: The header that was written.

    Raises:
        CheckpointError: If the file does not fit or is damaged.
    """
    shape = like.shape[1:]
    group, num_classes = energy.group(shape), num_classes_of(energy, shape)
    start = start_for(config, like, group, None, num_classes)
    size = config.buffer_size or config.num_particles
    particles = jnp.zeros((size, *shape), like.dtype)
    like_this = (energy, particles, start, Lengths(config, start.reach, energy))
    energy, particles, start, lengths = load_checkpoint(path, like_this, header)
    kernel = choose_kernel(energy, config, shape)
    return Fitted(energy, particles, {}, [], start, kernel, config, lengths)
