"""The loop over epochs, with callbacks, checkpoints and roll-backs."""

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

from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers
from equistein._progress import progress_bar
from equistein._sharding import answer_of_first_process, fetch, replicate
from equistein._types import Scalar
from equistein.energies import AbstractEnergy
from equistein.samplers import Normal
from equistein.training._checkpoint import History, load_checkpoint, save_checkpoint
from equistein.training._fitted import DivergenceError, Fitted
from equistein.training._generators import AbstractGenerator
from equistein.training._trainer import Optimization, Trainer, TrainState


@check_arguments
class Monitor:
    """A function of the averaged energy whose numbers join the history of a fit.

    Args:
        function: From an energy, numbers by name; it is compiled. Give arrays that it
            needs with `eqx.Partial(function, arrays)`, or they become constants.
        every: Look at every n-th epoch and at number `num_epochs`; others have NaN.
    """

    def __init__(self, function: Callable[[Any], Mapping[str, Scalar]], every: int = 1):
        check_integers("Monitor", every=every)
        self.function, self.every = eqx.filter_jit(function), every

    def columns(self, energy: AbstractEnergy) -> list[str]:
        """Return the names of its numbers, for an energy of this kind."""
        return list(eqx.filter_eval_shape(self.function, energy))

    def numbers(self, energy: AbstractEnergy) -> dict[str, float]:
        """Return the numbers of an energy by name."""
        return {name: float(value) for name, value in self.function(energy).items()}


Callback = Monitor | Callable[[dict[str, float]], object]


