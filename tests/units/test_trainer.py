import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import equistein as es
from equistein.energies import AbstractEnergy, energy_for
from equistein.groups import Trivial
from equistein.kernels import RBF
from equistein.samplers import AbstractSampler
from equistein.training import Box, fit, FitConfig, Lengths, Trainer
from equistein.training._optimizer import weight_optimizer

STILL = {"negatives": "langevin", "langevin": 1e-20}
TINY = FitConfig(
    num_epochs=1, batch_size=8, num_particles=5, num_steps=1, reset_probability=0.0,
    regularization=0.0, ema=0.0, langevin=0.1, stein_step=0.1, score_clip=1e6,
    bandwidth=1.0, sample_steps=4,
)  # fmt: skip


class Bowl(AbstractEnergy):
    r"""$E(x) = a |x|^2 / 2 + b \cdot x$."""

    precision: jax.Array
    slope: jax.Array

    def __call__(self, point):
        return 0.5 * self.precision * jnp.sum(point**2) + jnp.sum(self.slope * point)

    def group(self, shape):
        return Trivial()

    def kernel(self, shape, bandwidth):
        return RBF(bandwidth)


def bowl(precision=1.0, slope=0.0):
    return Bowl(jnp.asarray(precision, float), jnp.asarray(slope, float))


def epochs(key, energy, data, num=1, particles=None, rate=0.0, sampler=None, **options):
    """Return the states before and after each epoch, and the info of each."""
    config = dataclasses.replace(TINY, **options)
    start = Box(data, Trivial())
    lengths = Lengths(config, start.reach)
    trainer = Trainer(config, lengths, RBF(1.0), optax.sgd(rate), start, sampler)
    state = trainer.init(key, energy)
    if particles is not None:
        state = eqx.tree_at(lambda s: s.particles, state, particles)
    states, infos = [state], []
    for _ in range(num):
        state, info = trainer.epoch(state, data)
        states.append(state)
        infos.append(info)
    return states, infos


# ------------------------------------------------------------ the negatives


def test_only_the_particles_drawn_from_the_buffer_move(key):
    data = jr.normal(key, (8, 2))
    states, _ = epochs(key, bowl(), data, num=20, buffer_size=12)
    assert states[0].particles.shape == (12, 2)
    for old, new in zip(states[:-1], states[1:], strict=True):
        moved = np.any(np.asarray(new.particles != old.particles), axis=1)
        assert np.sum(moved) == 5
    moved = np.any(np.asarray(states[-1].particles != states[0].particles), axis=1)
    assert np.all(moved)  # the chance that one of them is never drawn is 12 (7/12)^20


def test_without_a_buffer_all_particles_move(key):
    (old, new), _ = epochs(key, bowl(), jr.normal(key, (8, 2)))
    assert new.particles.shape == (5, 2)
    assert np.all(np.asarray(new.particles != old.particles))


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_particles_may_start_anew_at_the_data(share, key):
    data = jr.normal(key, (8, 2))
    (_, new), _ = epochs(
        key, bowl(), data,
        num_particles=400, reset_probability=1.0, reset_to_data=share, **STILL,
    )  # fmt: skip
    gaps = jnp.linalg.norm(new.particles[:, None] - data[None], axis=-1)
    nearest = np.asarray(jnp.argmin(gaps, axis=1))
    at_data = np.asarray(jnp.min(gaps, axis=1)) < 1e-6
    assert abs(np.mean(at_data) - share) <= 5 * (share * (1 - share) / 400) ** 0.5
    if share == 1.0:
        assert set(nearest) == set(range(8))


def test_a_tolerance_stops_the_sampler_early(key):
    # One particle in a bowl moves by 0.1 |x|: lengths are 0.2, 0.18, 0.162, ...
    options = {"num_particles": 1, "num_steps": 40, "langevin": 0.0}
    particles = jnp.array([[2.0, 0.0]])
    lengths = 0.2 * 0.9 ** np.arange(40)
    for tolerance, steps in ((0.1, int(np.argmax(lengths < 0.1)) + 1), (1e-9, 40)):
        (_, new), (info,) = epochs(
            key, bowl(), jnp.ones((8, 2)), particles=particles, tolerance=tolerance,
            **options,
        )  # fmt: skip
        assert np.array_equal(info.sampler_steps, [steps])
        assert np.allclose(new.particles, particles * 0.9**steps)
    (_, new), (info,) = epochs(
        key, bowl(), jnp.ones((8, 2)), particles=particles, **options
    )
    assert np.array_equal(info.sampler_steps, [40])
    assert np.allclose(new.particles, particles * 0.9**40)


