import matplotlib.pyplot as plt
import numpy as np
import pytest

from equistein.plotting import figure_file


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
