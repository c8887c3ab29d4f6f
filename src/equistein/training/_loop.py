"""The loop over epochs, with checkpoints and roll-backs."""

import dataclasses
import pathlib
import warnings
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
from jaxtyping import PyTree

from equistein._progress import progress_bar
from equistein._sharding import fetch, on_all
from equistein.samplers import Normal
from equistein.training._batch import Batch
from equistein.training._checkpoint import CheckpointWriter
from equistein.training._fitted import DivergenceError, Fitted
from equistein.training._history import History, means
from equistein.training._rollback import RollBack
from equistein.training._source import AbstractSource
from equistein.training._trainer import Trainer, TrainState
from equistein.training.callbacks._base import AbstractCallback
from equistein.training.generators._base import AbstractGenerator


@dataclasses.dataclass
class Loop:
    """A fit under way.

    Its parts are those of `fit`; the `header` of a checkpoint tells that it belongs to
    this fit.
    """

    trainer: Trainer
    source: AbstractSource
    state: TrainState
    history: History
    rollback: RollBack
    generator: AbstractGenerator | None
    reference: Normal
    callbacks: tuple[AbstractCallback, ...]
    num_epochs: int
    checkpoint: pathlib.Path | None
    header: dict[str, Any]

    def __post_init__(self):
        self.trainer, self.state = self._placed((self.trainer, self.state))
        self.good = self.state
        self.writer = CheckpointWriter()

    def saved(self) -> tuple:
        """Return what a checkpoint holds."""
        return self.state, self.good, self.history.copied()

    def restore(self, saved: tuple) -> None:
        """Go on from what a checkpoint held."""
        state, good, arrays = saved
        self.state, self.good = self._placed((state, good))
        self.history = History(arrays)

    def run(self, progress: bool) -> Fitted:
        """Train to the last epoch, or until a callback wants to stop.

        Raises:
            DivergenceError: If the fit diverged once too often.
        """
        try:
            return self._run(progress)
        finally:
            self.writer.finish()

    def _run(self, progress: bool) -> Fitted:
        last, done = self.num_epochs, int(self.state.epoch)
        bar = progress_bar(initial=done, total=last, disable=not progress, unit="epoch")
        with bar:
            while int(self.state.epoch) < last and not self._should_stop():
                if self.history.num_events > self.rollback.max_rollbacks:
                    verdict = self.rollback.verdict(self.history.events())
                    raise DivergenceError(verdict, self.fitted(self.good))
                row = self.epoch()
                if row is not None:
                    bar.set_postfix(_shown(row), refresh=False)
                bar.update(int(self.state.epoch) - bar.n)
                if row is None:
                    text = f"The fit diverged {self.history.events()[-1]['text']}"
                    if progress:
                        bar.write(text)
                    else:
                        warnings.warn(text, RuntimeWarning, stacklevel=4)
        return self.fitted(self.state)

    def epoch(self) -> dict[str, float] | None:
        """Train an epoch and keep it; or go back, and return None."""
        number = int(self.state.epoch)
        num = self.trainer.num_batches * self.trainer.batch_size
        tried = self.history.num_tried(number)
        points, labels = self.source.epoch(tried, num)
        # What an epoch's last update did shows in the next: the state before is the
        # last one known to be good.
        is_kept = number % max(1, self.num_epochs // 20) == 0
        before = self.state if is_kept else None
        new, infos = self.trainer.epoch(self.state, points, labels)
        infos, scale = jax.device_get(fetch((infos, new.scale)))  # once an epoch
        row = means(infos)
        reason = self.rollback.trouble(infos)
        if reason is not None:
            self._go_back(number + 1, reason, row.get("largest_energy", float("nan")))
            return None
        if before is not None:
            self.good = before
        self.state = new
        row["scale"] = float(scale)
        last = number + 1 == self.num_epochs
        if self.callbacks:
            average = fetch(new.average)
            for callback in self.callbacks:
                row |= callback(number + 1, average, row, last=last)
        self.history.add_row(number, row)
        self._save()
        return row

    def fitted(self, state: TrainState) -> Fitted:
        """Return what a state of the fit has learned."""
        average, scale = fetch((state.average, state.scale))
        generator = self.generator
        if generator is not None:
            generator = generator.scaled(scale)
        return Fitted(
            average, self.history.columns(), self.history.events(), generator,
            self.reference,
        )  # fmt: skip

    def _go_back(self, epoch: int, reason: str, largest: float) -> None:
        """Return to the last good state, with half the steps and a new key."""
        good = self.good
        self.history.add_event(
            epoch, reason, largest, int(good.epoch), float(good.scale) / 2
        )
        key = jr.fold_in(jr.wrap_key_data(good.key), self.history.num_events)
        self.state = eqx.tree_at(
            lambda s: (s.scale, s.key), good, (good.scale / 2, jr.key_data(key))
        )
        self.good = self.state
        self._save()

    def _placed(self, tree: PyTree) -> PyTree:
        """Return a tree with its arrays where the trainer computes."""
        mesh = self.trainer.mesh
        return tree if mesh is None else on_all(tree, mesh)

    def _should_stop(self) -> bool:
        epochs = int(self.state.epoch)
        rows = {n: v[:epochs] for n, v in self.history.arrays["rows"].items()}
        return epochs > 0 and any(each.wants_to_stop(rows) for each in self.callbacks)

    def _save(self) -> None:
        """Begin to write the checkpoint; of the processes of a mesh the first does."""
        if self.checkpoint is None:
            return
        saved = fetch(self.saved())
        if self.trainer.mesh is None or jax.process_index() == 0:
            self.writer.write(self.checkpoint, saved, self.header)


def columns_of(
    trainer: Trainer,
    state: TrainState,
    data: Batch,
    callbacks: Sequence[AbstractCallback],
) -> list[str]:
    """Return the names of the history's columns.

    Raises:
        ValueError: If two parts give a column the same name, or a callback looks at one
            that there is not.
    """
    _, infos = eqx.filter_eval_shape(trainer.epoch, state, data.points, data.labels)
    names = [*sorted(set(infos) - {"is_finite"}), "scale"]
    for callback in callbacks:
        found = list(callback.columns(state.energy))
        both = sorted(set(names) & set(found))
        if both:
            raise ValueError(
                f"A callback gives {', '.join(both)}, which the history has already: "
                "choose other names."
            )
        names += found
    for callback in callbacks:
        callback.check(names)
    return names


def _shown(row: dict[str, float]) -> dict[str, str]:
    shown = {}
    if "negative_energy" in row:
        shown["gap"] = f"{row['positive_energy'] - row['negative_energy']:.2f}"
    if "accuracy" in row:
        shown["accuracy"] = f"{row['accuracy']:.3f}"
    return shown or {"loss": f"{row['loss']:.3f}"}
