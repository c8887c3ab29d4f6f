"""Colors told apart without red or green cones, and seen on white."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from equistein.plotting._style import EXACT, PALETTE

# Machado, Oliveira and Fernandes (2009), of linear RGB, at severity 1.
SIGHTS = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = TO_XYZ.sum(axis=1)
FAR = 20.0  # a difference of 2 is just seen side by side
BEFORE = ("#2f6fbb", "#d9662c", "#3a9d5d", "#8c5fb0", "#b8942f", "#c14a6b", "#4aa3b5")


def linear(color):
    """Return linear RGB of a color."""
    values = np.array(to_rgb(color))
    return np.where(
        values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4
    )


def lab(color, sight):
    """Return what is seen of a color in CIELAB."""
    ratio = TO_XYZ @ np.clip(SIGHTS[sight] @ linear(color), 0, 1) / WHITE
    x, y, z = np.where(
        ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio * 841 / 108 + 4 / 29
    )
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def closest(palette, sight):
    """Return the smallest difference of two colors."""
    seen = [lab(color, sight) for color in (*palette, EXACT)]
    return min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))


@pytest.mark.parametrize("sight", SIGHTS)
def test_any_two_colors_are_told_apart(sight):
    assert closest(PALETTE, sight) > FAR


@pytest.mark.parametrize("sight", ["protanopia", "deuteranopia"])
def test_the_palette_of_before_was_not(sight):
    assert closest(BEFORE, sight) < 5


def test_every_color_is_seen_on_white():
    for color in PALETTE:
        brightness = TO_XYZ[1] @ linear(color)
        assert 1.05 / (brightness + 0.05) >= 3, color  # the contrast of WCAG 1.4.11
