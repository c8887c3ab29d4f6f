"""Fit an energy to data."""

import dataclasses
import hashlib
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array

from equistein._arrays import check_particles
from equistein._types import Key, Particles, Scalar
from equistein.energies import AbstractEnergy, FormulasEnergy
from equistein.groups import check_invariance
from equistein.kernels import AbstractKernel, MaximumDiscrepancy
from equistein.samplers import AbstractSampler
from equistein.training._checkpoint import load_checkpoint
from equistein.training._config import FitConfig
from equistein.training._fitted import Fitted
from equistein.training._kernel import choose_kernel
from equistein.training._labels import check_labels, num_classes_of
from equistein.training._lengths import Lengths, levels_of
from equistein.training._log import TrainingLog
from equistein.training._loop import columns, Loop, Monitor
from equistein.training._optimizer import weight_optimizer
from equistein.training._start import AbstractStart, start_for
from equistein.training._trainer import Trainer


def fit(
    key: Key,
    energy: AbstractEnergy,
    data: Particles,
    config: FitConfig | None = None,
    *,
    labels: Any = None,
    kernel: AbstractKernel | None = None,
    sampler: AbstractSampler | None = None,
    checkpoint: pathlib.Path | str | None = None,
    monitor: Callable[[AbstractEnergy], Mapping[str, Scalar]] | None = None,
    monitor_every: int = 1,
    progress: bool = False,
    on_epoch: Callable[[dict[str, float]], None] | None = None,
) -> Fitted:
    """Fit an energy to data by contrastive divergence, score matching, or both.

    A fit that diverges goes back to its last good state and tries again with half the
    steps and new randomness, as often as the settings allow; it warns when it does.

    Args:
        key: The source of randomness.
        energy: The energy to train, such as `es.energies.energy_for(...)` gives.
        data: The data, stacked on axis 0.
        config: The settings; the defaults suit small particle systems.
        labels: For a `JointEnergy` the class of each point, -1 where it is unknown; for
            another energy the known energy of each point, NaN where it is unknown.
        kernel: The kernel of the negatives; by default that of the energy's symmetry.
        sampler: Any sampler of the negatives, instead of the one in the settings; its
            steps stay as they are. New samples are drawn by the settings' own. None
            for a `NoiseEnergy`, whose particles are annealed.
        checkpoint: A file written after each epoch. If it is there already, the fit
            goes on from it, to the same numbers as without the interruption.
        monitor: A function of the averaged energy whose numbers join the history.
        monitor_every: The number of epochs between two looks; others have NaN.
        progress: Whether to show a progress bar.
        on_epoch: Called with the numbers of each epoch.

    Returns:
        The learned density.

    Raises:
        ValueError: If the data, the labels or the energy is not what it should be.
        CheckpointError: If the checkpoint does not fit the settings.
        DivergenceError: If the fit diverged once too often; it holds the last good
            state, and so does the checkpoint.
    """
    if sampler is not None and not isinstance(sampler, AbstractSampler):
        raise ValueError(
            "`fit` needs `sampler`, one such as SVGD(kernel, optimizer), or None for "
            f"the settings' own, but got {sampler!r}."
        )
    checkpoint = None if checkpoint is None else pathlib.Path(checkpoint)
    config = config or FitConfig()
    data = check_data(data, config.batch_size)
    config = config.for_data(len(data))
    shape = data.shape[1:]
    known = check_labels(labels, energy, data)
    if known is None and config.contrastive == config.score_matching == 0:
        raise ValueError(
            "FitConfig with `contrastive` and `score_matching` 0 learns from labels "
            "alone, but `labels` are missing."
        )
    group = energy.group(shape)
    data = jax.vmap(group.project)(data)
    if levels_of(energy) is not None:
        _check_levels(config, kernel, sampler)
    if isinstance(energy, FormulasEnergy):
        if config.contrastive:
            raise ValueError(
                "A FormulasEnergy is learned by denoising alone: take the settings "
                f"DENOISING, with `contrastive` 0, but got {config.contrastive!r}."
            )
        data = jax.vmap(lambda label, x: energy.given(label).project(x))(known, data)
    check_invariance(energy.log_density, group, data)
    kernel = kernel or choose_kernel(energy, config, shape)
    kernel.check_shape(shape)
    start = start_for(config, data, group, known, num_classes_of(energy, shape))
    optimizer = weight_optimizer(config, config.num_batches(len(data)))
    lengths = Lengths(config, start.reach, energy)
    check_start(energy, start, config)
    trainer = Trainer(config, lengths, kernel, optimizer, start, sampler)
    watch = Monitor(monitor, monitor_every, energy)
    state = trainer.init(key, energy)
    log = TrainingLog.empty(config, columns(trainer, state, data, known, watch))
    header = {
        "settings": dataclasses.asdict(config),
        "data": _fingerprint(data),
        "labels": None if known is None else _fingerprint(known),
        "key": jr.key_data(key).tolist(),
        "monitor": watch.names,
        "kernel": _described(kernel),
        "sampler": _described(sampler),
    }
    loop = Loop(trainer, data, known, state, log, watch, checkpoint, header)
    if checkpoint is not None and checkpoint.exists():
        loop.restore(load_checkpoint(checkpoint, loop.saved(), header))
    return loop.run(progress, on_epoch)


