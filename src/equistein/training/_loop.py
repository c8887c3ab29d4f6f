"""The loop over epochs, with checkpoints and roll-backs."""

import dataclasses
import pathlib
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
from jaxtyping import PyTree

from equistein._progress import progress_bar
from equistein._sharding import fetch, on_all
from equistein.samplers import Normal
from equistein.training._checkpoint import CheckpointWriter, load_checkpoint
from equistein.training._fitted import DivergenceError, Fitted
from equistein.training._history import History, means
from equistein.training._optimization import RollBack
from equistein.training._sources import AbstractSource
from equistein.training._trainer import Trainer, TrainState
from equistein.training.callbacks._base import AbstractCallback
from equistein.training.generators._base import AbstractGenerator


@dataclasses.dataclass
class Loop:
    """A fit in progress; its parts are those of `fit`.

    The `header` of a checkpoint is the fingerprint of this fit.
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
        self.good, self.writer = self.state, CheckpointWriter()

    def restore(self) -> None:
        """Continue from the checkpoint.

        Raises:
            CheckpointError: If it does not fit.
        """
        assert self.checkpoint is not None
        saved = load_checkpoint(self.checkpoint, self._saved(), self.header)
        self.state, self.good = self._placed(saved[:2])
        self.history = History(saved[2])

    def run(self, progress: bool) -> Fitted:
        """Train to the last epoch, or until a callback ends the fit.

        Raises:
            DivergenceError: If the fit diverged once too often.
        """
        last, done = self.num_epochs, int(self.state.epoch)
        bar = progress_bar(initial=done, total=last, disable=not progress, unit="epoch")
        try:
            with bar:
                while int(self.state.epoch) < last and not self._should_stop():
                    row = self._epoch()
                    if row is None:
                        self._report_rollback(bar if progress else None)
                    else:
                        bar.set_postfix(_shown(row), refresh=False)
                    bar.update(int(self.state.epoch) - bar.n)
        finally:
            self.writer.finish()
        return self._fitted(self.state)

    def _epoch(self) -> dict[str, float] | None:
        """Train an epoch and keep it; or go back, and return None."""
        if self.history.num_events > self.rollback.max_rollbacks:
            verdict = self.rollback.verdict(self.history.events())
            raise DivergenceError(verdict, self._fitted(self.good))
        number = int(self.state.epoch)
        points, labels = self.source.epoch(self.history.num_tried(number))
        new, infos = self.trainer.epoch(self.state, points, labels)
        infos, scale = jax.device_get(fetch((infos, new.scale)))  # once an epoch
        row = means(infos)
        reason = self.rollback.trouble(infos)
        if reason is not None:
            self._go_back(number + 1, reason, row.get("largest_energy", float("nan")))
            return None
        # The effect of an epoch's last update shows in the next: the state before is
        # the last one known to be good.
        if number % max(1, self.num_epochs // 20) == 0:
            self.good = self.state
        self.state = new
        row["scale"] = float(scale)
        if self.callbacks:
            average, last = fetch(new.average), number + 1 == self.num_epochs
            for callback in self.callbacks:
                row |= callback(number + 1, average, row, last=last)
        self.history.add_row(number, row)
        self._save()
        return row

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

    def _report_rollback(self, bar: Any) -> None:
        text = f"The fit diverged {self.history.events()[-1]['text']}"
        if bar is None:
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        else:
            bar.write(text)

    def _fitted(self, state: TrainState) -> Fitted:
        """Return the learned density of a state."""
        average, scale = fetch((state.average, state.scale))
        generator = self.generator and self.generator.scaled(scale)
        return Fitted(
            average, self.history.columns(), self.history.events(), generator,
            self.reference,
        )  # fmt: skip

    def _placed(self, tree: PyTree) -> PyTree:
        """Return a tree with its arrays on the trainer's devices."""
        mesh = self.trainer.mesh
        return tree if mesh is None else on_all(tree, mesh)

    def _should_stop(self) -> bool:
        epochs = int(self.state.epoch)
        rows = {n: v[:epochs] for n, v in self.history.arrays["rows"].items()}
        return epochs > 0 and any(each.wants_to_stop(rows) for each in self.callbacks)

    def _saved(self) -> tuple:
        """Return the content of a checkpoint."""
        return self.state, self.good, History(self.history.arrays).arrays  # a copy

    def _save(self) -> None:
        """Begin to write the checkpoint; with several processes the first does."""
        if self.checkpoint is None:
            return
        saved = fetch(self._saved())
        if self.trainer.mesh is None or jax.process_index() == 0:
            self.writer.write(self.checkpoint, saved, self.header)


def _shown(row: dict[str, float]) -> dict[str, str]:
    shown = {}
    if "negative_energy" in row:
        shown["gap"] = f"{row['positive_energy'] - row['negative_energy']:.2f}"
    if "accuracy" in row:
        shown["accuracy"] = f"{row['accuracy']:.3f}"
    return shown or {"loss": f"{row['loss']:.3f}"}
