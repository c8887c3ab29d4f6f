"""The loop over epochs, with checkpoints and roll-backs."""

import concurrent.futures
import dataclasses
import pathlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from jaxtyping import PyTree

from equistein._progress import progress_bar
from equistein._sharding import fetch, replicate
from equistein.samplers import Normal
from equistein.training._callbacks import AbstractCallback
from equistein.training._checkpoint import load_checkpoint, Rows, save_checkpoint
from equistein.training._fitted import DivergenceError, Fitted
from equistein.training._generators import AbstractGenerator
from equistein.training._trainer import RollBack, Trainer, TrainState


@dataclasses.dataclass
class Loop:
    """A fit in progress; its parts are those of `fit`.

    Attributes:
        points: From how many epochs were computed before, an epoch's points and labels.
        rows: The history, a column of the epochs that were done each.
        header: The fingerprint of this fit, for its checkpoint.
    """

    trainer: Trainer
    points: Callable[[int], tuple]
    state: TrainState
    rows: Rows
    rollback: RollBack
    generator: AbstractGenerator | None
    reference: Normal
    callbacks: tuple[AbstractCallback, ...]
    num_epochs: int
    checkpoint: pathlib.Path | None
    header: dict[str, Any]

    def __post_init__(self):
        self.trainer, self.state = self._placed((self.trainer, self.state))
        self.good, self.events = self.state, []
        self.writer, self.written = concurrent.futures.ThreadPoolExecutor(1), None

    def restore(self, path: pathlib.Path) -> None:
        """Continue from the checkpoint, or raise `CheckpointError`."""
        like = (self.state, self.good)
        states, self.rows, self.events = load_checkpoint(path, like, self.header)
        self.state, self.good = self._placed(states)

    def run(self, progress: bool) -> Fitted:
        """Train to the last epoch, or until a callback ends the fit."""
        last, done = self.num_epochs, int(self.state.epoch)
        bar = progress_bar(initial=done, total=last, disable=not progress, unit="epoch")
        try:
            with bar:
                while int(self.state.epoch) < last and not self._should_stop():
                    row = self._epoch()
                    text = "" if row else f"The fit diverged {self.events[-1]['text']}"
                    if row is not None:
                        bar.set_postfix(_shown(row), refresh=False)
                    elif progress:
                        bar.write(text)
                    else:
                        warnings.warn(text, RuntimeWarning, stacklevel=3)
                    bar.update(int(self.state.epoch) - bar.n)
        finally:
            self._wait()
        return self._fitted(self.state)

    def _epoch(self) -> dict[str, float] | None:
        """Train an epoch and keep it; or go back, and return None."""
        if len(self.events) > self.rollback.max_rollbacks:
            verdict = self.rollback.verdict(self.events)
            raise DivergenceError(verdict, self._fitted(self.good))
        number = int(self.state.epoch)
        lost = sum(each["epoch"] - each["back_to_epoch"] for each in self.events)
        new, infos = self.trainer.epoch(self.state, *self.points(number + lost))
        infos, scale = jax.device_get(fetch((infos, new.scale)))  # once an epoch
        row = means(infos)
        reason = self.rollback.trouble(infos, row)
        if reason is not None:
            self._go_back(number + 1, reason, row)
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
        for name, value in (dict.fromkeys(self.rows, np.nan) | row).items():
            self.rows[name].append(float(value))
        self._save()
        return row

    def _go_back(self, epoch: int, reason: str, row: Mapping[str, float]) -> None:
        """Return to the last good state, with half the steps and a new key."""
        good, last = self.good, len(self.events) == self.rollback.max_rollbacks
        back, scale = int(good.epoch), float(good.scale) / 2
        largest, then = row.get("largest_energy", np.nan), "It gives up."
        event: dict[str, Any] = {
            "event": "stop" if last else "roll-back", "epoch": epoch, "reason": reason,
            "largest_energy": largest if np.isfinite(largest) else None,
        }  # fmt: skip
        if not last:
            event |= {"back_to_epoch": back, "scale": scale}
            then = (
                f"It goes back to epoch {back}, with steps {scale:g} times those set."
            )
            for column in self.rows.values():
                del column[back:]
        event["text"] = f"in epoch {epoch}: {reason}. {then}"
        self.events.append(event)
        key = jr.fold_in(jr.wrap_key_data(good.key), len(self.events))
        self.state = self.good = eqx.tree_at(
            lambda s: (s.scale, s.key), good, (good.scale / 2, jr.key_data(key))
        )
        self._save()

    def _fitted(self, state: TrainState) -> Fitted:
        """Return the learned density of a state."""
        average, scale = fetch((state.average, state.scale))
        generator = self.generator and self.generator.scaled(scale)
        history = {"epoch": np.arange(1, len(self.rows["scale"]) + 1)}
        history |= {name: np.array(self.rows[name]) for name in sorted(self.rows)}
        return Fitted(average, history, self.events, generator, self.reference)

    def _placed(self, tree: PyTree) -> PyTree:
        mesh = self.trainer.mesh
        return tree if mesh is None else replicate(tree, mesh)

    def _should_stop(self) -> bool:
        epochs = int(self.state.epoch)
        if not epochs or not self.callbacks:
            return False
        rows = {name: np.array(column[:epochs]) for name, column in self.rows.items()}
        return any(each.wants_to_stop(rows) for each in self.callbacks)

    def _save(self) -> None:
        """Begin to write the checkpoint; with several processes the first does."""
        if self.checkpoint is None:
            return
        states = fetch((self.state, self.good))
        if self.trainer.mesh is None or jax.process_index() == 0:
            self._wait()
            rows = {name: list(column) for name, column in self.rows.items()}
            parts = (self.checkpoint, states, self.header, rows, list(self.events))
            self.written = self.writer.submit(save_checkpoint, *parts)

    def _wait(self) -> None:
        """Wait until the checkpoint is on disk; raise `OSError` if it cannot be."""
        written, self.written = self.written, None
        if written is not None:
            written.result()


def means(infos: Mapping[str, Any]) -> dict[str, float]:
    """Return an epoch's numbers from those of its batches, by their names."""
    row = {}
    for name, value in infos.items():
        values = np.asarray(value, float)
        if name.startswith("largest_"):
            row[name] = float(np.max(values))
        elif name.startswith("num_"):
            row[name] = float(np.sum(values))
        elif name != "is_finite":
            known = values[~np.isnan(values)]
            row[name] = float(np.mean(known)) if len(known) else float("nan")
    return row


def _shown(row: dict[str, float]) -> dict[str, str]:
    shown = {}
    if "negative_energy" in row:
        shown["gap"] = f"{row['positive_energy'] - row['negative_energy']:.2f}"
    if "accuracy" in row:
        shown["accuracy"] = f"{row['accuracy']:.3f}"
    return shown or {"loss": f"{row['loss']:.3f}"}
