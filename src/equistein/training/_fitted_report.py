"""The report of a learned density: one HTML file."""

import dataclasses
import pathlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from equistein._numbers import check_integers
from equistein._types import Key, Particles
from equistein.groups import AbstractGroup
from equistein.metrics import energy_distance
from equistein.plotting import (
    configurations,
    curves,
    figure_file,
    planar_samples,
)
from equistein.runs import Circumstances, PageFigure, Picture, Words, write_page
from equistein.training._fitted import Fitted

Drawn = Float[Array, "sample *shape"]
_LEAST = 4  # points of data, two in each half
_MOST_CURVES = 4
_SHOWN = 10  # clouds
_NAME = "model"


def write_fit_report(
    path: pathlib.Path,
    fitted: Fitted,
    data: ArrayLike | None,
    key: Key,
    num_samples: int,
) -> None:
    """Write what was learned, and how near samples come to the data, if they are given.

    Raises:
        ValueError: If the data are no points like those learned from, or nothing draws
            samples to compare with them.
        OSError: If the file cannot be written.
    """
    check_integers("`report`", num_samples=num_samples)
    points = None if data is None else _checked(fitted, data)
    numbers, floor, samples = _numbers(fitted), {}, None
    sample_key, compare_key = jr.split(key)
    if points is not None:
        samples = fitted.sample(sample_key, num_samples)
        near, floor = _compared(compare_key, fitted.group, points, samples)
        numbers |= near
    elif fitted.generator is not None and _is_planar(fitted):
        samples = fitted.sample(sample_key, num_samples)
    metrics: dict[str, Any] = {_NAME: numbers, "floor": floor}
    if samples is not None:
        metrics["num_samples"] = {_NAME: len(samples)}
    write_page(
        path, _words(fitted), metrics, _figures(fitted, points, samples),
        _settings(fitted),
        Circumstances(doubts=[(_NAME, str(e.get("text"))) for e in fitted.events]),
    )  # fmt: skip


def _checked(fitted: Fitted, data: ArrayLike) -> Particles:
    points, shape = jnp.asarray(data, float), fitted.reference.center.shape
    if points.shape[1:] != shape or len(points) < _LEAST:
        raise ValueError(
            f"`data` must be at least {_LEAST} points of shape {shape}, as those "
            f"learned from, stacked on axis 0, but got shape {points.shape}."
        )
    if not bool(jnp.all(jnp.isfinite(points))):
        raise ValueError(
            "`data` must be finite, but got NaN or infinity: leave those points out."
        )
    return points


def _numbers(fitted: Fitted) -> dict[str, float]:
    loss = fitted.history.get("loss", np.zeros(0))
    return {"loss": float(loss[-1])} if len(loss) else {}


def _compared(
    key: Array, group: AbstractGroup, data: Particles, samples: Drawn
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the distance of samples from half of the data, and of the other half.

    All are moved by random elements of the group, which a density with the symmetry
    does not tell apart.
    """
    order_key, data_key, sample_key = jr.split(key, 3)
    data = _moved(data_key, group, jr.permutation(order_key, data))
    half = len(data) // 2
    num = min(half, len(samples))
    samples = _moved(sample_key, group, samples[:num])
    name = "energy_distance"
    return (
        {name: float(energy_distance(samples, data[half:]))},
        {name: float(energy_distance(data[:num], data[half:]))},
    )


@eqx.filter_jit
def _moved(key: Array, group: AbstractGroup, points: Particles) -> Particles:
    points = jax.vmap(group.project)(points)
    return jax.vmap(group.act)(group.sample(key, len(points)), points)


def _is_planar(fitted: Fitted) -> bool:
    return fitted.reference.center.shape == (2,)


def _figures(
    fitted: Fitted, data: Particles | None, samples: Drawn | None
) -> list[PageFigure]:
    drawn = []
    if "epoch" in fitted.history:
        shown = [n for n in fitted.history if "loss" in n or "accuracy" in n]
        for name in shown[:_MOST_CURVES]:
            series = {_NAME: (fitted.history["epoch"], fitted.history[name][None])}
            label = name.replace("_", " ")
            drawn.append(
                (name, curves(series, label, x_label="epoch"), f"The {label}.")
            )
    sets = {"data": data, "samples": samples}
    rows = {name: np.asarray(x) for name, x in sets.items() if x is not None}
    if rows:
        reach = 1.25 * float(np.quantile(np.abs(next(iter(rows.values()))), 0.999))
        if _is_planar(fitted):
            views = {name: (points,) for name, points in rows.items()}
            about = " beside ".join(rows)
            figure = planar_samples(views, ("",), None, reach)
            drawn.append(("samples", figure, f"{about[0].upper()}{about[1:]}."))
        elif len(fitted.reference.center.shape) == 2 and len(rows) == 2:
            num = min(_SHOWN, *map(len, rows.values()))
            some = {name: points[:num] for name, points in rows.items()}
            figure = configurations(some, reach)
            drawn.append(("configurations", figure, "Configurations as drawn."))
    return [
        PageFigure(name, [Picture(figure_file(figure, "png"))], caption=caption)
        for name, figure, caption in drawn
    ]


def _words(fitted: Fitted) -> Words:
    epochs = len(next(iter(fitted.history.values()), ()))
    return Words(
        title="A learned density",
        lead=f"{type(fitted.energy).__name__} with the symmetry {fitted.group!r}, of "
        f"points of shape {fitted.reference.center.shape}, learned in {epochs} epochs.",
        floor="data",
        floor_note="Samples are compared with one half of the data, and the floor is "
        "what as many points of the other half score; all are moved by random elements "
        "of the group.",
        headlines=("loss", "energy_distance"),
    )


def _settings(fitted: Fitted) -> list[tuple[str, str]]:
    """Return what the energy, the group and the generator are made of."""
    leaves = jax.tree.leaves(eqx.filter(fitted.energy, eqx.is_inexact_array))
    return [
        *_lines("energy", fitted.energy, 1),
        ("energy.weights", str(sum(leaf.size for leaf in leaves))),
        ("group", repr(fitted.group)),
        *_lines("generator", fitted.generator, 2),
        *((f"about.{name}", _short(value)) for name, value in fitted.about.items()),
    ]


def _lines(name: str, part: Any, depth: int) -> list[tuple[str, str]]:
    """Return a part and its fields, so many levels deep."""
    lines = [(name, _short(part))]
    if depth and dataclasses.is_dataclass(part):
        for field, value in vars(part).items():
            lines += _lines(f"{name}.{field}", value, depth - 1)
    return lines


def _short(part: Any) -> str:
    """Return a number or a word as it is, and of anything else what kind it is."""
    if part is None or isinstance(part, bool | int | float | str):
        return "–" if part is None else str(part)
    if eqx.is_array_like(part) or isinstance(part, np.ndarray):
        array = np.asarray(part)
        if array.size == 1:
            return f"{array.item():g}"
        return f"{array.dtype} of shape {array.shape}"
    if isinstance(part, list | tuple):
        return ", ".join(map(_short, part))
    return getattr(part, "__qualname__", type(part).__name__)
