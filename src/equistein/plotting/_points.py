"""Points in the plane and in space, configurations, runs, and images in rows."""

import io
from collections.abc import Mapping, Sequence
from typing import Literal

import matplotlib
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from equistein.plotting._style import (
    color,
    EXACT,
    frameless,
    grid,
    label_rows,
    line_of,
    plain,
)

_SIGMAS = np.array([3.0, 2.0, 1.0])  # of a Gaussian, at which contours are
_CURVES = ("log_density", "update_norm", "acceptance")
_NUM_BINS = 40

Panel = tuple[np.ndarray, np.ndarray | None, str]


def planar_samples(
    views: Mapping[str, Sequence[np.ndarray]],
    titles: Sequence[str],
    density: np.ndarray | None,
    reach: float,
) -> Figure:
    """Draw a column a sampler and a row a view of its samples.

    Args:
        views: For each sampler its views: arrays `(n, 2)`, or `(copy, n, 2)` for
            copies in colors of their own.
        titles: What each view is.
        density: The density on a square grid over [-reach, reach)^2, drawn as
            contours at 1, 2 and 3 standard deviations of a Gaussian, or None.
        reach: Half the side of a panel.
    """
    figure, axes = _planes(views, titles, side=2.1, reach=reach)
    for column, samples in zip(axes, views.values(), strict=True):
        for panel, points in zip(column, samples, strict=True):
            if density is not None:
                ticks = np.linspace(-reach, reach, len(density))
                levels = density.max() * np.exp(-0.5 * _SIGMAS**2)
                look = {"colors": EXACT, "linewidths": 0.6, "alpha": 0.5}
                panel.contour(ticks, ticks, density, levels, **look)
            copies = points if points.ndim == 3 else points[None]
            for index, copy in enumerate(copies):
                panel.scatter(*copy.T, s=8, color=color(index), linewidths=0, zorder=3)
    return figure


def planar_energies(
    columns: Mapping[str, Sequence[Panel]],
    titles: Sequence[str],
    reach: float,
    shown: float,
) -> Figure:
    """Draw a column a model and a row a density or decision, with samples as stars.

    Args:
        columns: For each model its panels: values on a square grid, samples `(n, 2)` or
            None, and `density` or `boundary`.
        titles: What each row is.
        reach: Half the side of the grid.
        shown: Half the side of a panel.
    """
    figure, axes = _planes(columns, titles, side=2.3, reach=shown)
    for column, panels in zip(axes, columns.values(), strict=True):
        for panel, (values, samples, kind) in zip(column, panels, strict=True):
            look = {"cmap": "coolwarm", "alpha": 0.6}
            if kind != "boundary":  # the root shows where the density is low as well
                values, look = np.sqrt(values), {"cmap": "Blues"}
            extent = (-reach, reach, -reach, reach)
            look |= {"origin": "lower", "interpolation": "bilinear"}
            panel.imshow(values, extent=extent, **look)
            if samples is not None:
                look = {"s": 14, "marker": "*", "color": color(1), "linewidths": 0}
                panel.scatter(*samples.T, zorder=3, **look)
            frameless(panel, shown)
    return figure


def _planes(
    columns: Mapping[str, Sequence], rows: Sequence[str], *, side: float, reach: float
) -> tuple[Figure, np.ndarray]:
    """Return panels of the plane up to `reach`, shape `(columns, rows)`."""
    figure, axes = grid(len(rows), len(columns), width=side, height=side)
    for panel in axes.ravel():
        frameless(panel, reach)
    for panel, name in zip(axes[0], columns, strict=True):
        panel.set_title(name, fontsize=10)
    label_rows(axes, rows)
    return figure, axes.T


def spatial_samples(samples: Mapping[str, np.ndarray], reach: float) -> Figure:
    """Draw points `(n, 3)`, a panel a sampler, colored by radius, up to a reach."""
    figure = Figure(figsize=(2.8 * len(samples), 3.0), layout="constrained")
    for index, (name, points) in enumerate(samples.items()):
        axes = figure.add_subplot(1, len(samples), index + 1, projection="3d")
        radii = np.linalg.norm(points, axis=1)
        axes.scatter(*points.T, c=radii, s=12, cmap="viridis")
        axes.set_title(name, fontsize=10)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(-reach, reach))  # type: ignore[call-arg]
        axes.set_box_aspect((1, 1, 1))  # type: ignore[arg-type]
        axes.tick_params(labelsize=6)
    return figure


