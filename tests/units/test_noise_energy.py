import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from equistein._types import Scalar
from equistein.energies import formulas_energy_for, graph_energy_for, NoiseEnergy
from equistein.features import PairHistogram
from equistein.groups import check_invariance, PointCloud, Trivial
from equistein.kernels import MaximumDiscrepancy, Pullback, RBF
from equistein.networks import EGNN, NoiseMLP
from equistein.samplers import Langevin
from equistein.training import (
    Annealing,
    DENOISING,
    denoising_score_matching,
    fit,
    Lengths,
    load_fitted,
    noise_levels,
    save_fitted,
    Trainer,
)

GROUP = PointCloud("COO", 3)
TINY = dataclasses.replace(
    DENOISING, num_epochs=2, num_passes=2, batch_size=4, sample_steps=5, warm_up=0
)


def clouds(key, num=8):
    points = jnp.eye(3)[None] + 0.1 * jr.normal(key, (num, 3, 3))
    return jax.vmap(GROUP.project)(points)


def energy_of(key, data, **settings):
    return graph_energy_for(key, GROUP, data, width=4, depth=1, **settings)


def test_energy_is_invariant_at_every_level(key):
    data = clouds(key)
    energy = energy_of(key, data)
    for noise in (energy.noise, energy.noise_max):
        function = jax.jit(energy.at(noise).__call__)
        assert energy.group((3, 3)).species == GROUP.species
        check_invariance(function, GROUP, data, tolerance=1e-9)


def test_energy_confines_its_particles(key):
    data = clouds(key)
    energy = energy_of(key, data)
    far = 1e4 * data[0]
    force = jax.jit(jax.grad(energy))(far)
    pull = jnp.sum(force * far) / jnp.sum(far**2)
    expected = 1 / (energy.noise**2 + energy.scale**2)
    assert np.isclose(pull, expected, rtol=0.1)


def test_with_a_silent_network_the_energy_is_that_of_a_normal_density(key):
    data = clouds(key)
    energy = energy_of(key, data)
    last = lambda e: (e.network.atom_read.layers[-1], e.network.pair_read.layers[-1])
    silent = eqx.tree_at(last, energy, jax.tree.map(jnp.zeros_like, last(energy)))
    noise = jnp.asarray(0.7)
    variance = 0.7**2 + jnp.mean(data**2)
    expected = jnp.sum(data[0] ** 2) / (2 * variance)
    assert np.isclose(silent.at(noise)(data[0]), expected)
    # Tweedie's rule for a normal density.
    share = jnp.mean(data**2) / variance
    assert np.allclose(silent.at(noise).denoised(data[0]), share * data[0])


def test_levels_fall_from_the_largest_to_the_least(key):
    energy = energy_of(key, clouds(key), noise=0.1)
    levels = energy.level(jnp.linspace(0, 1, 5))
    assert np.allclose(levels[jnp.array([0, -1])], [2 * energy.scale, 0.1])
    assert np.allclose(levels[1:] / levels[:-1], levels[1] / levels[0])


def test_training_draws_one_level_from_each_part_of_the_range(key):
    energy = energy_of(key, clouds(key), noise=0.1)
    levels = np.log(noise_levels(key, energy, 16))
    high, low = float(jnp.log(energy.noise_max)), np.log(0.1)
    places = 16 * (high - levels) / (high - low)
    assert np.array_equal(np.floor(places), np.arange(16))


def test_start_is_as_wide_as_the_blurred_data(key):
    energy = energy_of(key, clouds(key))
    points = energy.start(key, 4_000, (3, 3))
    assert np.allclose(jnp.mean(points, axis=1), 0, atol=1e-6)
    width = jnp.sqrt(energy.noise_max**2 + energy.scale**2)
    # A third of the coordinates is the center of mass, which is taken off.
    assert np.isclose(jnp.std(points), width * np.sqrt(2 / 3), rtol=0.02)


class Stub(eqx.Module):
    """The network of one cloud that is blurred in place, its score times a factor."""

    factor: float
    scale: Scalar

    def __call__(self, point, noise):
        square, noise = jnp.sum(point**2) / 2, noise * self.scale
        confining = square / (noise**2 + self.scale**2)
        return noise / self.scale * (confining - self.factor * square / noise**2)

    def present(self):
        return jnp.ones(3, bool)


