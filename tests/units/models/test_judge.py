import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.data import Dataset
from equistein.energies import PlainEnergy
from equistein.groups import Trivial
from equistein.models import judge
from equistein.networks import MLP
from equistein.samplers import Langevin, Normal, SamplingWarning
from equistein.training import Box, Fitted, SamplingGenerator


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
