"""The figures that experiments share, declared by what they show of each entry."""

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from equistein.plotting import bars, boxes, configurations, curves, histograms
from equistein.runs import FLOOR, Outcome

Shown = Sequence[tuple[Any, Outcome]]
"""The entries that have an outcome, with it; their labels and colors are filled in."""

Values = str | Callable[[Outcome], np.ndarray | None]
"""The name of an array of an outcome, or what makes one; None where there is none."""

Limits = tuple[float | None, float | None]
"""The ends of an axis; None is that of the values."""


@dataclasses.dataclass(frozen=True)
class AbstractFigure(abc.ABC):
    """A figure of an experiment.

    Attributes:
        name: The name of its files.
        caption: What it shows, if there is more to say than what all such figures show.
    """

    name: str
    caption: str = dataclasses.field(default="", kw_only=True)

    usual: ClassVar[str] = "the first seed."

    @property
    def about(self) -> str:
        """What it shows: its caption, or what all such figures show."""
        text = self.caption or self.usual.format(**vars(self))
        return text[0].upper() + text[1:]

    @abc.abstractmethod
    def draw(self, config: Any, shown: Shown) -> Any | None:
        """Return the figure, or None where there is nothing to show."""


@dataclasses.dataclass(frozen=True)
class Own(AbstractFigure):
    """A figure of its own kind.

    Attributes:
        function: What draws it, from the configuration and the outcomes.
    """

    function: Callable[[Any, Shown], Any | None]

    def draw(self, config: Any, shown: Shown) -> Any | None:
        return self.function(config, shown)


@dataclasses.dataclass(frozen=True)
class Curves(AbstractFigure):
    """Curves over steps: the mean over the seeds, and their range as a band.

    Records that a seed did not look at, which are NaN, are left out.

    Attributes:
        values: A column of the history, or what makes `(seed, record)` of an outcome.
        label: What the values are.
        x: Where they are, likewise.
        x_label: What the horizontal axis counts.
        level: A number to compare with, a line; or a metric, whose mean it is.
        level_label: What the line is. Without it a metric is that of the floor, and
            with it that of the first entry that has it.
        limits: The range of values shown, or what makes it from the level.
        log_x: Whether the horizontal axis is logarithmic.
        log_y: Whether the vertical axis is.
    """

    values: Values
    label: str
    x: Values = "step"
    x_label: str = "step"
    level: float | str | None = None
    level_label: str = ""
    limits: Limits | Callable[[float], Limits] | None = None
    log_x: bool = False
    log_y: bool = False

    usual: ClassVar[str] = "{label}: mean and range over the seeds."

    def draw(self, config: Any, shown: Shown) -> Any | None:
        series = _rows(shown, self._series)
        if not series:
            return None
        line = _line(shown, self.level, self.level_label)
        limits = self.limits
        if callable(limits):
            limits = limits(line[0]) if line else None
        return curves(
            series, self.label, x_label=self.x_label, log_x=self.log_x,
            log_y=self.log_y, limits=limits, colors=_colors(shown), exact=line,
        )  # fmt: skip

    def _series(self, outcome: Outcome) -> tuple[np.ndarray, np.ndarray] | None:
        """Return where the values are, and what they are."""
        values = _found(outcome.history, outcome, self.values)
        steps = _found(outcome.history, outcome, self.x)
        if values is None or steps is None:
            return None
        seen = np.isfinite(values).all(axis=0)
        return np.atleast_2d(steps).mean(axis=0)[seen], values[:, seen]