def test_step_factors_act_from_their_epochs_on(key):
    # On a ramp one particle moves by the step times the slope.
    _, infos = epochs(
        key, bowl(0.0, 2.0), jnp.ones((8, 1)), num=5, num_particles=1, langevin=0.0,
        step_epochs=(1, 3), step_factors=(0.5, 0.1),
    )  # fmt: skip
    moves = [float(info.displacement[0]) for info in infos]
    assert np.allclose(moves, [0.2, 0.1, 0.1, 0.02, 0.02])


def test_step_factors_act_on_the_noise_too(key):
    _, infos = epochs(
        key, bowl(0.0), jnp.ones((8, 1)), num=2, num_particles=4_000,
        negatives="langevin", step_epochs=(1,), step_factors=(0.25,),
    )  # fmt: skip
    moves = [float(info.displacement[0]) for info in infos]
    assert np.allclose(moves, [0.2**0.5, 0.05**0.5], rtol=5 / 8_000**0.5)


def test_particles_feel_the_temperature(key):
    (_, new), _ = epochs(
        key, bowl(), jnp.ones((8, 1)), particles=jnp.zeros((4_000, 1)),
        num_particles=4_000, num_steps=100, negatives="langevin", temperature=2.5,
    )  # fmt: skip
    # x <- (1 - eta / T) x + sqrt(2 eta) xi has variance T / (1 - eta / 2 T).
    found = float(np.var(new.particles))
    fits = {t: abs(found * (1 - 0.1 / (2 * t)) / t - 1) for t in (2.5, 1.0, 2.5**2)}
    limit = 5 * (2 / 4_000) ** 0.5
    assert [gap < limit for gap in fits.values()] == [True, False, False]


@pytest.mark.parametrize("negatives", ["esvgd", "svgd", "langevin"])
def test_each_kind_of_negatives_climbs_the_density(negatives, key):
    data = jr.normal(key, (8, 2))
    (old, new), (info,) = epochs(
        key, bowl(), data, num_steps=30, negatives=negatives, langevin=1e-3,
        stein_step=0.1, particles=jnp.full((5, 2), 30.0) + jr.normal(key, (5, 2)),
    )  # fmt: skip
    assert np.linalg.norm(new.particles) < np.linalg.norm(old.particles)
    assert info.displacement[0] > 0


class Jump(AbstractSampler):
    """A sampler that puts all particles in one place."""

    place: float

    def init(self, particles):
        return es.Langevin(1.0).init(particles)

    def step(self, key, state, log_density):
        new, info = es.Langevin(1.0).step(key, state, log_density)
        there = jnp.full_like(new.particles, self.place)
        return eqx.tree_at(lambda s: s.particles, new, there), info


def test_the_norm_of_scores_is_told_of_an_eighth_of_the_particles(key):
    options = {"num_particles": 9, "batch_size": 16}
    states, infos = epochs(key, bowl(3.0), jr.normal(key, (16, 2)), **options)
    some = states[1].particles[:2]
    assert np.allclose(infos[0].score_norm, 3 * np.sqrt(np.sum(some**2) / 2))


def test_any_sampler_may_move_the_negatives(key):
    data = jr.normal(key, (8, 2))
    (_, new), (info,) = epochs(key, bowl(3.0), data, sampler=Jump(2.0))
    assert np.array_equal(new.particles, jnp.full((5, 2), 2.0))
    assert np.allclose(info.negative_energy, 0.5 * 3 * 8)
    fitted = fit(key, bowl(), data, TINY, sampler=Jump(3.0))
    assert np.array_equal(fitted.particles, jnp.full((5, 2), 3.0))
    other = fit(key, bowl(), data, TINY, sampler=es.Langevin(1e-3))
    assert np.max(np.abs(other.particles - 3.0)) > 0.1


