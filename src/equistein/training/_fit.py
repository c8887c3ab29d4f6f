"""Fit an energy to data, and draw from what was learned."""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

from equistein._types import Key, Particles
from equistein.energies import AbstractEnergy
from equistein.groups import check_invariance
from equistein.kernels import AbstractKernel
from equistein.samplers import check_particles, progress_bar, run, SVGD
from equistein.training._checkpoint import load_checkpoint, save_checkpoint
from equistein.training._config import FitConfig
from equistein.training._contrastive_divergence import (
    ContrastiveDivergence,
    TrainState,
)
from equistein.training._start import Box


class Fitted(eqx.Module):
    """A learned density.

    Attributes:
        energy: The running mean of the trained energies.
        particles: The persistent particles at the end.
        history: One entry an epoch: the means over its batches.
        start: Where samples start.
        kernel: The kernel they are drawn with.
        config: The settings.
    """

    energy: AbstractEnergy
    particles: Particles
    history: dict[str, np.ndarray]
    start: Box
    kernel: AbstractKernel
    config: FitConfig

    def sample(self, key: Key, num: int, *, progress: bool = False) -> Particles:
        """Draw new samples from fresh starts, by SVGD with Langevin noise.

        Args:
            key: The source of randomness.
            num: The number of samples.
            progress: Whether to show a progress bar.

        Raises:
            ValueError: If `num` is not a positive integer.
        """
        if isinstance(num, bool) or not isinstance(num, int) or num < 1:
            raise ValueError(f"`sample` needs `num`, an integer >= 1, but got {num!r}.")
        sampler = sampling_svgd(self.kernel, self.config)
        at_once = min(num, self.config.sample_at_once)
        drawn = []
        for index in progress_bar(range(-(-num // at_once)), disable=not progress):
            start_key, run_key = jr.split(jr.fold_in(key, index))
            samples = run(
                run_key,
                sampler,
                self.energy.log_density,
                self.start.sample(start_key, at_once),
                num_steps=self.config.sample_steps,
                check=False,  # the energy was checked when it was fitted
            )
            drawn.append(samples.particles)
        return jnp.concatenate(drawn)[:num]


def fit(
    key: Key,
    energy: AbstractEnergy,
    data: Particles,
    config: FitConfig | None = None,
    *,
    kernel: AbstractKernel | None = None,
    checkpoint: pathlib.Path | None = None,
    progress: bool = False,
    on_epoch: Callable[[dict[str, float]], None] | None = None,
) -> Fitted:
    """Fit an energy to data by contrastive divergence.

    Args:
        key: The source of randomness.
        energy: The energy to train, such as `es.energies.energy_for(...)` gives.
        data: The data, stacked on axis 0.
        config: The settings; the defaults suit small particle systems.
        kernel: The kernel of the negatives; by default that of the energy's symmetry.
        checkpoint: A file written after each epoch. If it is there already, the fit
            goes on from it, to the same numbers as without the interruption.
        progress: Whether to show a progress bar.
        on_epoch: Called with the means of each epoch.

    Returns:
        The learned density.

    Raises:
        ValueError: If the data or the energy is not what it should be.
        CheckpointError: If the checkpoint does not fit the settings.
        FloatingPointError: If the energy stops being finite; the checkpoint keeps the
            last good epoch.
    """
    config = config or FitConfig()
    data = check_particles(data, "data")
    if len(data) < 2:
        raise ValueError(f"`fit` needs at least two data points, but got {len(data)}.")
    group = energy.group(data.shape[1:])
    data = jax.vmap(group.project)(data)
    check_invariance(energy.log_density, group, data)
    kernel = kernel or energy.kernel(config.bandwidth)
    kernel.check_shape(data.shape[1:])
    start = Box(data, group)
    header = {
        "settings": dataclasses.asdict(config),
        "data": [*data.shape, str(data.dtype)],
        "key": jr.key_data(key).tolist(),
    }
    config = config.in_units(float(start.reach))
    num_batches = config.num_epochs * (len(data) // min(config.batch_size, len(data)))
    trainer = ContrastiveDivergence(
        config, training_svgd(kernel, config), optimizer(config, num_batches), start
    )
    init_key, epoch_key = jr.split(key)
    state = trainer.init(init_key, energy)
    empty = _empty_history(config.num_epochs)
    if checkpoint is not None and checkpoint.exists():
        state, empty = load_checkpoint(checkpoint, (state, empty), header)
    history = {name: np.array(values) for name, values in empty.items()}
    done = int(state.epoch)
    epochs = progress_bar(
        range(done, config.num_epochs), initial=done, total=config.num_epochs,
        disable=not progress, unit="epoch",
    )  # fmt: skip
    for epoch in epochs:
        new, infos = trainer.epoch(epoch_key, state, data)
        row = {name: float(np.mean(value)) for name, value in vars(infos).items()}
        if not _is_finite(new, row):
            raise FloatingPointError(
                f"The energy stopped being finite in epoch {epoch + 1} (largest energy "
                f"{row['largest_energy']:.3g}, score norm {row['score_norm']:.3g}). "
                "Take a smaller `learning_rate` or `langevin`, or a larger "
                "`regularization`."
            )
        state = new
        for name, value in row.items():
            history[name][epoch] = value
        if checkpoint is not None:
            save_checkpoint(checkpoint, (state, history), header)
        if on_epoch is not None:
            on_epoch({"epoch": epoch + 1, **row})
        epochs.set_postfix(
            gap=f"{row['positive_energy'] - row['negative_energy']:.2f}", refresh=False
        )
    rows = {"epoch": np.arange(1, config.num_epochs + 1), **history}
    return Fitted(state.average, state.particles, rows, start, kernel, config)


def save_fitted(path: pathlib.Path, fitted: Fitted, header: dict[str, Any]) -> None:
    """Write what is needed to draw from a fit again.

    Args:
        path: The file.
        fitted: The fit.
        header: What tells how to build its structure, as a JSON object.
    """
    save_checkpoint(path, (fitted.energy, fitted.particles, fitted.start), header)


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
    start = Box(like, energy.group(like.shape[1:]))
    particles = jnp.zeros((config.num_particles, *like.shape[1:]), like.dtype)
    like_this = (energy, particles, start)
    energy, particles, start = load_checkpoint(path, like_this, header)
    kernel = energy.kernel(config.bandwidth)
    config = config.in_units(float(start.reach))
    return Fitted(energy, particles, {}, start, kernel, config)


def training_svgd(kernel: AbstractKernel, config: FitConfig) -> SVGD:
    """Return the sampler of the negatives."""
    assert config.stein_step is not None
    assert config.langevin is not None
    return SVGD(
        kernel,
        optax.sgd(config.stein_step),
        langevin=config.langevin,
        score_clip=config.score_clip,
    )


def sampling_svgd(kernel: AbstractKernel, config: FitConfig) -> SVGD:
    """Return the sampler of new points: the same, and at last with less noise."""
    assert config.stein_step is not None
    assert config.langevin is not None
    tail = max(1, round(config.sample_tail * config.sample_steps))
    fading = optax.linear_schedule(
        config.langevin, 0.05 * config.langevin, tail, config.sample_steps - tail
    )
    return SVGD(
        kernel,
        optax.sgd(config.stein_step),
        langevin=fading if config.langevin else 0.0,
        score_clip=config.score_clip,
    )


def optimizer(config: FitConfig, num_batches: int) -> optax.GradientTransformation:
    """Return what moves the weights."""
    rate = optax.cosine_decay_schedule(config.learning_rate, num_batches, alpha=0.01)
    return optax.chain(
        optax.clip_by_global_norm(config.gradient_clip), optax.adam(rate)
    )


def _empty_history(num_epochs: int) -> dict[str, np.ndarray]:
    names = (
        "loss", "positive_energy", "negative_energy", "largest_energy", "score_norm",
        "displacement",
    )  # fmt: skip
    return {name: np.full(num_epochs, np.nan) for name in names}


def _is_finite(state: TrainState, row: dict[str, Any]) -> bool:
    arrays = jax.tree.leaves(eqx.filter(state.average, eqx.is_inexact_array))
    finite = all(bool(jnp.all(jnp.isfinite(array))) for array in arrays)
    return finite and bool(np.all(np.isfinite(list(row.values()))))
