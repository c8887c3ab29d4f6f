"""How long a fit or a run would take."""

import dataclasses
import time
from typing import Any

import jax
import jax.random as jr

from equistein._durations import in_words
from equistein._limits import check_hours, check_made, LimitError
from equistein.cli._output import say
from equistein.experiments import ExpectedTime
from equistein.models import Dataset, Model
from equistein.runs import UserError

_LONG = 1_000_000  # batches from which on training is timed beforehand
_EPOCH = 200  # bytes of an epoch's history, about
_BATCHES = 5  # of each of two short epochs, the second of which is timed


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What the training of a model takes.

    Attributes:
        compiling: Seconds until the first batch is done, about.
        batch: Seconds a batch.
        num_batches: How many there are.
    """

    compiling: float
    batch: float
    num_batches: int

    @property
    def training(self) -> float:
        """Seconds of all batches."""
        return self.batch * self.num_batches

    @property
    def seconds(self) -> float:
        """Those until it is trained."""
        return self.compiling + self.training


def estimated(model: Model, dataset: Dataset, seed: int) -> Estimate:
    """Train for a few batches, and return what all of them would take."""
    num, ends = min(_BATCHES, model.epoch_batches), [time.perf_counter()]

    def watch(row: dict[str, Any]) -> None:
        ends.append(time.perf_counter())

    train = dataset.in_memory().train()
    short = dataclasses.replace(model, num_epochs=2, epoch_batches=num)
    short.fit(jr.key(seed), train.points, train.labels, callbacks=[watch])
    first, second = ends[1] - ends[0], ends[2] - ends[1]
    return Estimate(
        max(0.0, first - second), second / num, model.num_epochs * model.epoch_batches
    )


def in_sentences(found: ExpectedTime | None) -> str:
    """Return how long a run is likely to take, and where that stems from."""
    if found is None:
        return "How long they take nobody has measured."
    uncounted = ""
    if found.uncounted:
        uncounted = f", but not by {', '.join(found.uncounted)}"
    return (
        f"About {in_words(found.seconds)} on one processor of this machine, less where "
        f"several help: an estimate, from {found.measured:.0f} processor seconds "
        f"measured of preset {found.preset} elsewhere, scaled by the speed of this "
        f"machine, seeds, steps and epochs{uncounted}."
    )


def check_time(model: Model, dataset: Dataset, seed: int) -> None:
    """Time a few batches of a long training, and tell how long it takes.

    Raises:
        UserError: If that is longer than a year, unless a variable allows it.
    """
    if model.num_epochs * model.epoch_batches < _LONG or jax.process_count() > 1:
        return
    remedy, what = "take a smaller --num-epochs", "The history of so many epochs"
    try:
        check_made(what, _EPOCH * model.num_epochs, remedy)
        seconds = estimated(model, dataset, seed).training
        check_hours("Training", seconds, remedy)
    except LimitError as error:
        raise UserError(str(error)) from None
    say(f"Training would take about {in_words(seconds)} ...")