def _check_levels(
    config: FitConfig, kernel: AbstractKernel | None, sampler: AbstractSampler | None
) -> None:
    """Raise unless the settings do for a `NoiseEnergy`.

    Raises:
        ValueError: If they do not.
    """
    if config.temperature != 1:
        raise ValueError(
            "A NoiseEnergy has levels of noise instead of a `temperature`, which must "
            f"be 1, but got {config.temperature!r}."
        )
    if sampler is not None:
        raise ValueError(
            "Particles of a NoiseEnergy are annealed as the settings say: leave "
            f"`sampler` out, but got {sampler!r}."
        )
    if kernel is not None and isinstance(kernel.rule, MaximumDiscrepancy):
        raise ValueError(
            "Particles of a NoiseEnergy change their level in each step, too fast to "
            "learn a bandwidth: give `kernel` a number or Median(), not "
            f"{kernel.rule!r}."
        )
    given = {
        "buffer_size": config.buffer_size,
        "repel": config.repel or None,
        "tolerance": config.tolerance,
    }
    for name, value in given.items():
        if config.contrastive and value is not None:
            raise ValueError(
                "Particles of a NoiseEnergy are annealed together, in a fixed number "
                f"of steps and without data: leave `{name}` out, but got {value!r}."
            )


def check_start(
    energy: AbstractEnergy, start: AbstractStart, config: FitConfig
) -> None:
    """Raise unless energies are moderate where particles start.

    Raises:
        ValueError: If they are not, as with columns of very different scales.
    """
    points = start.sample(jr.key(0), 256)
    largest = float(jnp.max(jnp.abs(jax.vmap(energy)(points))))
    if not largest <= config.energy_limit:
        raise ValueError(
            f"Where particles start, around `data`, the energy reaches {largest:.3g}, "
            f"beyond `energy_limit`, {config.energy_limit:g}, before anything is "
            "learned. "
            "Columns of very different scales do that: divide each by its standard "
            "deviation."
        )


def _described(part: Any) -> list | None:
    """Return what tells a kernel or a sampler from others, as JSON."""
    if part is None:
        return None
    numbers = jax.tree.leaves(eqx.filter(part, eqx.is_array_like))
    return [type(part).__name__, *(np.asarray(n).tolist() for n in numbers)]


def _fingerprint(values: Array) -> list:
    """Return what tells an array from others."""
    digest = hashlib.sha256(np.asarray(values).tobytes()).hexdigest()
    return [*values.shape, str(values.dtype), digest]


def check_data(data: Any, batch_size: int) -> Particles:
    """Return the data as an array of finite points, at least a batch of them.

    Raises:
        ValueError: If it is not.
    """
    data = check_particles(data, "data")
    if len(data) < 2:
        raise ValueError(f"`fit` needs at least two data points, but got {len(data)}.")
    if len(data) < batch_size:
        raise ValueError(
            f"`data` holds {len(data)} points, fewer than a batch of {batch_size}: "
            f"give a `batch_size` of at most {len(data)}."
        )
    return data