def test_exact_score_has_less_denoising_loss_than_any_other(key):
    points, losses = jnp.zeros((64, 3, 3)), []
    energy = energy_of(key, clouds(key))
    noise = noise_levels(key, energy, 64)
    for factor in (0.9, 1.0, 1.1):
        exact = eqx.tree_at(lambda e: e.network, energy, Stub(factor, energy.scale))
        losses.append(denoising_score_matching(key, exact, points, noise, GROUP))
    assert losses[1] < 1e-12
    assert min(losses[0], losses[2]) > 0.005


def test_lengths_grow_with_the_noise(key):
    energy = energy_of(key, clouds(key), noise=0.1)
    lengths = Lengths(DENOISING, jnp.asarray(1.0), energy)
    assert np.isclose(lengths.langevin, 0.1**2)
    share = 0.04 * (energy.network.reach / 8) ** 2
    assert np.isclose(lengths.stein_step, share * 0.1**2)
    assert np.isclose(lengths.score_clip, 20 / 0.1)
    later = lengths.at(jnp.asarray(0.4))
    assert np.isclose(later.langevin, 0.4**2)
    assert np.isclose(later.stein_step, share * 0.4**2)
    assert np.isclose(later.score_clip, lengths.score_clip / 4)
    first = lengths.at(jnp.asarray(0.7))
    assert first.langevin == first.stein_step == 0
    assert np.isclose(first.score_clip, lengths.score_clip / 7)


def test_the_clip_spares_the_scores_of_large_clouds(key):
    data = 3 * jr.normal(key, (4, 150, 3))
    group = PointCloud([0] * 150, 3)
    energy = graph_energy_for(key, group, data, width=4, depth=1, noise=0.1)
    lengths = Lengths(DENOISING, jnp.asarray(1.0), energy)
    assert lengths.score_clip > 2 * np.sqrt(450) / 0.1


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_nothing_depends_on_the_unit_of_length(unit, key):
    data = clouds(key)
    energy, other = energy_of(key, data), energy_of(key, unit * data)
    assert np.isclose(other.noise, unit * energy.noise)
    for share in (0.0, 1.0):
        level = jnp.asarray(share)
        here = energy.at(energy.level(level))(data[0])
        there = other.at(other.level(level))(unit * data[0])
        assert np.isclose(here, there)
    steps = [Lengths(DENOISING, jnp.asarray(1.0), e) for e in (energy, other)]
    kernels = [e.kernel((3, 3), 1.0) for e in (energy, other)]
    points = [data, unit * data]
    scores = [jnp.ones_like(data), jnp.ones_like(data) / unit]
    forces = [
        lengths.stein_step * kernel.stein_force(x, x, s)
        for lengths, kernel, x, s in zip(steps, kernels, points, scores, strict=True)
    ]
    assert np.allclose(unit * forces[0], forces[1], atol=1e-9 * unit)


def test_kernel_fits_the_network(key):
    data = clouds(key)
    assert isinstance(energy_of(key, data).kernel((3, 3), None), Pullback)
    plain = NoiseEnergy(NoiseMLP(9, key=key), data, 0.1)
    assert isinstance(plain.kernel((3, 3), None), RBF)


@pytest.fixture(scope="module")
def fitted():
    data = clouds(jr.key(0))
    return fit(jr.key(1), energy_of(jr.key(2), data), data, TINY)


def test_fit_draws_samples_by_annealing(fitted, key):
    samples = fitted.sample(key, 3)
    assert samples.shape == (3, 3, 3)
    assert np.allclose(jnp.mean(samples, axis=1), 0, atol=1e-6)
    assert np.all(np.isfinite(samples))
    assert fitted.history["score_matching_loss"].shape == (2,)
    assert "negative_energy" not in fitted.history


def test_a_fit_is_kept_in_a_file(fitted, key, tmp_path):
    save_fitted(tmp_path / "model.eqx", fitted, {})
    other = jr.normal(key, (8, 3, 3))
    like = energy_of(jr.fold_in(key, 1), other)
    again = load_fitted(tmp_path / "model.eqx", like, other, fitted.config, {})
    assert np.array_equal(again.sample(key, 3), fitted.sample(key, 3))


def silent(energy):
    """The energy of a normal density: with a network that is zero everywhere."""
    return eqx.tree_at(lambda e: e.network, energy, Silent())


class Silent(eqx.Module):
    def __call__(self, point, noise):
        return jnp.zeros((), point.dtype)

    def present(self):
        return jnp.ones(3, bool)


def annealing(energy, **settings):
    config = dataclasses.replace(DENOISING, **settings)
    lengths = Lengths(config, jnp.asarray(1.0), energy)
    return Annealing(config, lengths, energy.kernel((3, 3), None), GROUP)


