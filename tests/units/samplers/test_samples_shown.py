import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from matplotlib.figure import Figure

import equistein as es

PICTURES = pytest.importorskip("PIL.Image")


def bowl(x):
    return -jnp.sum(x**2) / 2


def samples_of(key, shape=(5, 2), **options):
    return es.run(
        key, es.Langevin(0.1), bowl, jnp.ones(shape), num_steps=4, record_every=1,
        **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def one():
    return samples_of(jr.key(0), keep=3)


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


def test_recorded_particles_are_animated(one, tmp_path):
    one.animate(tmp_path / "run.gif")
    with PICTURES.open(tmp_path / "run.gif") as picture:
        assert picture.n_frames == 4
        first = np.asarray(picture.convert("L"))
        picture.seek(3)
        assert not np.array_equal(first, np.asarray(picture.convert("L")))


def test_what_cannot_be_animated_says_why(one, two, key, tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.gif"):
        one.animate(tmp_path / "run.mp4")
    with pytest.raises(ValueError, match="several runs"):
        two.animate(tmp_path / "run.gif")
    for samples in (samples_of(key), samples_of(key, (5, 1), keep=2)):
        with pytest.raises(ValueError, match="keep=100"):
            samples.animate(tmp_path / "run.gif")
