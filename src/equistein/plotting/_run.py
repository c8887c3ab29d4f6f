"""What a run gave, and how it went."""

import pathlib
from collections.abc import Mapping

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equistein.plotting._style import color, frameless, grid, line_of, plain

_CURVES = ("log_density", "update_norm", "acceptance")
_NUM_BINS = 40


def run_figure(particles: np.ndarray, history: Mapping[str, np.ndarray]) -> Figure:
    """Draw the particles of runs, and their history.

    Points of one coordinate are a histogram, of more their first two coordinates.

    Args:
        particles: `(run, particle, *shape)`.
        history: Columns `(run, record)`, among them `step`.
    """
    shown = [name for name in _CURVES if name in history and history[name].ndim == 2]
    figure, axes = grid(1, 1 + len(shown), width=3.2, height=2.8)
    _places(axes[0, 0], particles)
    for panel, name in zip(axes[0, 1:], shown, strict=True):
        for index, (step, values) in enumerate(
            zip(history["step"], history[name], strict=True)
        ):
            line = line_of(name, index, None)
            panel.plot(step, values, color=color(index), linestyle=line, linewidth=1)
        panel.set(xlabel="step", title=name.replace("_", " "))
        plain(panel)
    return figure


def run_animation(
    path: pathlib.Path | str,
    steps: np.ndarray,
    particles: np.ndarray,
    frames_a_second: int = 12,
) -> None:
    """Write an animation of particles, their first two coordinates, as a .gif file.

    Args:
        path: The file.
        steps: The step of each frame.
        particles: `(frame, particle, *shape)`, with two coordinates or more.
        frames_a_second: How fast it goes.
    """
    points = particles.reshape(*particles.shape[:2], -1)[..., :2]
    figure, axes = grid(1, 1, width=3.6, height=3.8)
    panel = axes[0, 0]
    frameless(panel)
    low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
    margin = 0.05 * np.max(high - low) + 1e-6
    panel.set(
        xlim=(low[0] - margin, high[0] + margin),
        ylim=(low[1] - margin, high[1] + margin),
    )
    dots = panel.scatter(*points[0].T, s=14, color=color(0), alpha=0.7, linewidths=0)

    def draw(frame):
        dots.set_offsets(points[frame])
        panel.set_title(f"step {int(steps[frame])}", fontsize=10)
        return (dots,)

    animation = FuncAnimation(figure, draw, frames=len(points))
    animation.save(path, writer=PillowWriter(fps=frames_a_second), dpi=100)


def _places(panel: Axes, particles: np.ndarray) -> None:
    for index, run in enumerate(particles):
        points = run.reshape(len(run), -1)
        if points.shape[1] == 1:
            panel.hist(points[:, 0], _NUM_BINS, color=color(index), alpha=0.5)
        else:
            x, y = points[:, 0], points[:, 1]
            panel.scatter(x, y, s=10, color=color(index), alpha=0.6, linewidths=0)
            panel.set_aspect("equal", adjustable="datalim")
    num = particles[0, 0].size
    shape = particles.shape[2:]
    text = "" if num <= 2 else f":\nthe first two of {num} coordinates"
    panel.set_title(
        f"{particles.shape[1]} particles of shape {shape}{text}", fontsize=9
    )
    plain(panel)
