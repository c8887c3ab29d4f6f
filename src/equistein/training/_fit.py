"""Fit an energy to data."""

import json
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, get_args

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jax.sharding import Mesh

from equistein._alike import one_of_alike
from equistein._arrays import as_key, check_particles
from equistein._numbers import check_integers
from equistein._sharding import agreed, checked_mesh, disagreeing
from equistein._types import AnyKey, Key, Particles
from equistein.energies import AbstractEnergies
from equistein.samplers import Normal
from equistein.training._batch import Batch
from equistein.training._checkpoint import load_checkpoint
from equistein.training._description import described, fingerprint
from equistein.training._fitted import Fitted
from equistein.training._history import History
from equistein.training._labels import as_labels, check_known_classes
from equistein.training._loop import columns_of, Loop
from equistein.training._optimizer import adam
from equistein.training._rollback import RollBack
from equistein.training._source import (
    AbstractSource,
    check_on_disk,
    InMemory,
    OnDisk,
    SEEN,
    spread_rows,
)
from equistein.training._stream import Stream
from equistein.training._trainer import Precision, Trainer
from equistein.training.callbacks._base import AbstractCallback
from equistein.training.callbacks._on_epoch import OnEpoch
from equistein.training.generators._base import AbstractGenerator
from equistein.training.objectives._base import AbstractObjective
from equistein.training.starts._box import Box

_LEARNING_RATE = 2e-3


