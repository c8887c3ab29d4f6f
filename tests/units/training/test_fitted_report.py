"""A page of what was learned."""

import functools

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
    for said in ("distance of an invariant feature", "32 samples", "floor: data",
                 "Trivial()", "SamplingGenerator", "Bowl"):  # fmt: skip
        assert said in text, said
    assert "data:image/png" in text
    fitted.report(page, data=data, num_samples=32)  # replaced by the same
    assert page.read_text() == text


def test_without_data_there_is_what_is_known(tmp_path):
    fitted, _ = learned()
    fitted.report(tmp_path / "fit.html", num_samples=32)
    text = (tmp_path / "fit.html").read_text()
    assert f"{fitted.history['loss'][-1]:.3g}" in text
    assert "floor" not in text.partition("<body>")[2]


@pytest.mark.parametrize(
    "data", [np.zeros((8, 3)), np.zeros((3, 2)), np.full((8, 2), np.nan)]
)
def test_data_unlike_those_learned_from_are_refused(tmp_path, data):
    with pytest.raises(ValueError, match="`data`"):
        learned()[0].report(tmp_path / "fit.html", data=data)
    assert not (tmp_path / "fit.html").exists()


def test_data_without_a_generator_are_refused(tmp_path):
    data = jr.normal(jr.key(1), (8, 2))
    bare = fit(jr.key(0), bowl(), data)
    with pytest.raises(ValueError, match="`generator`"):
        bare.report(tmp_path / "fit.html", data=data)
    with pytest.raises(ValueError, match="`num_samples`"):
        bare.report(tmp_path / "fit.html", num_samples=0)