def annealed_width(key, steps, energy, num=4_000):
    """Return the mean squared coordinate at the end, in units of what is right."""
    start = silent(energy).start(key, num, (3, 3))
    num_steps, first = steps.config.sample_steps, jnp.zeros((), int)
    run = eqx.filter_jit(lambda k, x: steps.run(k, silent(energy), x, first, num_steps))
    particles = run(jr.fold_in(key, 1), start)
    assert np.allclose(jnp.mean(particles, axis=1), 0, atol=1e-9)
    expected = (energy.noise**2 + energy.scale**2) * 2 / 3  # the center is taken off
    return float(jnp.mean(particles**2) / expected)


@pytest.mark.parametrize("langevin", [1e-6, 0.2, 1.0])
def test_annealed_particles_have_the_variance_of_a_normal_density(langevin, key):
    energy = energy_of(key, clouds(key), noise=0.5)
    steps = annealing(
        energy, langevin=langevin * 0.25, negatives="langevin", sample_steps=200
    )
    error = np.sqrt(2 / (6 * 4_000))
    assert abs(annealed_width(key, steps, energy) - 1) < 4 * error + 0.01


def test_fresh_noise_in_every_step_is_too_hot(key, monkeypatch):
    """The broken twin: a Langevin step so long has the wrong variance."""
    energy = energy_of(key, clouds(key), noise=0.5)
    steps = annealing(energy, langevin=0.25, negatives="langevin", sample_steps=200)

    def fresh(self, key, number, like):
        return jr.normal(jr.fold_in(key, number), like.shape, like.dtype)

    monkeypatch.setattr(Annealing, "_noise", fresh)
    assert annealed_width(key, steps, energy) > 1.15


def test_the_stein_force_acts_where_the_noise_is_small(key):
    energy = energy_of(key, clouds(key), noise=0.1)
    with_force = annealing(energy, stein_step=0.01, sample_steps=10)
    without = annealing(energy, stein_step=0.0, sample_steps=10)
    points = clouds(key)
    differ = [
        bool(
            jnp.any(
                with_force.step(key, energy, jnp.asarray(number), points)
                != without.step(key, energy, jnp.asarray(number), points)
            )
        )
        for number in (0, 9)
    ]
    assert differ == [False, True]


