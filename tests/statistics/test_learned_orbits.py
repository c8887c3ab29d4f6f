import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

from equistein.groups import Cyclic, Trivial
from equistein.metrics import energy_distance
from equistein.models import ContrastiveSettings, for_data
from equistein.targets import RotatedGaussians
from experiments import experiment

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("single_precision")]


def test_the_demo_learns_all_five_states():
    dw4 = experiment("dw4")
    stages = dw4.stages(dw4.presets["quick"], 0)
    learned, plain = (
        stages[f"{model}@0"]().metrics for model in ("equivariant", "plain")
    )
    assert (learned["smallest_fraction"] >= 0.10).all()
    assert (learned["largest_fraction"] <= 0.30).all()
    gap = learned["median_energy"] - learned["median_energy_of_data"]
    assert (abs(gap) < 1.0).all()
    # The broken twin: the same network without the symmetry.
    gap = plain["median_energy"] - plain["median_energy_of_data"]
    assert (abs(gap) > 1.0).all()


@pytest.mark.parametrize("group", [Cyclic(4), Trivial()], ids=["C4", "none"])
def test_an_energy_of_one_mode_s_data_learns_the_orbit(group):
    # Data of one mode alone: with the symmetry the model knows the other three.
    target = RotatedGaussians(Cyclic(4))
    exact = target.sample(jr.key(0), 1_000)
    data = jax.vmap(Cyclic(4).canonicalize)(exact)
    settings = ContrastiveSettings(
        num_epochs=30, langevin_step_size=1e-2, num_steps=40, widths=(64, 64)
    )
    model = for_data(jr.key(1), group, data, settings=settings)
    samples = model.fit(jr.key(2), data).sample(jr.key(3), 512)
    floor = energy_distance(target.sample(jr.key(4), 512), exact)
    apart = energy_distance(samples, exact)
    assert bool(apart < 20 * floor) == (group == Cyclic(4)), (apart, floor)
    assert bool(jnp.isfinite(samples).all())
