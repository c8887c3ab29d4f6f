import inspect
import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from equistein import plotting
from equistein.plotting import figure_file

RANDOM = np.random.default_rng(0)
CLOUDS = {name: RANDOM.normal(size=(num, 4, 2)) for name, num in (("a", 3), ("b", 2))}
VALUES = {"first": RANDOM.normal(size=7), "second, of two": RANDOM.normal(size=(4, 3))}
GRID = np.exp(-(np.linspace(-2, 2, 9)[:, None] ** 2) - np.linspace(-2, 2, 9)[None] ** 2)
STEPS = np.arange(1, 6)
WATER = 0.96 * np.array([[0.0, 0, 0], [0.79, 0.61, 0], [-0.79, 0.61, 0]])
BONDS = np.array([[0, 1, 2], [1, 0, 0], [2, 0, 0]])
FIGURES = {  # adding a figure means adding a line, with the number of its panels
    "against_exact": (
        lambda f: f({name: (3 * STEPS, STEPS, STEPS[:3]) for name in ("u", "v")}),
        2,
    ),
    "boxes": (lambda f: f(VALUES, "energy", exact=(0.5, "exact")), 1),
    "configurations": (lambda f: f(CLOUDS, 2.0, np.zeros((2, 2), int)), 4),
    "curves": (
        lambda f: f(
            {"a": (STEPS, RANDOM.normal(size=(2, 5)) ** 2)},
            "error",
            exact=(0.1, "exact"),
            log_x=True,
            log_y=True,
            limits=(1e-3, 1e2),
        ),
        1,
    ),
    "error_bars": (
        lambda f: f(
            {"a": (STEPS, STEPS, STEPS / 9), "b": (STEPS, -STEPS, np.inf * STEPS)},
            "heat capacity",
            x_label="temperature",
        ),
        1,
    ),
    "histograms": (lambda f: f(VALUES, (STEPS, STEPS / 15), "energy"), 2),
    "image_rows": (
        lambda f: f(
            {"a": RANDOM.uniform(size=(3, 8, 8, 1)), "b": np.ones((2, 8, 8, 3))}
        ),
        6,
    ),
    "marginals": (
        lambda f: f(
            {"mean": RANDOM.normal(size=(20, 2))},
            {"mean, sorted": RANDOM.normal(size=(20, 2)), "noise": np.ones((20, 1))},
        ),
        4,
    ),
    "run_figure": (
        lambda f: f(
            RANDOM.normal(size=(2, 20, 3)),
            {name: np.ones((2, 5)) for name in ("step", "log_density", "acceptance")},
        ),
        3,
    ),
    "molecules": (lambda f: f("OHH", np.stack([WATER] * 9), np.stack([BONDS] * 9)), 16),
    "parity": (lambda f: f({"energy [eV]": (STEPS, 2 * STEPS)}), 1),
    "planar_energies": (
        lambda f: f(
            {"a": [(GRID, None, "density"), (GRID, CLOUDS["a"][0], "boundary")]},
            ["p(x)", "p(y|x)"],
            2.0,
            1.5,
        ),
        2,
    ),
    "planar_samples": (
        lambda f: f({"a": [CLOUDS["a"][0], CLOUDS["a"]]}, ["x", "y"], GRID, 2.0),
        2,
    ),
    "side_by_side": (
        lambda f: f(
            {"a": {"data": STEPS, "samples": STEPS + 1.0}, "b": {"data": STEPS / 2}}
        ),
        2,
    ),
    "spatial_samples": (lambda f: f({"a": RANDOM.normal(size=(5, 3))}, 2.0), 1),
}
FILES = {"figure_file", "molecule_viewer"}


def test_every_figure_is_in_the_registry():
    public = {name for name, f in vars(plotting).items() if inspect.isfunction(f)}
    assert public == set(FIGURES) | FILES


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_its_panels_and_can_be_saved(name):
    draw, num_panels = FIGURES[name]
    figure = draw(getattr(plotting, name))
    assert isinstance(figure, Figure)
    assert len(figure.axes) == num_panels
    assert any(panel.has_data() for panel in figure.axes)
    file = io.BytesIO()
    figure.savefig(file, format="svg")
    assert file.getvalue().startswith(b"<?xml")


def test_a_histogram_says_what_is_outside():
    values = np.array([0.2, 0.4, 0.6, 5.0])
    figure = plotting.histograms({"a": values}, None, "x", limits=(0.0, 1.0))
    (panel,) = figure.axes
    assert panel.get_title(loc="right") == "a (25% outside)"
    # Its area is what is inside.
    area = sum(bar.get_height() * bar.get_width() for bar in panel.patches)
    assert np.isclose(area, 0.75)


def test_a_curve_is_the_mean_over_seeds():
    values = np.array([[1.0, 2.0], [3.0, 6.0]])
    figure = plotting.curves({"a": (np.array([1, 2]), values)}, "y")
    assert figure.axes[0].lines[0].get_ydata().tolist() == [2.0, 4.0]


def test_a_molecule_has_a_line_for_each_bond_of_its_order():
    figure = plotting.molecules("OHH", WATER[None], BONDS[None])
    assert len(figure.axes[0].lines) == 1 + 2
    assert len(figure.axes[0].collections) == 3


def test_a_viewer_comes_with_its_script_or_says_what_is_missing(monkeypatch):
    pytest.importorskip("plotly")
    page = plotting.molecule_viewer("OHH", WATER[None], BONDS[None])
    assert "Plotly.newPlot" in page.html
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    page = plotting.molecule_viewer("OHH", WATER[None], BONDS[None])
    assert "pip install 'equistein[molecules]'" in page.html


def test_more_curves_than_colors_are_told_apart_by_their_lines():
    values = np.ones((2, 3))
    series = {str(i): (np.arange(3), values) for i in range(12)}
    (panel,) = plotting.curves(series, "y").axes
    looks = {(line.get_color(), line.get_linestyle()) for line in panel.lines}
    assert len(looks) == 12
    lines = [line.get_linestyle() for line in panel.lines]
    assert len(set(lines[:4])) == 1
    assert lines[4] != lines[3]


def test_a_curve_of_one_point_is_seen():
    series = {"a": (np.array([3.0]), np.ones((2, 1)))}
    (panel,) = plotting.curves(series, "y").axes
    assert panel.lines[0].get_marker() == "o"


def drawn():
    figure, axes = plt.subplots()
    axes.plot(np.arange(5.0), label="a line")
    axes.fill_between(np.arange(5.0), 0.5)
    axes.legend()
    plt.close(figure)
    return figure


@pytest.mark.parametrize(("suffix", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_the_same_figure_gives_the_same_bytes(suffix, begins):
    first, second = figure_file(drawn(), suffix), figure_file(drawn(), suffix)
    assert first.startswith(begins)
    assert first == second