@pytest.mark.slow
@pytest.mark.parametrize("num_steps", [1, 6])
def test_contrastive_divergence_anneals_its_particles(num_steps, key):
    """Batches take the steps that new samples take, in parts."""
    data = clouds(key)
    energy = energy_of(key, data)
    config = dataclasses.replace(
        TINY, contrastive=1.0, score_matching=0.0, learning_rate=1e-30, num_epochs=1,
        num_particles=64, num_steps=num_steps, sample_steps=12,
    )  # fmt: skip

    def particles_after(num_batches):
        passes = dataclasses.replace(config, num_passes=num_batches, batch_size=8)
        fitted = fit(key, energy, data, passes)
        assert np.all(np.isfinite(fitted.history["negative_energy"]))
        return fitted

    whole = particles_after(12 // num_steps)
    trained = Trainer(
        config, whole.lengths, whole.kernel, optax.sgd(0.0), whole.start
    ).init(key, energy)
    steps = Annealing(config, whole.lengths, whole.kernel, GROUP)

    def straight(number, num_steps):
        """Take so many steps of one annealing of the fit, all with one key."""
        run_key = jr.fold_in(jr.wrap_key_data(trained.key), 2**32 - 1)
        start_key, run_key = jr.split(jr.fold_in(run_key, number))
        start = energy.start(start_key, 64, (3, 3))
        return steps.run(run_key, energy, start, jnp.zeros((), int), num_steps)

    assert np.allclose(whole.particles, straight(0, 12), atol=1e-6)
    again = particles_after(12 // num_steps + 1)  # and then anew
    assert np.allclose(again.particles, straight(1, num_steps), atol=1e-6)


def test_bad_settings_are_refused(key):
    data = clouds(key)
    for noise in (0.0, -1.0, float("nan"), 100.0):
        with pytest.raises(ValueError, match="0 < `noise` < `noise_max`"):
            energy_of(key, data, noise=noise)
    with pytest.raises(ValueError, match="mirror images"):
        graph_energy_for(key, PointCloud("COO", 3, reflections=False), data)
    hot = dataclasses.replace(TINY, temperature=2.0)
    with pytest.raises(ValueError, match="levels of noise instead of a `temperature`"):
        fit(key, energy_of(key, data), data, hot)
    with pytest.raises(ValueError, match="coincide"):
        energy_of(key, jnp.zeros((8, 3, 3)))
    trained = dataclasses.replace(TINY, contrastive=1.0, num_particles=4, num_steps=2)
    for name, value in {"buffer_size": 8, "repel": True, "tolerance": 0.1}.items():
        odd = dataclasses.replace(trained, **{name: value})
        with pytest.raises(ValueError, match=f"leave `{name}` out, but got {value}"):
            fit(key, energy_of(key, data), data, odd)
    learned = Pullback(RBF(MaximumDiscrepancy()), PairHistogram("COO", reach=4.0))
    with pytest.raises(ValueError, match="not MaximumDiscrepancy"):
        fit(key, energy_of(key, data), data, TINY, kernel=learned)
    with pytest.raises(ValueError, match="leave `sampler` out"):
        fit(key, energy_of(key, data), data, TINY, sampler=Langevin(0.1))
    network = EGNN("CO", key=key, width=4, depth=1)
    with pytest.raises(ValueError, match="shape"):
        NoiseEnergy(network, data, 0.1)


# ------------------------------------------------------------ several formulas


def mixed(key, **settings):
    """Six of CO and six of HCO, with a row left over behind each CO."""
    data = clouds(key, 12).at[:6, 2].set(0.0)
    data = data.at[:6, :2].add(-jnp.mean(data[:6, :2], axis=1, keepdims=True))
    labels = jnp.repeat(jnp.arange(2), 6)
    energy = formulas_energy_for(
        key, ("CO", "CHO"), data, labels, atomic_numbers=((6, 8), (6, 1, 8)), width=4,
        depth=1, **settings,
    )  # fmt: skip
    return energy, data, labels


def test_rows_left_over_do_not_count(key):
    energy, data, _ = mixed(key)
    padded, whole = energy.given(jnp.asarray(0)), energy.formula(0)
    assert np.isclose(padded(data[0]), whole(data[0, :2]))
    force = jax.grad(padded)(data[0])
    assert np.allclose(force[:2], jax.grad(whole)(data[0, :2]))
    assert np.all(force[2] == 0)
    elsewhere = data[0].at[2].set(7.0)
    assert np.isclose(padded(elsewhere), padded(data[0]))
    assert np.allclose(padded.project(data[0] + 1.0), data[0], atol=1e-12)
    assert abs(energy.given(jnp.asarray(1))(data[0]) - padded(data[0])) > 1e-3


def test_scale_is_that_of_the_atoms_that_are_there(key):
    energy, data, _ = mixed(key)
    coordinates = 6 * 2 * 3 + 6 * 3 * 3
    assert np.isclose(energy.energy.scale, np.sqrt(np.sum(data**2) / coordinates))


@pytest.mark.slow
def test_denoising_loss_is_the_mean_over_the_formulas(key):
    energy, data, labels = mixed(key, noise=0.1)
    noise = noise_levels(key, energy.energy, 12)
    loss = denoising_score_matching(key, energy, data, noise, Trivial(), labels)
    drawn, parts = jr.normal(key, data.shape), []
    for x, number, sigma, xi in zip(data, labels.tolist(), noise, drawn, strict=True):
        model = energy.formula(number).at(sigma)
        num = len(energy.formulas[number])
        xi = xi[:num] - jnp.mean(xi[:num], axis=0, keepdims=True)
        score = -jax.jit(jax.grad(model))(x[:num] + sigma * xi)
        parts.append(jnp.mean((sigma * score + xi) ** 2))
    assert np.isclose(loss, np.mean(parts))


def test_one_formula_of_several_is_drawn(key):
    energy, data, labels = mixed(key)
    fitted = fit(key, energy, data, TINY, labels=labels)
    samples = fitted.formula(0).sample(key, 2)
    assert samples.shape == (2, 2, 3)
    assert np.allclose(jnp.mean(samples, axis=1), 0, atol=1e-6)
    with pytest.raises(ValueError, match=r"fitted.formula\(0\), of 2"):
        fitted.sample(key, 2)
    with pytest.raises(ValueError, match="`number` from 0 to 1"):
        fitted.formula(2)
    unknown = labels.at[0].set(-1)
    for bad, message in ((None, "missing"), (unknown, "formula of every")):
        with pytest.raises(ValueError, match=message):
            fit(key, energy, data, TINY, labels=bad)
    both = dataclasses.replace(TINY, contrastive=1.0)
    with pytest.raises(ValueError, match="by denoising alone"):
        fit(key, energy, data, both, labels=labels)