# ------------------------------------------------------------ the data


def test_noise_blurs_the_data_of_each_batch(key):
    data = jnp.zeros((4_000, 2))
    _, infos = epochs(key, bowl(), data, batch_size=2_000, data_noise=0.3, **STILL)
    energies = np.asarray(infos[0].positive_energy)
    assert energies[0] != energies[1]
    # The mean of |x|^2 / 2 over 4 000 points in the plane is the variance.
    gap = abs(np.mean(energies) / 0.3**2 - 1)
    assert gap < 5 / 4_000**0.5
    assert abs(np.mean(energies) / 0.33**2 - 1) > 5 / 4_000**0.5


def test_without_noise_the_data_are_themselves(key):
    _, infos = epochs(key, bowl(), jnp.ones((8, 2)), **STILL)
    assert np.allclose(infos[0].positive_energy, 1.0)


# ------------------------------------------------------------ the weights


def step_lengths(config, batches, num):
    """Return the length of each update under a constant gradient, as Adam takes it."""
    optimizer = weight_optimizer(config, batches)
    weight = jnp.ones(())
    state, lengths = optimizer.init(weight), []
    for _ in range(num):
        with jax.numpy_dtype_promotion("standard"):
            update, state = optimizer.update(jnp.ones(()), state, weight)
        lengths.append(float(-update))
    return np.array(lengths)


def test_the_learning_rate_warms_up():
    config = FitConfig(num_epochs=1_000, learning_rate=0.01, warm_up=4)
    lengths = step_lengths(config, 10, 7)
    rise = np.array([0.2, 0.4, 0.6, 0.8, 1, 1, 1])
    assert np.allclose(lengths, 0.01 * rise, rtol=1e-4)
    cold = step_lengths(dataclasses.replace(config, warm_up=0), 10, 7)
    assert np.allclose(cold, 0.01, rtol=1e-4)


def test_the_learning_rate_falls_along_a_cosine():
    lengths = step_lengths(FitConfig(num_epochs=5, learning_rate=0.01), 2, 11)
    exact = 0.5 * (1 + np.cos(np.pi * np.arange(11) / 10))
    assert np.allclose(lengths, 0.01 * (0.99 * exact + 0.01), rtol=1e-4)


def test_the_learning_rate_may_fall_in_steps():
    config = FitConfig(
        num_epochs=5, learning_rate=0.01,
        learning_rate_epochs=(1, 3), learning_rate_factors=(0.5, 0.1),
    )  # fmt: skip
    lengths = step_lengths(config, 2, 8)
    factors = np.array([1, 1, 0.5, 0.5, 0.5, 0.5, 0.1, 0.1])
    assert np.allclose(lengths, 0.01 * factors, rtol=1e-4)


def test_the_gradient_is_clipped(key):
    config = FitConfig(num_epochs=5, gradient_clip=2.0)
    clip = weight_optimizer(config, 1).update
    weights = jnp.zeros(2)
    state = weight_optimizer(config, 1).init(weights)
    with jax.numpy_dtype_promotion("standard"):
        _, after = clip(jnp.array([30.0, 40.0]), state, weights)
    adam = after[1][0]  # its mean of gradients has taken a tenth of the first
    assert np.allclose(adam.mu, 0.1 * 2.0 * jnp.array([0.6, 0.8]))


# ------------------------------------------------------------ other losses


def test_score_matching_trains_without_negatives(key):
    data = 1.3 * jr.normal(key, (64, 1))
    config = FitConfig(
        num_epochs=150, batch_size=32, num_particles=5, num_steps=1, sample_steps=4,
        contrastive=0.0, score_matching=1.0, noise=0.5, regularization=0.0,
        learning_rate=0.05, ema=0.9,
    )  # fmt: skip
    fitted = fit(key, bowl(3.0), data, config)
    best = 1 / (float(jnp.mean(data**2)) + 0.5**2)
    assert abs(fitted.energy.precision / best - 1) < 0.1
    assert not {"negative_energy", "displacement", "score_norm", "sampler_steps"} & set(
        fitted.history
    )
    losses = fitted.history["score_matching_loss"]
    assert np.mean(losses[-10:]) < 0.9 * losses[0]
    assert np.all(np.isfinite(fitted.sample(key, 3)))


