"""Forces make learned ones better; those of other frames do not."""

import dataclasses

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.data import Dataset
from equistein.metrics import force_errors
from equistein.models import ContrastiveSettings, for_dataset
from equistein.molecules import BOLTZMANN
from equistein.targets import DoubleWell

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("single_precision")]

NUM, HELD_OUT = 400, 40


def cluster():
    """Four atoms at 300 K with exact forces."""
    target = DoubleWell(4, 3, d0=3.5)
    points = target.sample(jr.key(0), NUM, num_steps=400)
    forces = BOLTZMANN * 300 * jax.vmap(jax.grad(target.log_density))(points)
    return Dataset(
        points, None, target.group, num_held_out=HELD_OUT, forces=np.asarray(forces),
        kelvin=300.0,
    )  # fmt: skip


def error_of(seen, dataset):
    """Return the held-out error of forces, over that of zero."""
    settings = ContrastiveSettings(
        num_epochs=150, batch_size=64, widths=(64, 64), num_particles=64, num_steps=10,
    )  # fmt: skip
    model = for_dataset(jr.key(1), seen, settings)
    fitted = model.fit(jr.key(2), jnp.asarray(seen.train().points))
    found = force_errors(fitted.energy, dataset)
    return found["held_out_force_error"] / found["held_out_force_error_of_zero"]


def test_a_fit_with_forces_has_better_ones():
    dataset = cluster()
    forces = dataset.forces
    assert forces is not None
    others = np.random.default_rng(0).permutation(forces)
    mixed = dataclasses.replace(dataset, forces=others)
    mine = error_of(dataset, dataset)
    assert mine < 0.3
    assert error_of(dataclasses.replace(dataset, forces=None), dataset) > 2 * mine
    assert error_of(mixed, dataset) > 2 * mine  # the broken twin
