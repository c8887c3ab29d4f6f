"""The loop over epochs, with checkpoints and roll-backs."""

import pathlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax.random as jr
import numpy as np

from equistein._progress import progress_bar
from equistein._types import Particles, Scalar
from equistein.energies import AbstractEnergy
from equistein.training._checkpoint import save_checkpoint
from equistein.training._config import FitConfig, num_epochs_of
from equistein.training._fitted import DivergenceError, Fitted
from equistein.training._log import TrainingLog
from equistein.training._state import BatchInfo, Labels, TrainState
from equistein.training._trainer import Trainer


class Monitor:
    """The user's function of the energy, compiled and called now and then.

    Args:
        function: From the averaged energy, numbers by name; or None.
        every: The number of epochs between two looks.
        energy: An energy of the kind it will see.
    """

    def __init__(
        self,
        function: Callable[[AbstractEnergy], Mapping[str, Scalar]] | None,
        every: int,
        energy: AbstractEnergy,
    ):
        if type(every) is not int or every < 1:
            raise ValueError(
                f"`fit` needs `monitor_every`, an integer >= 1, but got {every!r}."
            )
        self.compiled = eqx.filter_jit(function or (lambda energy: {}))
        self.every = every
        self.names = list(eqx.filter_eval_shape(self.compiled, energy))

    def look(self, state: TrainState, last: int) -> dict[str, float]:
        """Return the numbers after an epoch, NaN if it is not to be looked at."""
        epoch = int(state.epoch)
        if not self.names or (epoch % self.every and epoch != last):
            return dict.fromkeys(self.names, float("nan"))
        return {k: float(v) for k, v in self.compiled(state.average).items()}


class Loop:
    """A fit under way.

    Args:
        trainer: What makes an epoch.
        data: The data.
        labels: Its labels, or None.
        state: The state to begin with.
        log: The history and events so far.
        watch: The user's monitor.
        checkpoint: The file to write after each epoch, or None.
        header: What tells that it belongs to this fit.
    """

    def __init__(
        self,
        trainer: Trainer,
        data: Particles,
        labels: Labels,
        state: TrainState,
        log: TrainingLog,
        watch: Monitor,
        checkpoint: pathlib.Path | None,
        header: dict[str, Any],
    ):
        self.trainer, self.config = trainer, trainer.config
        self.num_epochs = num_epochs_of(trainer.config)
        self.data, self.labels = data, labels
        self.state = self.good = state
        self.log, self.watch = log, watch
        self.checkpoint, self.header = checkpoint, header

    def saved(self) -> tuple:
        """Return what a checkpoint holds."""
        return self.state, self.good, self.log.arrays

    def restore(self, saved: tuple) -> None:
        """Go on from what a checkpoint held."""
        self.state, self.good, arrays = saved
        self.log = TrainingLog(arrays)

    def run(
        self, progress: bool, on_epoch: Callable[[dict[str, float]], None] | None
    ) -> Fitted:
        """Train to the last epoch.

        Raises:
            DivergenceError: If the fit diverged once too often.
        """
        last, done = self.num_epochs, int(self.state.epoch)
        bar = progress_bar(initial=done, total=last, disable=not progress, unit="epoch")
        with bar:
            while int(self.state.epoch) < last:
                if self.log.num_events > self.config.max_rollbacks:
                    verdict = self.log.verdict(self.config)
                    raise DivergenceError(verdict, self.fitted(self.good))
                row = self.epoch()
                bar.n = int(self.state.epoch)
                if row is None:
                    text = f"The fit diverged {self.log.events()[-1]['text']}"
                    if progress:
                        bar.write(text)
                    else:
                        warnings.warn(text, RuntimeWarning, stacklevel=3)
                    continue
                if on_epoch is not None:
                    on_epoch({"epoch": int(self.state.epoch), **row})
                bar.set_postfix(_shown(row), refresh=False)
                bar.update(0)
        return self.fitted(self.state)

    def epoch(self) -> dict[str, float] | None:
        """Train an epoch and keep it; or go back, and return None."""
        number = int(self.state.epoch)
        new, infos = self.trainer.epoch(self.state, self.data, self.labels)
        row = _means(infos)
        why = _trouble(infos, self.config)
        if why is not None:
            self.log.add_event(number + 1, why, row["largest_energy"], self.good)
            self.state = self.good = _rolled_back(self.good, self.log.num_events)
            self._save()
            return None
        if number % max(1, self.num_epochs // 20) == 0:
            # What an epoch's last update did shows in the next: the state before is
            # the last one known to be good.
            self.good = self.state
        self.state = new
        row |= self.watch.look(new, self.num_epochs)
        row["scale"] = float(new.scale)
        self.log.add_row(number, row)
        self._save()
        return row

    def fitted(self, state: TrainState) -> Fitted:
        """Return what a state of the fit has learned."""
        trainer = self.trainer
        return Fitted(
            state.average,
            state.particles,
            self.log.history(),
            self.log.events(),
            trainer.start,
            trainer.kernel,
            trainer.config,
            trainer.lengths.scaled(trainer.factor(state)),
        )

    def _save(self) -> None:
        if self.checkpoint is not None:
            save_checkpoint(self.checkpoint, self.saved(), self.header)


def columns(
    trainer: Trainer, state: TrainState, data: Particles, labels: Labels,
    watch: Monitor,
) -> list[str]:  # fmt: skip
    """Return the names of the history's columns."""
    _, infos = eqx.filter_eval_shape(trainer.epoch, state, data, labels)
    used = [name for name, value in vars(infos).items() if value is not None]
    used.append("scale")
    both = sorted(set(used) & set(watch.names))
    if both:
        raise ValueError(
            f"`monitor` gives {', '.join(both)}, which the history has already: choose "
            "other names."
        )
    return [*used, *watch.names]


def _means(infos: BatchInfo) -> dict[str, float]:
    """Return the means over an epoch's batches.

    What concerns labels is the mean over all of them, and the largest energy the
    largest of all.
    """
    used = {name: value for name, value in vars(infos).items() if value is not None}
    row = {name: float(np.mean(value)) for name, value in used.items()}
    row["largest_energy"] = float(np.max(infos.largest_energy))
    if infos.num_labels is not None:
        counts = np.asarray(infos.num_labels, float)
        row["num_labels"] = float(np.sum(counts))
        for name in ("supervised_loss", "accuracy"):
            if name in used:
                total = float(np.sum(counts * np.asarray(used[name])))
                row[name] = total / max(1.0, row["num_labels"])
    return row


def _trouble(infos: BatchInfo, config: FitConfig) -> str | None:
    """Return why an epoch is not to be kept, or None."""
    if not bool(np.all(infos.is_finite)):
        return "not finite"
    if float(np.max(infos.largest_energy)) > config.energy_limit:
        return "energy limit"
    return None


def _rolled_back(good: TrainState, attempt: int) -> TrainState:
    """Return the last good state with half the steps and a new key."""
    key = jr.fold_in(jr.wrap_key_data(good.key), attempt)
    return eqx.tree_at(
        lambda s: (s.scale, s.key), good, (good.scale / 2, jr.key_data(key))
    )


def _shown(row: dict[str, float]) -> dict[str, str]:
    shown = {}
    if "negative_energy" in row:
        shown["gap"] = f"{row['positive_energy'] - row['negative_energy']:.2f}"
    if "accuracy" in row:
        shown["accuracy"] = f"{row['accuracy']:.3f}"
    return shown or {"loss": f"{row['loss']:.3f}"}
