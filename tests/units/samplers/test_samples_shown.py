import jax.numpy as jnp
import jax.random as jr
import pytest
from matplotlib.figure import Figure

import equistein as es


def bowl(x):
    return -jnp.sum(x**2) / 2


def samples_of(key, shape=(5, 2), **options):
    return es.run(
        key, es.Langevin(0.1), bowl, jnp.ones(shape), num_steps=4, record_every=1,
        **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def one():
    return samples_of(jr.key(0))


@pytest.fixture(scope="module")
def two():
    return samples_of(jr.split(jr.key(0)), (2, 5, 2))


def test_samples_say_what_they_are(one, two):
    for said in ("5 particles of shape (2,)", "float64", "4 steps", "4 records"):
        assert said in repr(one)
    assert "2 runs, each of 5 particles of shape (2,)" in repr(two)
    assert len(repr(two)) < 300


@pytest.mark.parametrize("shape", [(5, 1), (5, 4, 3)])
def test_particles_and_history_are_drawn(shape, key):
    figure = samples_of(key, shape).plot()
    assert isinstance(figure, Figure)
    titles = [panel.get_title() for panel in figure.axes]
    assert titles[1:] == ["log density", "update norm"]
    assert f"5 particles of shape {shape[1:]}" in titles[0]
    assert ("the first two of 12" in titles[0]) == (shape == (5, 4, 3))


def test_several_runs_are_drawn_together(two):
    assert len(two.plot().axes[1].lines) == 2
