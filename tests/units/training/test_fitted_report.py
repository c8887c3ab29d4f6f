"""A page of what was learned."""

import functools

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from by_hand import bowl, fit, generator_of

from equistein.samplers import Langevin


@functools.cache
def learned():
    """Return a short fit with its data."""
    data = jr.normal(jr.key(1), (64, 2))
    generator = generator_of(data, Langevin(0.1), num_steps=20, num_at_once=32)
    fitted = fit(jr.key(0), bowl(), data, generator=generator, num_epochs=2)
    return fitted, data


def test_a_page_has_numbers_pictures_and_settings(tmp_path):
    fitted, data = learned()
    page = tmp_path / "fit.html"
    fitted.report(page, data=data, num_samples=32)
    text = page.read_text()
    for said in ("loss at the end", f"{fitted.history['loss'][-1]:.3g}",
                 "distance of samples (energy distance)", "32 samples",
                 "floor: data", "Data beside samples.", "The loss.", "Trivial()",
                 "generator.sampler", "Langevin", "energy.weights"):  # fmt: skip
        assert said in text, said
    assert text.count("data:image/png") == 2
    fitted.report(page, data=data, num_samples=32)  # replaced by the same
    assert page.read_text() == text


def test_samples_far_from_the_data_are_told_by_their_distance(tmp_path):
    from equistein.training._fitted_report import _compared

    fitted, data = learned()
    samples = fitted.sample(0, 32)
    _, floor = _compared(jr.key(0), fitted.group, data, data[:32])
    far, _ = _compared(jr.key(0), fitted.group, data, samples + jnp.array([[5.0, 0.0]]))
    assert far["energy_distance"] > 20 * floor["energy_distance"]


def test_without_data_or_a_generator_there_is_what_is_known(tmp_path):
    fitted, _ = learned()
    fitted.report(tmp_path / "samples.html", num_samples=32)
    text = (tmp_path / "samples.html").read_text()
    assert "Samples." in text
    assert "floor" not in text.partition("<body>")[2]
    bare = fit(jr.key(0), bowl(), jr.normal(jr.key(1), (8, 2)))
    bare.report(tmp_path / "bare.html")
    assert "The loss." in (tmp_path / "bare.html").read_text()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (np.zeros((8, 3)), r"`data` must be at least 4 points of shape \(2,\), .* 3\)"),
        (np.zeros((3, 2)), "`data` must be at least 4 points"),
        (np.full((8, 2), np.nan), "`data` must be finite"),
    ],
)
def test_data_unlike_those_learned_from_are_refused(tmp_path, data, said):
    with pytest.raises(ValueError, match=said):
        learned()[0].report(tmp_path / "fit.html", data=data)
    assert not (tmp_path / "fit.html").exists()


def test_data_without_a_generator_are_refused(tmp_path):
    data = jr.normal(jr.key(1), (8, 2))
    bare = fit(jr.key(0), bowl(), data)
    with pytest.raises(ValueError, match="no `generator`"):
        bare.report(tmp_path / "fit.html", data=data)
    with pytest.raises(ValueError, match="`num_samples`"):
        bare.report(tmp_path / "fit.html", num_samples=0)
