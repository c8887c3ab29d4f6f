import warnings

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.data import Dataset
from equistein.diffusion import NoiseEnergy
from equistein.energies import KnownEnergy, PlainEnergy
from equistein.groups import Cyclic, Trivial
from equistein.models import judge
from equistein.networks import EGNN, MLP
from equistein.samplers import Langevin, Normal, SamplingWarning
from equistein.targets import RotatedGaussians
from equistein.training import Box, Fitted, Normals, SamplingGenerator


def fitted_with(step_size, points):
    energy = PlainEnergy(MLP(2, widths=(3,), key=jr.key(0)))
    generator = SamplingGenerator(
        Langevin(step_size), Box(points, Trivial()), num_steps=12
    )
    reference = Normal(jnp.zeros(2), 1.0)
    history = {"step": np.array([1, 2]), "loss": np.zeros(2)}
    return Fitted(energy, history, [], generator, reference)


@pytest.mark.usefixtures("single_precision")
def test_samples_that_no_step_has_moved_are_told():
    points = jr.normal(jr.key(1), (12, 2))
    dataset = Dataset(points, None, Trivial())
    with pytest.warns(SamplingWarning, match="6 of 6 particles stand exactly where"):
        outcomes, _ = judge(
            jr.key(2), fitted_with(1e-30, points), dataset, num_samples=6, ais_steps=3
        )
    (event,) = outcomes["model"].events
    assert event["event"] == "warning"
    assert "stand exactly where they began" in event["text"]
    assert fitted_with(0.1, points).sample(0, 6).shape == (6, 2)


def verdict(energy, points, start=None, num=6, **options):
    """Return the texts of events, and what was gained over a normal distribution."""
    start = Box(points, Trivial()) if start is None else start
    generator = SamplingGenerator(
        Langevin(0.01), start, num_steps=3, num_at_once=max(8, num)
    )
    center = jnp.zeros(points.shape[1:])
    fitted = Fitted(energy, {}, [], generator, Normal(center, 2.0, **options))
    group = energy.group(points.shape[1:])
    dataset = Dataset(points, None, group, num_held_out=len(points) // 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        model = judge(jr.key(2), fitted, dataset, num_samples=num, ais_steps=100)[0]
    texts = [event["text"] for event in model["model"].events]
    return " ".join(texts), model["model"].metrics["gain_over_normal"]


@pytest.mark.usefixtures("single_precision")
def test_an_energy_that_is_no_better_than_a_normal_distribution_is_told():
    target = RotatedGaussians(Cyclic(4))
    points = target.sample(jr.key(0), 200)
    right = KnownEnergy(target.log_density, Cyclic(4))
    text, gain = verdict(right, points)
    assert "adds nothing" not in text
    assert 0.5 < gain < 3  # nats
    width = float(jnp.std(points))
    normal = KnownEnergy(Normal(jnp.zeros(2), width).log_density, Cyclic(4))
    text, gain = verdict(normal, points)
    assert "adds nothing" in text
    assert abs(gain) < 0.1


@pytest.mark.parametrize(("shift", "is_told"), [(0.0, False), (2.0, True)])
def test_samples_far_from_the_data_are_told(shift, is_told):
    points = jr.normal(jr.key(0), (60, 2))
    energy = KnownEnergy(Normal(jnp.zeros(2), 1.0).log_density, Trivial())
    text, _ = verdict(energy, points, Normals(points + shift, Trivial()))
    assert ("Samples differ from the data" in text) == is_told


@pytest.mark.parametrize(("num", "is_told"), [(5, False), (60, True)])
def test_a_spike_that_samples_lack_is_told(num, is_told):
    points = jr.normal(jr.key(0), (200, 2))
    energy = KnownEnergy(Normal(jnp.zeros(2), 1.0).log_density, Trivial())
    spiked = points.at[:num, 1].set(0.3)
    text, _ = verdict(energy, spiked, Normals(points, Trivial()), 400)
    assert ("Samples differ from the data" in text) == is_told


@pytest.mark.slow
@pytest.mark.usefixtures("single_precision")
def test_a_graph_network_that_learned_nothing_is_told():
    points = jr.normal(jr.key(0), (40, 3, 2))
    points = points - points.mean(axis=1, keepdims=True)
    network = EGNN(["A"] * 3, dim=2, width=4, depth=1, key=jr.key(1))
    energy = NoiseEnergy(network, points, 0.1)
    text, gain = verdict(energy, points, subspace=energy.group((3, 2)))
    assert "adds nothing" in text
    assert gain < 0.01
