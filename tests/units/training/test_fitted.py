import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from by_hand import bowl, fit

from equistein.energies import TemperedEnergy
from equistein.groups import Trivial
from equistein.samplers import Normal
from equistein.training import Fitted


def fitted_bowl(temperature=1.0, scale=2.0):
    energy = TemperedEnergy(bowl(4.0), temperature)
    return Fitted(energy, {}, [], None, Normal(jnp.zeros(2), scale))


@pytest.mark.slow
def test_a_fit_knows_its_likelihood(key):
    variance = 2 * 0.5**2  # at twice the temperature
    data = variance**0.5 * jr.normal(key, (200, 2))
    fitted = fitted_bowl(2.0)
    found = fitted.log_normalizer(key, num_particles=256, num_steps=300)
    assert abs(found.value - np.log(2 * np.pi * variance)) < float(found.error)
    exact = -0.5 * np.sum(np.asarray(data) ** 2, axis=1) / variance
    exact -= np.log(2 * np.pi * variance)
    likelihoods = fitted.log_likelihood(data, found)
    assert likelihoods.shape == (200,)
    assert np.max(np.abs(likelihoods - exact)) < float(found.error)


def test_its_log_density_is_minus_the_energy():
    point = jnp.array([0.5, -1.0])
    assert fitted_bowl().log_density(point) == -bowl(4.0)(point) == -2.5
    assert fitted_bowl().group == Trivial()


def test_it_says_what_it_is(key):
    fitted = fit(key, bowl(), jr.normal(key, (8, 2)), num_epochs=2)
    for said in ("Bowl", "Trivial()", "(2,)", f"{fitted.history['loss'][-1]:.4g}"):
        assert said in repr(fitted)
    assert "0 epochs" in repr(fitted_bowl())


def test_a_fit_without_a_generator_draws_no_samples(key):
    fitted = fit(key, bowl(), jr.normal(key, (8, 2)))
    with pytest.raises(ValueError, match="`generator`"):
        fitted.sample(key, 2)


def test_the_reference_is_as_wide_as_the_box_of_the_data(key):
    data = 3.0 + jr.normal(key, (8, 2))
    reference = fit(key, bowl(), data).reference
    assert np.allclose(reference.center, np.mean(data, axis=0))
    reach = np.max(np.abs(data - np.mean(data, axis=0)[None]))
    assert np.isclose(reference.scale, reach / 2)
