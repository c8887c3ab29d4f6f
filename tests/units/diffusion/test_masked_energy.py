"""Energies of several formulas are those of each, and rows left over do not count."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from molecules_by_hand import mixed, model_of_formulas

import equistein as es
from equistein.diffusion import denoising_loss, NoiseConditionalScoreMatching
from equistein.groups import Trivial
from equistein.models import DenoisingSettings, formulas_of, of_formula


@pytest.fixture(scope="module")
def all_of_it():
    return mixed(jr.key(0), sigma_min=0.1)


@eqx.filter_jit
def value_and_force(energy, point):
    return jax.value_and_grad(energy)(point)


@pytest.mark.parametrize("level", ["sigma_min", "sigma_max"])
def test_rows_left_over_do_not_count(level, all_of_it):
    energy, data, _ = all_of_it
    noise = getattr(energy, level)
    padded, whole = energy.at(noise, jnp.asarray(0)), energy.given(0).at(noise)
    value, force = value_and_force(padded, data[0])
    alone, force_alone = value_and_force(whole, data[0, :2])
    assert np.isclose(value, alone)
    assert np.allclose(force[:2], force_alone)
    assert np.all(force[2] == 0)
    elsewhere = data[0].at[2].set(7.0)
    assert np.isclose(value_and_force(padded, elsewhere)[0], value)
    other = value_and_force(energy.at(noise, jnp.asarray(1)), data[0])[0]
    assert abs(other - value) > 1e-3


def test_a_formula_that_fills_all_rows_is_itself(all_of_it):
    energy, data, _ = all_of_it
    one = value_and_force(energy.at(energy.sigma_min, jnp.asarray(1)), data[7])
    alone = value_and_force(energy.given(1), data[7])
    assert np.isclose(one[0], alone[0])
    assert np.allclose(one[1], alone[1])


def test_points_are_projected_as_each_formula_s_are(all_of_it):
    energy, data, _ = all_of_it
    for point, label in ((data[0], 0), (data[7], 1)):
        moved = energy.project(point + 1.0, jnp.asarray(label))
        assert np.allclose(moved, point, atol=1e-12)


def test_the_mask_tells_which_rows_count(all_of_it):
    energy = all_of_it[0]
    assert np.array_equal(energy.mask, [[True, True, False], [True, True, True]])
    shares = [energy.fraction_present(jnp.asarray(label)) for label in (0, 1)]
    assert np.allclose(shares, [2 / 3, 1.0])
    assert energy.group((3, 3)) == Trivial()
    assert energy.given(0).group((2, 3)).species == (0, 1)


def test_scale_is_that_of_the_atoms_that_are_there(all_of_it):
    energy, data, _ = all_of_it
    coordinates = 6 * 2 * 3 + 6 * 3 * 3
    expected = np.sqrt(np.sum(data**2) / coordinates)
    assert np.isclose(energy.scale, expected)
    assert np.isclose(energy.given(0).scale, expected)
    assert np.isclose(energy.given(0).sigma_max, 2 * expected)


def test_denoising_loss_is_the_mean_over_the_formulas(all_of_it, key):
    energy, data, labels = all_of_it
    noise = energy.random_levels(key, 12)
    loss = eqx.filter_jit(denoising_loss)(key, energy, data, noise, labels)
    drawn, parts = jr.normal(key, data.shape), []

    @eqx.filter_jit
    def score(number, sigma, point):
        return jax.grad(energy.given(number).at(sigma).log_density)(point)

    for x, number, sigma, xi in zip(data, labels.tolist(), noise, drawn, strict=True):
        num = len(energy.formulas[number])
        xi = xi[:num] - jnp.mean(xi[:num], axis=0, keepdims=True)
        slope = score(number, sigma, x[:num] + sigma * xi)
        parts.append(jnp.mean((sigma * slope + xi) ** 2))
    assert np.isclose(loss, np.mean(parts))


@pytest.mark.parametrize(
    "change",
    [
        lambda labels: None,
        lambda labels: labels.at[0].set(-1),
        lambda labels: labels.at[3].set(2),
        lambda labels: labels.astype(float),
    ],
)
def test_every_molecule_needs_its_formula(change, all_of_it, key):
    energy, data, labels = all_of_it
    options = {"labels": change(labels), "num_epochs": 1, "batch_size": 4}
    with pytest.raises(ValueError, match="`labels`|formula of every molecule"):
        es.fit(key, energy, data, NoiseConditionalScoreMatching(), **options)
    with pytest.raises(ValueError, match="`labels`"):
        energy.at(energy.sigma_min)
    for label in (2, -1):
        with pytest.raises(ValueError, match="`label`"):
            energy.given(label)


@pytest.mark.slow
@pytest.mark.usefixtures("single_precision")
def test_one_formula_of_several_is_drawn(tmp_path):
    _, data, labels = mixed(jr.key(1))
    settings = DenoisingSettings(
        num_epochs=1, epoch_batches=2, batch_size=4, sample_steps=5, width=4, depth=1
    )
    model = model_of_formulas(jr.key(2), data, labels, settings)
    model.check(jr.key(3), data, labels)
    fitted = model.fit(jr.key(3), data, labels)
    fitted.save(tmp_path / "model.eqx")
    loaded = es.load(tmp_path / "model.eqx")
    assert loaded.about == {"formulas": [[6, 8], [6, 1, 8]]}
    for number, atoms in enumerate((2, 3)):
        samples = fitted.sample(jr.key(4), 2, label=number)
        assert samples.shape == (2, atoms, 3)
        assert np.allclose(jnp.mean(samples, axis=1), 0, atol=1e-6)
        one = of_formula(loaded, number)
        assert np.array_equal(one.sample(jr.key(4), 2), samples)
        assert np.array_equal(loaded.sample(jr.key(4), 2, label=number), samples)
    assert of_formula(fitted, 1).about == {"atomic_numbers": [6, 1, 8]}
    with pytest.raises(ValueError, match="number of a formula"):
        of_formula(fitted, 2)
    with pytest.raises(ValueError, match="MaskedNoiseEnergy"):
        of_formula(of_formula(fitted, 0), 0)
    _check_new_formulas(loaded)


def _check_new_formulas(fitted):
    """Formulas that training never saw, of elements that it did."""
    assert formulas_of(fitted) == ("CO", "CHO")
    assert of_formula(fitted, "OC").about == {"atomic_numbers": [6, 8]}
    new = of_formula(fitted, "CO2")
    assert new.about == {"atomic_numbers": [6, 8, 8]}
    assert new.energy.group((3, 3)).num_permutations == 2  # the oxygens are alike
    samples = new.sample(jr.key(4), 2)
    assert samples.shape == (2, 3, 3)
    assert np.allclose(jnp.mean(samples, axis=1), 0, atol=1e-6)
    again = of_formula(of_formula(fitted, 0), "CO2")
    for one, asked, said in (
        (of_formula(again, "C2"), "CO2", "has O"), (fitted, "CHN", "has N"),
        (fitted, "C", "one atom"), (fitted, "c5", "A formula is like"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            of_formula(one, asked)
