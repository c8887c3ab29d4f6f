"""Fit an energy to data."""

import json
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import optax
from jax.sharding import Mesh

from equistein._arrays import as_keys, check_particles, on_device
from equistein._limits import check_memory
from equistein._numbers import check_integers
from equistein._sharding import check_agreed, check_mesh, replicate
from equistein._types import AnyKey, Particles
from equistein.energies import AbstractEnergy
from equistein.samplers import Normal
from equistein.training._checkpoint import identify
from equistein.training._data import (
    AbstractSource,
    as_labels,
    as_source,
    Batch,
    InMemory,
    Labels,
)
from equistein.training._fitted import Fitted
from equistein.training._generators import AbstractGenerator
from equistein.training._initial import Box
from equistein.training._loop import Callback, Loop, Monitor
from equistein.training._objectives import AbstractObjective
from equistein.training._trainer import Optimization, Trainer, TrainState

_BYTES_PER_NUMBER = 24  # of the history, with its copy for a checkpoint


def fit(
    key: AnyKey,
    energy: AbstractEnergy,
    data: Any,
    objective: AbstractObjective,
    *,
    num_epochs: int,
    batch_size: int = 128,
    labels: Any = None,
    optimizer: optax.GradientTransformation | Optimization | None = None,
    generator: AbstractGenerator | None = None,
    checkpoint: pathlib.Path | str | None = None,
    callbacks: Sequence[Callback] = (),
    mesh: Mesh | None = None,
    progress: bool = False,
) -> Fitted:
    """Fit an energy to data by minimizing an objective.

    A fit that diverges goes back to its last good state and tries again with half the
    step sizes and new randomness, a few times; each time it warns.

    Args:
        key: The source of randomness, `jax.random.key(0)` or an integer.
        energy: The energy to train; `es.models.for_data` makes one, and an objective
            and a generator, that suit a group and data.
        data: The data, stacked on axis 0; or an array on disk, such as
            `es.data.map_points(path)`; or a source, which can set the batches per
            epoch: `es.training.InMemory`, `Stream` for a data loader, or `OnDisk`, with
            which memory holds the points of two epochs.
        objective: What is minimized, such as `ContrastiveDivergence(negatives)`;
            objectives add and scale.
        num_epochs: The number of epochs; each is a pass over the data in random order,
            less an incomplete last batch, unless the source sets its batches.
        batch_size: Data points per batch; at most all of them.
        labels: For each point its class, -1 where it is unknown; or its known energy,
            NaN where it is unknown; as the objective needs them.
        optimizer: An Optax transformation, by default `es.training.adam` from 2e-3; or
            an `es.training.Optimization`, which also sets the running mean of the
            weights, the precision of matrix products and the roll-backs.
        generator: How new samples are drawn from the learned density.
        checkpoint: A file written after each epoch. If it exists, the fit continues
            from it, to the same numbers as without the interruption.
        callbacks: What looks at each epoch: `Monitor(function)`, whose numbers join
            the history, or a function of a dictionary, `epoch` and that epoch's row of
            the history, with Monitors listed before it. Where it returns True the fit
            ends, with what it learned; a resumed one goes on until it is True again.
        mesh: The devices that share each batch and the negatives, such as
            `es.device_mesh()`; None is one device. A fit resumes on any number of them.
        progress: Whether to show a progress bar.

    Raises:
        CheckpointError: If the checkpoint is damaged, or comes from other arguments.
        DivergenceError: If the fit diverged once too often; it holds the last good
            state, and so does the checkpoint.
    """
    key = as_keys(key)
    default = jax.eval_shape(lambda: jr.key_data(jr.key(0)))
    if jr.key_data(key).shape != default.shape:
        raise ValueError(
            "`fit` needs one `key` of JAX's default PRNG implementation, such as "
            f"jax.random.key(0), but got {key}."
        )
    if not isinstance(energy, AbstractEnergy):
        raise ValueError(
            "`fit` needs `energy`, such as es.models.for_data(...).energy, but got a "
            f"{type(energy).__name__}. A custom network, a subclass of "
            "es.networks.AbstractNetwork, becomes one by es.energies.PlainEnergy."
        )
    mesh = None if mesh is None else check_mesh("fit", mesh)
    optimization = (
        optimizer if isinstance(optimizer, Optimization) else Optimization(optimizer)
    )
    source = as_source(data, labels)
    check_integers("`fit`", num_epochs=num_epochs, batch_size=batch_size)
    preview, preview_labels = source.preview(batch_size)
    checked = check_data(energy, preview, objective, preview_labels, batch_size)
    trainer = _trainer(source, objective, optimization, num_epochs, batch_size)
    state = trainer.init(key, energy, checked)
    columns = _columns(trainer, state, checked, callbacks)
    size = _BYTES_PER_NUMBER * num_epochs * len(columns)
    check_memory("The history of all epochs", size, "take a smaller `num_epochs`")
    shape = checked.points.shape[1:]
    source.prepare(key, trainer.num_batches * batch_size, energy.num_classes(shape))
    fingerprint = {}
    if checkpoint is not None or mesh is not None:  # which compare it
        fingerprint = {
            "num_epochs": num_epochs,
            **{name: identify(part) for name, part in vars(trainer).items()},
            "energy": identify(state.energy),
            "max_rollbacks": optimization.max_rollbacks,
            "energy_limit": optimization.energy_limit,
            "data": identify([checked.points, checked.labels, source.fingerprint()]),
            "key": jr.key_data(key).tolist(),
            "columns": columns,
        }
    if mesh is not None:
        check_agreed("fit", (), json.dumps(fingerprint))
        trainer = trainer.shard(mesh)
    box = Box(checked.points, energy.group(shape))
    loop = Loop(
        trainer, _epoch_data(source, preview, energy, checked, mesh), state,
        history={name: [] for name in columns},
        optimization=optimization, generator=generator,
        reference=Normal(box.center, float(box.reach) / 2, box.group),
        callbacks=tuple(callbacks), num_epochs=num_epochs,
        checkpoint=None if checkpoint is None else pathlib.Path(checkpoint),
        fingerprint=fingerprint,
    )  # fmt: skip
    loop.restore()
    return loop.run(progress)


