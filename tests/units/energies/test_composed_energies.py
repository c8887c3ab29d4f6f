"""Energies that are known, add up, and are left alone by training."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.energies import KnownEnergy, PlainEnergy, SummedEnergy
from equistein.groups import Cyclic, Trivial
from equistein.metrics import reweight
from equistein.models import energy_for
from equistein.networks import MLP


class Spring(eqx.Module):
    stiffness: jax.Array

    def log_density(self, point):
        return -self.stiffness * jnp.sum(point**2) / 2


def normal(scale):
    return lambda x: -jnp.sum(x**2) / (2 * scale**2)


def test_a_sum_by_hand_and_its_gradient(key):
    spring = KnownEnergy(Spring(jnp.array(3.0)).log_density, Trivial())
    learned = PlainEnergy(MLP(2, widths=(4,), key=key))
    both = SummedEnergy([(2.0, spring), (0.5, learned)])
    x = jnp.array([1.0, -2.0])
    assert np.isclose(both(x), 2 * 7.5 + 0.5 * learned(x))
    slopes = eqx.filter_grad(lambda energy: energy(x))(both)
    known, trained = slopes.energies
    assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(known))
    assert any(np.any(leaf != 0) for leaf in jax.tree.leaves(trained))


def test_the_symmetry_of_a_sum_is_what_all_share(key):
    data = jr.normal(key, (20, 2))
    turned = energy_for(key, Cyclic(4), data, widths=(4,))
    spring = KnownEnergy(normal(1.0), Cyclic(4))
    plain = KnownEnergy(normal(1.0), Trivial())
    shape = (2,)
    assert SummedEnergy([(1.0, turned), (1.0, spring)]).group(shape) == Cyclic(4)
    assert SummedEnergy([(1.0, turned), (1.0, plain)]).group(shape) == Trivial()
    given = SummedEnergy([(1.0, turned), (1.0, plain)], Cyclic(4))
    assert given.group(shape) == Cyclic(4)
    given.check_symmetry(data)


def test_weights_make_samples_of_another_normal(key):
    points = jr.normal(key, (4_000, 2))
    weighted = reweight(points, normal(1.0), normal(0.8))
    second = jnp.sum(weighted.weights * jnp.sum(points**2, axis=1)) / 2
    assert np.isclose(second, 0.64, atol=5 * 0.64 / weighted.effective_sample_size**0.5)
    assert abs(jnp.mean(points**2) - 0.64) > 0.2  # unweighted they are the other's
    # E[w^2] / E[w]^2 of normals a times as wide, in 2 dimensions, is
    # (a^2 (2 - a^2))^-1 each: the effective number is known.
    share = 0.64 * (2 - 0.64)
    assert np.isclose(weighted.effective_sample_size / 4_000, share, rtol=0.1)


def test_weights_that_say_nothing_are_told(key):
    points = jr.normal(key, (50, 2))
    with pytest.warns(RuntimeWarning, match="worth 1"):
        reweight(points, normal(1.0), lambda x: 1e4 * x[0])
    with pytest.raises(ValueError, match="finite ratio"):
        reweight(points, normal(1.0), lambda x: -jnp.inf * jnp.ones(()))


def test_terms_that_are_none_are_refused():
    with pytest.raises(ValueError, match="of a finite weight"):
        SummedEnergy([(float("nan"), KnownEnergy(normal(1.0), Trivial()))])
    with pytest.raises(ValueError, match="at least one"):
        SummedEnergy([])
    with pytest.raises(ValueError, match="`terms`"):
        SummedEnergy([(1.0, 3)])
