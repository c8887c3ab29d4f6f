"""The picture of a posterior whose labels may be swapped."""

from typing import Any

import numpy as np

from equistein._gate import gate
from equistein.posteriors._invariants import charts
from equistein.posteriors._posterior_samples import check_samples, PosteriorSamples
from equistein.posteriors._relabel import relabel

_MOST = 3  # numbers of a label that a parameter is shown by


@gate
def plot(samples: PosteriorSamples) -> Any:
    """Return a figure of marginals: relabelled, and beside them label-invariant.

    A row for each number that every label has, the first three of a parameter, with a
    color for each label; beside it the order statistics of the same number. Below,
    the parameters without labels.

    Args:
        samples: What `posterior.run` returned.

    Returns:
        A figure of matplotlib, to be saved by `savefig`.
    """
    check_samples("plot", samples)
    from equistein.plotting import marginals  # loads matplotlib

    parameters, raw = samples.posterior.parameters, samples.named
    readable = relabel(samples).named
    left, right, rest = {}, {}, {}
    for i, name in enumerate(parameters.names):
        axes, period = parameters.axes[i], parameters.constraints[i].period
        shown = charts(name, readable[name], period)
        for (title, ours), (_, theirs) in zip(
            shown, charts(name, raw[name], period), strict=True
        ):
            if not axes:
                rest |= _numbered(title, _by_number(theirs))
                continue
            theirs = abs(theirs) if parameters.signed else theirs
            order = np.sort(_by_label(theirs, axes), axis=-1)
            left |= _numbered(title, _by_label(ours, axes))
            right |= _numbered(f"{title}, sorted", order)
    return marginals(left, right | rest)


def _by_label(array: Any, axes: tuple[int, ...]) -> np.ndarray:
    """Return the numbers of each label, (number, draw, label)."""
    array, start = np.asarray(array), axes[0] + 2
    if len(axes) > 1:
        array = np.diagonal(array, axis1=start, axis2=axes[1] + 2)
        start = array.ndim - 1
    array = np.moveaxis(array, start, -1)
    array = array.reshape(array.shape[0] * array.shape[1], -1, array.shape[-1])
    return np.moveaxis(array, 1, 0)


def _by_number(array: Any) -> np.ndarray:
    """Return all numbers as if of one label, (1, draw, number)."""
    array = np.asarray(array)
    return array.reshape(1, array.shape[0] * array.shape[1], -1)


def _numbered(title: str, numbers: np.ndarray) -> dict[str, np.ndarray]:
    """Return the first few numbers by the title, counted where there are several."""
    if len(numbers) == 1:
        return {title: numbers[0]}
    return {f"{title} {j + 1}": x for j, x in enumerate(numbers[:_MOST])}