def test_known_energies_are_learned(key):
    data = jr.normal(key, (16, 1))
    config = FitConfig(
        num_epochs=200, batch_size=8, num_particles=5, num_steps=1, sample_steps=4,
        contrastive=0.0, score_matching=1e-9, regularization=0.0,
        learning_rate=0.05, ema=0.5,
    )  # fmt: skip
    energies = 0.5 * 3.0 * data[:, 0] ** 2 + 0.5 * data[:, 0]
    some = np.where(np.arange(16) % 3 == 0, np.nan, energies)
    fitted = fit(key, bowl(), data, config, labels=some)
    assert np.isclose(fitted.energy.precision, 3.0, atol=0.02)
    assert np.isclose(fitted.energy.slope, 0.5, atol=0.02)
    losses = fitted.history["supervised_loss"]
    assert losses[-1] < 1e-3 * losses[0]
    assert "accuracy" not in fitted.history


def two_clusters(key):
    classes = np.arange(32) % 2
    data = jr.normal(key, (32, 2)) * 0.3
    return data.at[:, 0].add(jnp.where(classes == 1, 2.0, -2.0)), classes


CLASSES = FitConfig(
    num_epochs=25, batch_size=8, num_particles=6, num_steps=2, sample_steps=40,
    learning_rate=0.02, ema=0.9, bandwidth=1.0,
)  # fmt: skip


def test_a_few_labels_teach_the_classes(key):
    data, classes = two_clusters(key)
    labels = np.where(np.arange(32) < 6, classes, -1)
    energy = energy_for(key, Trivial(), data, num_classes=2, widths=(8,))
    fitted = fit(key, energy, data, CLASSES, labels=labels)
    logits = jax.vmap(fitted.energy.logits)(data)
    assert np.mean(np.argmax(logits, axis=1) == classes) > 0.9
    history = fitted.history
    assert history["supervised_loss"][-1] < 0.5 * history["supervised_loss"][0]
    assert {"negative_energy", "accuracy"} <= set(history)
    drawn = [np.asarray(fitted.sample(key, 3, label=label)) for label in (0, 1)]
    assert np.all(np.isfinite(drawn))
    assert not np.array_equal(*drawn)


def test_a_weight_of_zero_leaves_the_labels_out(key):
    data, classes = two_clusters(key)
    energy = energy_for(key, Trivial(), data, num_classes=2, widths=(8,))
    config = dataclasses.replace(CLASSES, num_epochs=2, supervised=0.0)
    ends = [
        fit(key, energy, data, config, labels=labels).energy
        for labels in (classes, 1 - classes)
    ]
    first, second = (jax.tree.leaves(eqx.filter(end, eqx.is_array)) for end in ends)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


# ------------------------------------------------------------ watching


def test_a_monitor_looks_now_and_then(key):
    data = jr.normal(key, (16, 1))
    config = dataclasses.replace(TINY, num_epochs=5, ema=0.5)
    fitted = fit(
        key, bowl(2.0), data, config, monitor_every=2,
        monitor=lambda energy: {"precision": energy.precision},
    )  # fmt: skip
    seen = fitted.history["precision"]
    assert np.array_equal(np.isfinite(seen), [False, True, False, True, True])
    assert seen[-1] == fitted.energy.precision
    assert np.array_equal(fitted.history["scale"], np.ones(5))
    assert fitted.events == []


def test_an_epoch_is_compiled_once(key):
    traced = []

    class Counted(Jump):
        def step(self, key, state, log_density):
            traced.append(1)
            return Jump.step(self, key, state, log_density)

    after = []
    data = jr.normal(key, (16, 2))
    config = dataclasses.replace(TINY, num_epochs=4)
    weak = Bowl(jnp.asarray(1.0), jnp.asarray(0.0))  # as a number is before its use
    fit(key, weak, data, config, sampler=Counted(1.0),
        on_epoch=lambda row: after.append(len(traced)))  # fmt: skip
    assert after == after[:1] * 4