@dataclasses.dataclass
class Loop:
    """A fit in progress, made of the arguments of `fit`.

    Attributes:
        epoch_data: A function of the number of epochs run so far, discarded ones
            included, that returns the points and labels of the next.
        history: For each column a value per epoch that was not discarded.
        fingerprint: What identifies this fit in its checkpoint.
        state: After the last epoch that was kept; a roll-back returns to `last_good`.
    """

    trainer: Trainer
    epoch_data: Callable[[int], tuple]
    state: TrainState
    history: History
    optimization: Optimization
    generator: AbstractGenerator | None
    reference: Normal
    callbacks: tuple[Callback, ...]
    num_epochs: int
    checkpoint: pathlib.Path | None
    fingerprint: dict[str, Any]

    def __post_init__(self):
        self.trainer, self.state = self._place((self.trainer, self.state))
        self.last_good, self.events, self.ended = self.state, [], False
        self.writer, self.pending = concurrent.futures.ThreadPoolExecutor(1), None

    def restore(self) -> None:
        """Continue from the checkpoint if it exists, or raise `CheckpointError`."""
        path, like = self.checkpoint, (self.state, self.last_good)
        if path is None:
            return
        path.parent.mkdir(exist_ok=True)
        exists = path.exists()
        if self.trainer.mesh is not None:
            exists = answer_of_first_process(exists)
        if exists:
            found = load_checkpoint(path, like, self.fingerprint)
            states, self.history, self.events = found
            self.state, self.last_good = self._place(states)

    def run(self, progress: bool) -> Fitted:
        """Train to the last epoch, or until a callback ends the fit."""
        num, done = self.num_epochs, int(self.state.epoch)
        bar = progress_bar(initial=done, total=num, disable=not progress, unit="epoch")
        try:
            with bar:
                while int(self.state.epoch) < num and not self.ended:
                    row = self._train_epoch()
                    if row is not None:
                        shown = {k: row[k] for k in ("loss", "accuracy") if k in row}
                        bar.set_postfix(shown, refresh=False)
                    else:
                        text = f"The fit diverged {self.events[-1]['text']}"
                        if progress:
                            bar.write(text)
                        else:
                            warnings.warn(text, RuntimeWarning, stacklevel=3)
                    bar.update(int(self.state.epoch) - bar.n)
        finally:
            self._wait()
        return self._make_fitted(self.state)

    def _train_epoch(self) -> dict[str, float] | None:
        """Train an epoch and keep it; or go back, and return None."""
        # Here, so that a fit that is resumed from its checkpoint raises it too.
        if len(self.events) > self.optimization.max_rollbacks:
            last = self.events[-1]
            verdict = (
                f"The fit diverged {len(self.events)} times, at last in epoch "
                f"{last['epoch']}, where {last['reason']}; `max_rollbacks` allows "
                f"{self.optimization.max_rollbacks}. Take a smaller learning rate or "
                "gradient clip; with contrastive divergence also a smaller step size "
                "of the sampler or a larger `regularization`."
            )
            raise DivergenceError(verdict, self._make_fitted(self.last_good))
        number = int(self.state.epoch)
        # The failed epoch counts too; no event is a "stop" here, as that has raised.
        discarded = sum(each["epoch"] - each["back_to_epoch"] for each in self.events)
        points, labels = self.epoch_data(number + discarded)
        new, infos = self.trainer.epoch(self.state, points, labels)
        # Wait for the epoch, and bring the numbers of all its batches to the host.
        infos, scale = jax.device_get(fetch((infos, new.step_scale)))
        row = epoch_numbers(infos)
        reason, largest = None, row.get("largest_energy", 0.0)
        if not np.all(infos["is_finite"]):
            reason = "the loss, a weight or the objective's state was not finite"
        elif largest > self.optimization.energy_limit:
            reason = f"an energy reached {largest:.3g}, beyond `energy_limit`"
        if reason is not None:
            self._go_back(number + 1, reason, row)
            return None
        # The last update gave finite weights, but no loss was computed with them: so
        # the state before this epoch is kept, every twentieth of the fit.
        if number % max(1, self.num_epochs // 20) == 0:
            self.last_good = self.state
        self.state = new
        row["step_scale"] = float(scale)
        if self.callbacks:
            average, is_last = fetch(new.average), number + 1 == self.num_epochs
            for each in self.callbacks:
                if not isinstance(each, Monitor):
                    answer = each({"epoch": number + 1, **row})
                    self.ended |= isinstance(answer, bool | np.bool_) and bool(answer)
                elif is_last or (number + 1) % each.every == 0:
                    row |= each.numbers(average)
        for name, value in (dict.fromkeys(self.history, np.nan) | row).items():
            self.history[name].append(float(value))
        self._save()
        return row

    def _go_back(self, epoch: int, reason: str, row: Mapping[str, float]) -> None:
        """Go back to the last good state: to try again, or to end if no try is left."""
        good = self.last_good
        gives_up = len(self.events) == self.optimization.max_rollbacks
        # A fit that gives up samples with the step sizes of its last good state.
        step_scale = good.step_scale if gives_up else good.step_scale / 2
        back, scale = int(good.epoch), float(step_scale)
        largest, consequence = row.get("largest_energy", np.nan), "It gives up."
        event: dict[str, Any] = {
            "event": "stop" if gives_up else "roll-back",
            "epoch": epoch,
            "reason": reason,
            "largest_energy": largest if np.isfinite(largest) else None,
            "back_to_epoch": back,
        }
        if not gives_up:
            event["step_scale"] = scale
            consequence = (
                f"It goes back to epoch {back}, with step sizes {scale:g} times those "
                "that were set."
            )
            for column in self.history.values():
                del column[back:]
        event["text"] = f"in epoch {epoch}: {reason}. {consequence}"
        self.events.append(event)
        key = jr.fold_in(jr.wrap_key_data(good.key), len(self.events))
        self.state = self.last_good = eqx.tree_at(
            lambda s: (s.step_scale, s.key), good, (step_scale, jr.key_data(key))
        )
        self._save()

    def _make_fitted(self, state: TrainState) -> Fitted:
        """Return the learned density of a state."""
        average, scale = fetch((state.average, state.step_scale))
        generator = self.generator
        if generator is not None and float(scale) != 1:  # training was stable with it
            generator = generator.scale_steps(scale)
        history = {"epoch": np.arange(1, len(self.history["step_scale"]) + 1)}
        history |= {name: np.array(self.history[name]) for name in sorted(self.history)}
        return Fitted(average, history, self.events, generator, self.reference)

    def _place(self, tree: PyTree) -> PyTree:
        mesh = self.trainer.mesh
        return tree if mesh is None else replicate(tree, mesh)

    def _save(self) -> None:
        """Begin to write the checkpoint, in the first process if there are several."""
        if self.checkpoint is None:
            return
        states = fetch((self.state, self.last_good))
        if self.trainer.mesh is None or jax.process_index() == 0:
            self._wait()
            history = {name: list(column) for name, column in self.history.items()}
            job = self.checkpoint, states, self.fingerprint, history, list(self.events)
            self.pending = self.writer.submit(save_checkpoint, *job)

    def _wait(self) -> None:
        """Wait until the checkpoint is on disk; raise `OSError` if it cannot be."""
        pending, self.pending = self.pending, None
        if pending is not None:
            pending.result()


def epoch_numbers(infos: Mapping[str, Any]) -> dict[str, float]:
    """Return the means of the batches' numbers, or by name their maxima or sums."""
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