def fit(
    key: AnyKey,
    energy: AbstractEnergies,
    data: Particles | np.memmap | Iterable[Any],
    objective: AbstractObjective,
    *,
    num_epochs: int,
    batch_size: int = 128,
    epoch_batches: int | None = None,
    labels: Any = None,
    optimizer: optax.GradientTransformation | None = None,
    ema: float = 0.995,
    generator: AbstractGenerator | None = None,
    rollback: RollBack | None = None,
    checkpoint: pathlib.Path | str | None = None,
    precision: Precision | None = None,
    callbacks: Sequence[AbstractCallback | Callable[[dict[str, float]], object]] = (),
    mesh: Mesh | None = None,
    progress: bool = False,
) -> Fitted:
    """Fit an energy to data by minimizing an objective.

    A fit that diverges goes back to its last good state and tries again with half the
    steps and new randomness, as often as `rollback` allows; it warns when it does.

    Args:
        key: The source of randomness, `jax.random.key(0)` or an integer.
        energy: The energy to train; `es.models.for_data` makes one, and an objective
            and a generator, that suit a group and data.
        data: The data, stacked on axis 0; or an array on disk, such as
            `es.data.map_points(path)`, of which an epoch reads its points; or
            an iterable of arrays of points, or of pairs of points and labels, of any
            number each, such as a data loader. Checks of a symmetry, and starts, look
            at 8 192 points of an array on disk, the first ones of an iterable.
        objective: What is minimized, such as `ContrastiveDivergence(negatives)`;
            objectives add and scale.
        num_epochs: The number of epochs.
        batch_size: Data points a batch; at most all of them.
        epoch_batches: Batches an epoch; by default as many as make one pass over the
            data; an iterable needs it. They are in random order, and go through all of
            the data before any comes again.
        labels: For each point its class, -1 where it is unknown; or its known energy,
            NaN where it is unknown; as the objective needs them.
        optimizer: An Optax transformation of the gradient of all weights; by default
            `adam` from 2e-3 down over all updates.
        ema: The decay of the running mean of the weights, which is what the result
            holds; 0 takes the last weights.
        generator: How new samples are drawn from what was learned.
        rollback: When a fit goes back, and how often; by default `RollBack()`.
        checkpoint: A file written after each epoch. If it is there already, the fit
            goes on from it, to the same numbers as without the interruption (with an
            iterable that gives the same again).
        precision: How products of networks round their factors, as JAX names it:
            `float32` not at all; `tensorfloat32` to 11 bits on a GPU; `bfloat16` as
            much as the device likes, 8 bits on a TPU and 11 on a GPU. None is what JAX
            was told, by default the last. A processor does not round. Kernels, groups
            and steerable convolutions are never rounded.
        callbacks: What looks at each epoch, such as `Monitor(function)`, or a function
            that gets a dictionary of floats and returns True to end the fit there.
        mesh: The devices that share each batch and the negatives, such as
            `es.device_mesh()`; None is one. A checkpoint goes on with any number.
        progress: Whether to show a progress bar.

    Returns:
        The learned density.

    Raises:
        ValueError: If the data, the labels or the energy is not what it should be.
        CheckpointError: If the checkpoint does not fit the other arguments.
        DivergenceError: If the fit diverged once too often; it holds the last good
            state, and so does the checkpoint.
    """
    key = as_key(key)
    if not isinstance(energy, AbstractEnergies):
        raise ValueError(
            "`fit` needs `energy`, such as one of es.energies, or "
            f"es.models.for_data(...).energy, but got one of {type(energy)}. A network "
            "of yours is a subclass of es.networks.AbstractNetwork, and "
            "es.energies.PlainEnergy(network) its energy."
        )
    mesh = None if mesh is None else checked_mesh("fit", mesh)
    source, everything = opened(
        key, energy, data, objective, labels, batch_size, epoch_batches, mesh
    )
    if objective.uses_rows and not isinstance(source, InMemory):
        raise ValueError(
            "`objective` knows the points by their rows, as ForceMatching does: give "
            "`data` as an array in memory."
        )
    if epoch_batches is None:
        epoch_batches = max(1, len(source.data) // batch_size)
    check_integers("`fit`", num_epochs=num_epochs, epoch_batches=epoch_batches)
    if not 0 <= ema < 1:
        raise ValueError(f"`fit` needs 0 <= `ema` < 1, but got {ema!r}.")
    if precision not in (None, *get_args(Precision)):
        raise ValueError(
            f"`fit` needs `precision` to be None or one of {get_args(Precision)}, but "
            f"got {precision!r}."
        )
    rollback = rollback or RollBack()
    if optimizer is None:
        optimizer = adam(_LEARNING_RATE, num_epochs * epoch_batches)
    optimizer = one_of_alike(optimizer)
    trainer = Trainer(
        objective, optimizer, batch_size, epoch_batches, float(ema), precision
    )
    on_devices = trainer if mesh is None else trainer.on(mesh)
    state = trainer.init(key, energy, everything)
    watching = tuple(map(_as_callback, callbacks))
    names = columns_of(trainer, state, everything, watching)
    history = History.empty(num_epochs, rollback.max_rollbacks, names)
    if checkpoint is not None:
        checkpoint = pathlib.Path(checkpoint)
        checkpoint.parent.mkdir(exist_ok=True)  # never one that was deleted meanwhile
    header = {
        "num_epochs": num_epochs,
        "trainer": described(trainer),
        "energy": described(state.energy),
        "rollback": described(vars(rollback)),
        "data": fingerprint(source.data),
        "labels": None if source.labels is None else fingerprint(source.labels),
        "key": jr.key_data(key).tolist(),
        "columns": names,
    }
    different = [] if mesh is None else disagreeing(json.dumps(header).encode())
    if different:
        raise ValueError(
            f"Processes {', '.join(map(str, different))} were given another fit than "
            "process 0: the arguments of `fit`, and the data, must be the same in all."
        )
    loop = Loop(
        on_devices, source, state, history, rollback, generator,
        _reference(energy, everything.points), watching, num_epochs, checkpoint,
        header,
    )  # fmt: skip
    exists = checkpoint is not None and checkpoint.exists()
    if checkpoint is not None and (exists if mesh is None else agreed(exists)):
        loop.restore(load_checkpoint(checkpoint, loop.saved(), header))
    return loop.run(progress)


def _as_callback(callback: Any) -> AbstractCallback:
    """Return a callback, of a function one that calls it.

    Raises:
        ValueError: If it is neither.
    """
    if isinstance(callback, AbstractCallback):
        return callback
    if isinstance(callback, type) or not callable(callback):
        raise ValueError(
            "`callbacks` must hold functions of a dictionary, or callbacks such as "
            f"Monitor(function), but got {callback!r}."
        )
    return OnEpoch(callback)


def opened(
    key: Key,
    energy: AbstractEnergies,
    data: Any,
    objective: AbstractObjective,
    labels: Any,
    batch_size: int,
    epoch_batches: int | None,
    mesh: Mesh | None,
) -> tuple[AbstractSource, Batch]:
    """Return the source of a fit's points, and those to look at before it begins.

    Raises:
        ValueError: If the data, the labels or their numbers do not fit.
        InvarianceError: If the energy lacks the symmetry it declares.
    """
    if isinstance(data, str | pathlib.Path):
        raise ValueError(
            f"`data` must be an array, but got the path {str(data)!r}: give "
            "es.data.map_points(path), which leaves it on disk."
        )
    if isinstance(data, np.memmap):
        check_on_disk(data)
        all_labels = as_labels(labels, data)
        rows = spread_rows(len(data), max(SEEN, batch_size))
        known = None if all_labels is None else all_labels[rows]
        seen = jnp.asarray(data[rows], float)
        everything = prepared(energy, seen, objective, known, batch_size)
        num_classes = energy.num_classes(data.shape[1:])
        check_known_classes(all_labels, num_classes, "`labels` hold")
        return OnDisk(data, all_labels, key, energy, mesh), everything
    if not isinstance(data, Iterable) or isinstance(data, list | tuple) or hasattr(
        data, "__array__"
    ):  # fmt: skip
        everything = prepared(energy, data, objective, labels, batch_size)
        return InMemory(everything, mesh), everything
    if labels is not None or epoch_batches is None:
        raise ValueError(
            "`data` from an iterable needs `epoch_batches`, the batches of an epoch, "
            "and gives labels itself, as pairs of points and labels: leave `labels` "
            "out."
        )
    check_integers("`fit`", epoch_batches=epoch_batches, batch_size=batch_size)
    stream = Stream(data, min(max(SEEN, batch_size), epoch_batches * batch_size))
    everything = prepared(energy, stream.data, objective, stream.labels, batch_size)
    return stream.onto(energy, mesh), everything


def prepared(
    energy: AbstractEnergies,
    data: Any,
    objective: AbstractObjective,
    labels: Any,
    batch_size: int,
) -> Batch:
    """Return all of the data on the energy's subspace, with labels, both checked.

    Raises:
        ValueError: If labels or data do not fit, there is less than a batch, or no
            objective takes labels.
        InvarianceError: If the energy lacks the symmetry it declares.
    """
    data = check_particles(data, "data")
    check_integers("`fit`", batch_size=batch_size)
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
    known = as_labels(labels, data)
    if known is not None and not objective.uses_labels:
        raise ValueError(
            "`labels` were given, but the objective makes no use of them: add "
            "CrossEntropy() for classes or SquaredError() for known energies, or leave "
            "them out."
        )
    data = jax.vmap(energy.group(data.shape[1:]).project)(data)
    energy.check_symmetry(data)
    return Batch(data, known, jnp.arange(len(data)))


def _reference(energy: AbstractEnergies, data: Particles) -> Normal:
    """Return a normal law as wide as the data's box, on the energy's subspace."""
    box = Box(data, energy.group(data.shape[1:]))
    return Normal(box.center, box.reach / 2, box.group)