def check_data(
    energy: AbstractEnergy, data: Any, objective: AbstractObjective, labels: Any,
    batch_size: int,
) -> Batch:  # fmt: skip
    """Return data and labels as a batch: checked, the data projected by the group."""
    data = check_particles(data, "data")
    if len(data) < max(2, batch_size):
        raise ValueError(
            f"`fit` needs at least two data points and a batch of {batch_size}, but "
            f"`data` holds {len(data)}: give more, or a smaller `batch_size`."
        )
    if not isinstance(objective, AbstractObjective):
        raise ValueError(
            "`fit` needs `objective`, such as "
            f"es.objectives.ContrastiveDivergence(negatives), but got {objective!r}."
        )
    labels = as_labels(labels, data)
    if labels is not None and not objective.uses_labels:
        raise ValueError(
            "`labels` were given, but the objective makes no use of them: add "
            "CrossEntropy() for classes or SquaredError() for known energies, or leave "
            "them out."
        )
    data = energy.group(data.shape[1:]).project_points(data)
    energy.check_symmetry(data)
    return Batch(data, labels, on_device(np.arange(len(data))))


def _trainer(
    source: AbstractSource, objective: AbstractObjective, optimization: Optimization,
    num_epochs: int, batch_size: int,
) -> Trainer:  # fmt: skip
    if objective.uses_rows and not isinstance(source, InMemory):
        raise ValueError(
            "`objective` has a value for each point of `data`, as ForceMatching: give "
            "it as an array in memory."
        )
    batches = source.num_batches(batch_size)
    check_integers(type(source).__name__, epoch_batches=batches)
    optimizer = optimization.transformation(num_epochs * batches)
    return Trainer(
        objective, optimizer, batch_size, batches, float(optimization.ema),
        optimization.precision,
    )  # fmt: skip


def _epoch_data(
    source: AbstractSource, preview: Any, energy: AbstractEnergy, checked: Batch,
    mesh: Mesh | None,
) -> Callable[[int], tuple[Particles, Labels]]:  # fmt: skip
    """Return a function that loads, projects and places the data of an epoch."""
    place = (lambda tree: tree) if mesh is None else lambda tree: replicate(tree, mesh)
    group = energy.group(checked.points.shape[1:])
    checked_arrays = place((checked.points, checked.labels))

    def epoch_data(number):
        points, labels = source.epoch_points(number)
        if points is preview:  # data in memory, which `check_data` has projected
            return checked_arrays
        points = group.project_points(on_device(points))
        return place((points, as_labels(labels, points)))

    return epoch_data


def _columns(
    trainer: Trainer, state: TrainState, data: Batch, callbacks: Sequence[Callback]
) -> list[str]:
    """Return the history's columns; raise `ValueError` if a callback repeats one."""
    _, infos = eqx.filter_eval_shape(trainer.epoch, state, data.points, data.labels)
    names = [*sorted(set(infos) - {"is_finite"}), "step_scale"]
    for callback in callbacks:
        if isinstance(callback, type) or not isinstance(callback, Monitor | Callable):
            raise ValueError(
                "`callbacks` must hold functions of a dictionary, or "
                f"Monitor(function), but got {callback!r}."
            )
        if isinstance(callback, Monitor):
            names += callback.columns(state.energy)
    twice = {name for name in names if ["epoch", *names].count(name) > 1}
    if twice:
        raise ValueError(
            f"A callback gives {', '.join(sorted(twice))}, which the history has "
            "already: choose other names."
        )
    return names