@dataclasses.dataclass(frozen=True)
class Histograms(AbstractFigure):
    """Histograms of a number, a panel for each entry that has it.

    Attributes:
        values: The name of an array, or what makes one of an outcome.
        label: What the number is, with its unit.
        limits: The range shown, or what gives it from the configuration.
        bins: The number of bins.
        exact: What gives values and the exact density at them, a line.
        line_of: The entry whose own density, within the limits, is the line instead,
            such as the floor.
    """

    values: Values
    label: str
    limits: tuple[float, float] | Callable[[Any], Any] | None = None
    bins: int = 60
    exact: Callable[[Any, Shown], tuple[Any, Any]] | None = None
    line_of: str | None = None

    usual: ClassVar[str] = "{label}, of all seeds together."

    def draw(self, config: Any, shown: Shown) -> Any | None:
        found = _rows(shown, self._values_of)
        if not found:
            return None
        limits: Any = self.limits
        limits = limits(config) if callable(limits) else limits
        exact = self._density(shown, limits)
        if self.exact is not None:
            values, density = self.exact(config, shown)
            exact = np.asarray(values), np.asarray(density)
        return histograms(
            found, exact, self.label, bins=self.bins, limits=limits,
            colors=_colors(shown),
        )  # fmt: skip

    def _density(
        self, shown: Shown, limits: tuple[float, float] | None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return values and the density of one entry at them."""
        one = [outcome for entry, outcome in shown if entry.name == self.line_of]
        values = self._values_of(one[0]) if one else None
        if values is None:
            return None
        limits, num = limits or (values.min(), values.max()), min(self.bins, 64)
        edges = np.linspace(*limits, num + 1)
        heights, _ = np.histogram(values, edges)
        density = heights / (values.size * (edges[1] - edges[0]))
        return (edges[1:] + edges[:-1]) / 2, density

    def _values_of(self, outcome: Outcome) -> np.ndarray | None:
        values = _found(outcome.arrays, outcome, self.values)
        return None if values is None or not len(values) else values


@dataclasses.dataclass(frozen=True)
class Boxes(AbstractFigure):
    """Boxes of a metric, a point a seed, with the floor as a line.

    Attributes:
        metric: The name of the metric.
        label: What it is, with its unit.
        log: Whether its axis is logarithmic, where all values are positive.
    """

    metric: str
    label: str
    log: bool = False

    usual: ClassVar[str] = "{label}, a point a seed; the line is the floor."

    def draw(self, config: Any, shown: Shown) -> Any | None:
        models = [pair for pair in shown if pair[0].name != FLOOR]
        groups = _rows(models, lambda outcome: outcome.metrics.get(self.metric))
        if not groups:
            return None
        line = _line(shown, self.metric)
        positive = all(np.all(values > 0) for values in groups.values())
        return boxes(
            groups, self.label, colors=_colors(shown), exact=line,
            log=self.log and positive,
        )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Bars(AbstractFigure):
    """A few metrics of every entry side by side, averaged over the seeds.

    Attributes:
        metrics: Their names.
        label: What they are.
    """

    metrics: Sequence[str]
    label: str

    usual: ClassVar[str] = "{label}: the mean over the seeds."

    def draw(self, config: Any, shown: Shown) -> Any | None:
        groups = _rows(shown, self._means_of)
        if not groups:
            return None
        names = [name.replace("_", " ") for name in self.metrics]
        return bars(groups, names, self.label, colors=_colors(shown))

    def _means_of(self, outcome: Outcome) -> np.ndarray | None:
        if not set(self.metrics) <= set(outcome.metrics):
            return None
        return np.array([outcome.metrics[name].mean() for name in self.metrics])


@dataclasses.dataclass(frozen=True)
class Configurations(AbstractFigure):
    """Configurations of particles, spread evenly over the samples of each entry.

    Attributes:
        num: How many of each.
        reach: Half the side of a panel; by default what holds nearly all particles.
        colors: The name of the array that sets their colors; by default they are those
            of the entries.
    """

    num: int
    reach: float | None = None
    colors: str | None = None

    usual: ClassVar[str] = "configurations as they were drawn, not aligned."

    def draw(self, config: Any, shown: Shown) -> Any | None:
        if not shown:
            return None
        num = min(self.num, *(len(outcome.samples) for _, outcome in shown))

        def pick(outcome: Outcome, values: np.ndarray) -> np.ndarray:
            return values[np.linspace(0, len(outcome.samples) - 1, num).astype(int)]

        name = self.colors
        colors = np.array([[entry.color] * num for entry, _ in shown])
        if name is not None:
            colors = np.stack([pick(out, out.arrays[name]) for _, out in shown])
        first = np.abs(shown[0][1].samples)
        reach = self.reach or 1.2 * float(np.quantile(first, 0.999))
        rows = _rows(shown, lambda outcome: pick(outcome, outcome.samples))
        return configurations(rows, reach, colors)


def _rows(shown: Shown, of: Callable[[Outcome], Any | None]) -> dict[str, Any]:
    """Return what each entry has to show, by its label, where it has something."""
    found = {entry.label: of(outcome) for entry, outcome in shown}
    return {label: values for label, values in found.items() if values is not None}


def _line(
    shown: Shown, level: float | str | None, label: str = ""
) -> tuple[float, str] | None:
    """Return the line to compare with, and what it is, or None."""
    if isinstance(level, float):
        return level, label
    for entry, outcome in shown:
        if level in outcome.metrics and (label or entry.name == FLOOR):
            return float(outcome.metrics[level].mean()), label or entry.label
    return None


def _found(arrays: dict, outcome: Outcome, values: Values) -> np.ndarray | None:
    return arrays.get(values) if isinstance(values, str) else values(outcome)


def _colors(shown: Shown) -> dict[str, int]:
    return {entry.label: entry.color for entry, _ in shown}
