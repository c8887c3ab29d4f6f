import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

from equistein.energies import energy_for
from equistein.experiments import EXPERIMENTS
from equistein.groups import Cyclic, Trivial
from equistein.metrics import energy_distance
from equistein.targets import RotatedGaussians
from equistein.training import fit, FitConfig

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("single_precision")]


def test_the_demo_learns_all_five_states():
    experiment = EXPERIMENTS["dw4"]
    stages = experiment.stages(experiment.presets["quick"], 0)
    learned, plain = (
        stages[f"{model}@0"]().metrics for model in ("equivariant", "plain")
    )
    assert (learned["smallest_share"] >= 0.10).all()
    assert (learned["largest_share"] <= 0.30).all()
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
    config = FitConfig(num_epochs=30, langevin=1e-2, num_steps=40)
    energy = energy_for(jr.key(1), group, data, widths=(64, 64))
    samples = fit(jr.key(2), energy, data, config).sample(jr.key(3), 512)
    floor = energy_distance(target.sample(jr.key(4), 512), exact)
    apart = energy_distance(samples, exact)
    assert bool(apart < 20 * floor) == (group == Cyclic(4)), (apart, floor)
    assert bool(jnp.isfinite(samples).all())
