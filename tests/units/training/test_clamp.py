import jax
import jax.numpy as jnp
import numpy as np
import pytest
from by_hand import bowl

import equistein as es
from equistein.energies import KnownEnergy
from equistein.groups import PointCloud, Trivial
from equistein.training import Clamp, Normals, SamplingGenerator

CLOUD = PointCloud("COO", 2)
# Two coordinates; given one, the other has 0.75 of its mean, and variance 1/2.
CORRELATED = KnownEnergy(lambda x: 1.5 * x[0] * x[1] - jnp.sum(x**2), Trivial())


def generator_of(shape=(2,)):
    start = Normals(jnp.stack([-jnp.ones(shape), jnp.ones(shape)]), Trivial())
    return SamplingGenerator(es.MALA(0.4), start, num_steps=100, num_at_once=512)


@pytest.mark.slow
@pytest.mark.parametrize(("energy", "right"), [(CORRELATED, True), (bowl(), False)])
def test_held_coordinates_condition_the_others(energy, right, key):
    clamp = Clamp([2.0, np.nan], [True, False])
    points = generator_of().sample(key, energy, 512, clamp)
    assert (points[:, 0] == 2).all()
    free, num = np.asarray(points[:, 1]), len(points)
    mean = abs(free.mean() - 1.5) < 4 * np.sqrt(0.5 / num)
    variance = abs(free.var() - 0.5) < 4 * 0.5 * np.sqrt(2 / num)
    assert (mean and variance) == right


def test_a_clamp_holds_positions_relative_to_each_other(key):
    values = jnp.array([[3.0, 1.0], [4.0, 1.0], [0.0, 0.0]])
    clamp = Clamp(values, [True, True, False])  # one truth value for each atom
    cloud = CLOUD.project(jax.random.normal(key, (3, 2)))
    held = clamp.hold(cloud, CLOUD.project)
    assert np.allclose(CLOUD.project(held), held)  # still on the subspace
    assert np.allclose(held[1] - held[0], values[1] - values[0])
    assert np.allclose(held[:2].mean(0), cloud[:2].mean(0))
    assert (held[2] == cloud[2]).all()
    restored = clamp.restore(held, CLOUD.project)
    assert (restored[:2] == values[:2]).all()
    assert np.allclose(restored[2] - restored[0], held[2] - held[0])


def test_a_clamp_refuses_what_does_not_fit():
    values, first = np.zeros((3, 2)), [True, False, False]
    for mask in ([True, False], [False] * 3, [True] * 3, [1, 0, 0]):
        with pytest.raises(ValueError, match="mask"):
            Clamp(values, mask)
    with pytest.raises(
        ValueError, match="at finite `values`, but it holds 2, 0 at such"
    ):
        Clamp(np.full((3, 2), np.nan), first)
    with pytest.raises(ValueError, match="outside the points"):
        generator_of().sample(jax.random.key(0), bowl(), 4, Clamp(values, first))
