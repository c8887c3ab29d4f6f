"""How particles move: a few frames of one run."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from equistein._types import Particles
from equistein.experiments.engine._figures import Shown
from equistein.plotting import particle_slider

MOST_PARTICLES = 100
"""Those of a sampler that are looked at on their way."""

CAPTION = (
    "Particles of the first seed on their way: move the slider, or press Play. Frames "
    f"are close together at the start; at most {MOST_PARTICLES} particles a sampler."
)
"""What the figure shows, as its caption."""

_MOST = 40  # frames
_DIGITS = 3


def frames(
    start: Particles, history: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the frames of a run with recorded particles, from the start on.

    Args:
        start: Where the particles begin.
        history: That of the run. Its records are taken ever less often, as particles
            move less and less.
    """
    recorded = np.asarray(history["particles"])
    begin = np.asarray(start)[None, : recorded.shape[1]]
    steps = np.append(0, history["step"])
    shares = np.linspace(0, 1, min(_MOST, len(steps))) ** 2
    chosen = np.unique(np.rint(shares * (len(steps) - 1)).astype(int))
    places = np.concatenate([begin, recorded])[chosen]
    return {"frames": places.round(_DIGITS), "frame_steps": steps[chosen]}


def movement_figure(
    shown: Shown, reach: float, density: Float[np.ndarray, "num num"] | None = None
) -> Any | None:
    """Return the frames of all samplers side by side; None where there are none."""
    found = {e.label: o.arrays for e, o in shown if "frames" in o.arrays}
    if not found:
        return None
    steps = next(iter(found.values()))["frame_steps"]
    moved = {label: arrays["frames"] for label, arrays in found.items()}
    return particle_slider(steps, moved, reach, density)
