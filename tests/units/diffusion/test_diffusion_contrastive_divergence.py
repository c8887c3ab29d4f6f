"""Particles take the very steps that new samples take, in parts."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from molecules_by_hand import clouds, energy_of, known

import equistein as es
from equistein.diffusion import (
    DiffusionContrastiveDivergence,
    DiffusionSteps,
    ReverseDiffusion,
    StepSizes,
)
from equistein.energies import PlainEnergy
from equistein.models import kernel_for
from equistein.networks import MLP
from equistein.training import Batch
from short_fits import fit


@pytest.fixture(scope="module")
def data():
    return clouds(jr.key(0))


@pytest.fixture(scope="module")
def energy(data):
    return known(energy_of(jr.key(1), data, sigma_min=0.1), 0.3)


def steps_of(energy, num_steps=12, langevin=0.01, kernel=None):
    sizes = StepSizes(*map(jnp.asarray, (langevin, 0.01, 200.0)))
    return DiffusionSteps(sizes, num_steps, kernel)


def batches(key, objective, energy, data, num):
    """Return the states and infos of some batches, and the loss of each."""
    batch = Batch(data, None, jnp.arange(len(data)))
    state = objective.init(key, energy, batch)
    states, infos, losses = [state], [], []
    draw = eqx.filter_jit(objective.loss)
    for index in range(num):
        key = jr.fold_in(key, index)
        loss, state, info = draw(key, energy, state, batch)
        states.append(state)
        infos.append(info)
        losses.append(loss)
    return states, infos, losses


@pytest.mark.slow
@pytest.mark.parametrize(
    "num_steps",
    [
        pytest.param(1, marks=pytest.mark.slow),
        6,
        pytest.param(12, marks=pytest.mark.slow),
    ],
)
def test_the_particles_take_the_steps_of_reverse_diffusion(
    num_steps, energy, data, key
):
    kernel = kernel_for(energy_of(jr.key(1), data), (3, 3), 0.5)
    steps = steps_of(energy, kernel=kernel)
    objective = DiffusionContrastiveDivergence(
        steps, num_particles=8, num_steps=num_steps
    )
    states, _, _ = batches(key, objective, energy, data, 12 // num_steps + 1)

    def straight(number, num_steps):
        """Take so many steps of one way to the least noise, all with one key."""
        start_key, run_key = jr.split(jr.fold_in(key, number))
        start = energy.start(start_key, 8, (3, 3))
        return steps.run(run_key, energy, start, jnp.zeros((), int), num_steps)

    whole = straight(0, 12)
    assert np.allclose(states[-2].particles, whole, atol=1e-6)
    again = straight(1, num_steps)  # and then anew
    assert np.allclose(states[-1].particles, again, atol=1e-6)
    # They are those of new samples, but for the last denoising.
    generator = ReverseDiffusion(steps, (3, 3), 8)
    drawn = generator.sample(key, energy, 8)
    first_key = jr.split(jr.fold_in(key, 0))
    start = energy.start(first_key[0], 8, (3, 3))
    ends = steps.run(first_key[1], energy, start, jnp.zeros((), int), 12)
    assert np.allclose(drawn, jax.vmap(energy.denoised)(ends), atol=1e-6)
    assert np.allclose(ends, whole, atol=1e-6)


def test_a_jump_to_fresh_noise_is_no_displacement(energy, data, key):
    objective = DiffusionContrastiveDivergence(
        steps_of(energy, 4, 1e-6), num_particles=64, num_steps=2
    )
    states, infos, _ = batches(key, objective, energy, data, 4)
    fresh = energy.start(jr.split(jr.fold_in(key, 1))[0], 64, (3, 3))

    def moved(before, after):
        return np.sqrt(np.sum((after - before) ** 2) / 64)

    kept = [state.particles for state in states]
    for index, before in ((1, kept[1]), (2, fresh), (3, kept[3])):
        assert np.isclose(infos[index]["displacement"], moved(before, kept[index + 1]))
    assert not np.isclose(infos[2]["displacement"], moved(kept[2], kept[3]), rtol=0.1)


def test_the_loss_is_that_of_data_blurred_to_the_level_of_the_particles(
    energy, data, key
):
    steps = steps_of(energy)
    options = {"num_particles": 8, "num_steps": 6}
    objective = DiffusionContrastiveDivergence(steps, **options)
    states, infos, losses = batches(key, objective, energy, data, 2)
    level = energy.level(jnp.asarray(0.5))
    noise = jr.normal(jr.fold_in(key, 0), data.shape)
    blurred = data + level * (noise - jnp.mean(noise, axis=1, keepdims=True))
    model = jax.vmap(energy.at(level))
    above, below = model(blurred), model(states[1].particles)
    weight = level / energy.scale
    gap = np.mean(above) - np.mean(below)
    assert np.isclose(losses[0], weight * gap)
    assert np.isclose(infos[0]["positive_energy"], np.mean(above))
    assert np.isclose(infos[0]["negative_energy"], np.mean(below))
    regular = DiffusionContrastiveDivergence(steps, **options, regularization=0.1)
    _, _, more = batches(key, regular, energy, data, 1)
    squares = np.mean(above**2) + np.mean(below**2)
    assert np.isclose(more[0], weight * gap + 0.1 * squares)


def test_halved_steps_are_smaller(energy, data, key):
    steps = steps_of(energy, 2, 0.01)
    objective = DiffusionContrastiveDivergence(steps, num_particles=8, num_steps=1)
    state = batches(key, objective, energy, data, 1)[0][-1]

    @eqx.filter_jit
    def draw(scale):
        batch = Batch(data, None, jnp.arange(len(data)), scale)
        return objective.loss(key, energy, state, batch)[1].particles

    ends = [draw(jnp.asarray(scale)) for scale in (1.0, 0.5)]
    assert not np.allclose(*ends)
    way_key = jr.split(jr.fold_in(key, 0))[1]
    half = steps.scaled(jnp.asarray(0.5))
    one = half.run(way_key, energy, state.particles, jnp.asarray(1), 1)
    assert np.allclose(ends[1], one, atol=1e-6)


@pytest.mark.slow
def test_it_trains_and_resumes(data, tmp_path):
    energy = energy_of(jr.key(1), data, sigma_min=0.1)
    objective = DiffusionContrastiveDivergence(
        steps_of(energy, 4), num_particles=4, num_steps=2
    )
    path, optimizer = tmp_path / "fit.eqx", optax.sgd(1e-3)

    def run(**options):
        return fit(
            jr.key(2), energy, data, objective, num_epochs=3, batch_size=4,
            optimizer=optimizer, **options,
        )  # fmt: skip

    straight = run()
    stop = es.training.EarlyStopping("loss", 1)
    stop.wants_to_stop = lambda history: len(history["loss"]) == 1
    run(checkpoint=path, callbacks=[stop])
    resumed = run(checkpoint=path)
    assert np.all(np.isfinite(straight.history["negative_energy"]))
    for name, values in straight.history.items():
        assert np.array_equal(resumed.history[name], values)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"num_particles": 0}, "`num_particles`"),
        ({"num_steps": 2.0}, "`num_steps`"),
        ({"regularization": -1.0}, "`regularization`"),
        ({"regularization": float("nan")}, "`regularization`"),
    ],
)
def test_wrong_arguments_are_named(option, words, energy, unchecked):
    with pytest.raises(ValueError, match=words):
        DiffusionContrastiveDivergence(steps_of(energy), **option)


def test_an_energy_without_levels_is_refused(energy, data, key, unchecked):
    plain = PlainEnergy(MLP(9, widths=(2,), key=key))
    objective = DiffusionContrastiveDivergence(steps_of(energy))
    with pytest.raises(ValueError, match="a NoiseEnergy, but got PlainEnergy: take"):
        es.fit(key, plain, data, objective, num_epochs=1, batch_size=4)