def configurations(
    samples: Mapping[str, np.ndarray], reach: float, colors: np.ndarray | None = None
) -> Figure:
    """Draw small configurations, a row a model, with lines between all particles.

    Args:
        samples: For each model an array `(n, particle, dim)`; the first two
            coordinates are drawn. All models show as many.
        reach: Half the side of a panel.
        colors: For each row and configuration the index of a color, `(row, n)`.
    """
    columns = min(len(points) for points in samples.values())
    figure, axes = grid(len(samples), columns, width=1.1, height=1.1)
    for i, (row, points) in enumerate(zip(axes, samples.values(), strict=True)):
        points = points - points.mean(axis=1, keepdims=True)
        for j, (panel, point) in enumerate(zip(row, points[:columns], strict=True)):
            frameless(panel, reach)
            shade = color(i if colors is None else int(colors[i][j]))
            first, second = np.triu_indices(len(point), k=1)
            lines = np.stack([point[first, :2], point[second, :2]], axis=1)
            look = {"colors": shade, "linewidths": 0.5, "alpha": 0.35}
            panel.add_collection(LineCollection(list(lines), **look))
            panel.scatter(*point[:, :2].T, s=22, color=shade, zorder=3)
    label_rows(axes, list(samples), fontsize=7.0)
    return figure


def run_figure(particles: np.ndarray, history: Mapping[str, np.ndarray]) -> Figure:
    """Draw the particles of runs, and their history.

    Particles are `(run, particle, *shape)`: of one coordinate a histogram, of more the
    first two. Columns of the history are `(run, record)`, one of them `step`.
    """
    shown = [name for name in _CURVES if name in history and history[name].ndim == 2]
    figure, axes = grid(1, 1 + len(shown), width=3.2, height=2.8)
    num, *shape = particles.shape[1:]
    title = f"{num} particles of shape {tuple(shape)}"
    if particles[0, 0].size > 2:
        title += f":\nthe first two of {particles[0, 0].size} coordinates"
    for index, points in enumerate(particles.reshape(len(particles), num, -1)):
        if points.shape[1] == 1:
            axes[0, 0].hist(points[:, 0], _NUM_BINS, color=color(index), alpha=0.5)
            continue
        look = {"color": color(index), "alpha": 0.6, "linewidths": 0}
        axes[0, 0].scatter(*points.T[:2], s=10, **look)
        axes[0, 0].set_aspect("equal", adjustable="datalim")
    axes[0, 0].set_title(title, fontsize=9)
    for panel, name in zip(axes[0, 1:], shown, strict=True):
        rows = zip(history["step"], history[name], strict=True)
        for index, (step, values) in enumerate(rows):
            line, _ = line_of(name, index, None)
            panel.plot(step, values, color=color(index), linestyle=line, linewidth=1)
        panel.set(xlabel="step", title=name.replace("_", " "))
    for panel in axes[0]:
        plain(panel)
    return figure


def image_rows(
    rows: Mapping[str, np.ndarray], *, limits: tuple[float, float] = (0.0, 1.0)
) -> Figure:
    """Draw a row of images `(n, side, side, channel)` for each name, dark on white.

    The limits are drawn white and black; values beyond are cut off.
    """
    columns = max(map(len, rows.values()))
    figure, axes = grid(len(rows), columns, width=0.62, height=0.62)
    for panel in axes.ravel():
        frameless(panel)
        panel.spines[:].set_visible(False)
    low, high = limits
    for panels, images in zip(axes, rows.values(), strict=True):
        for panel, image in zip(panels, images, strict=False):
            shown = np.clip((image - low) / (high - low), 0, 1)
            panel.imshow(shown, cmap="gray_r", vmin=0, vmax=1)
    label_rows(axes, list(rows), fontsize=7.0)
    for row in axes:
        row[0].yaxis.label.set(rotation=0, ha="right", va="center")
    return figure


def figure_file(figure: Figure, suffix: Literal["png", "svg"]) -> bytes:
    """Return the bytes of a figure's file: the same ones for the same figure."""
    drawn = io.BytesIO()
    undated = {"Date": None} if suffix == "svg" else None
    with matplotlib.rc_context({"svg.hashsalt": "equistein"}):
        figure.savefig(drawn, format=suffix, dpi=150, metadata=undated)
    return drawn.getvalue()
