"""What plain, joint, conditional and tempered energies are, by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import logsumexp

from equistein.energies import freeze, JointEnergy, PlainEnergy, TemperedEnergy
from equistein.groups import Trivial
from equistein.networks import AbstractNetwork, MLP


class Table(AbstractNetwork):
    """Three linear logits of a number, to compute with by hand."""

    slopes: jax.Array

    def __call__(self, point):
        return self.slopes * jnp.sum(point)

    def group(self, shape):
        return Trivial()


TABLE = Table(jnp.array([0.0, 1.0, -2.0]))
LOGITS = np.array([0.0, 0.5, -1.0])  # at 0.5


def test_plain_energy_is_minus_the_network():
    energy = PlainEnergy(Table(jnp.array(2.0)))
    assert energy(jnp.array([1.5])) == -3.0
    assert energy.log_density(jnp.array([1.5])) == 3.0
    assert energy.evaluate(jnp.array([1.5])).logits is None
    with pytest.raises(ValueError, match=r"one number.*it is of shape \(3,\)"):
        PlainEnergy(TABLE)(jnp.array([1.5]))


def test_joint_energy_by_hand():
    energy, x = JointEnergy(TABLE), jnp.array([0.5])
    assert np.allclose(energy.logits(x), LOGITS)
    assert np.isclose(energy(x), -np.log(np.sum(np.exp(LOGITS))))
    assert np.allclose(energy.evaluate(x).logits, LOGITS)
    for label, logit in enumerate(LOGITS):
        assert np.isclose(energy.joint_energy(x, label), -logit)
        assert np.isclose(energy.condition(label)(x), -logit)
    assert energy.num_classes((1,)) == 3


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_the_temperature_is_that_of_the_points_not_of_the_classes(temperature):
    energy, x = JointEnergy(TABLE, temperature=temperature), jnp.array([0.5])
    assert np.isclose(energy(x), -logsumexp(LOGITS) / temperature)
    chances = np.exp(LOGITS) / np.sum(np.exp(LOGITS))
    assert np.allclose(jax.nn.softmax(energy.logits(x)), chances)
    for label, chance in enumerate(chances):
        # E(x | y) = E(x) - log p(y | x)
        expected = -logsumexp(LOGITS) / temperature - np.log(chance)
        assert np.isclose(energy.condition(label)(x), expected)
        assert np.isclose(energy.joint_energy(x, label), expected)


def test_tempered_energy_is_divided():
    energy, x = PlainEnergy(Table(jnp.array(2.0))), jnp.array([1.5])
    assert np.isclose(TemperedEnergy(energy, 4.0)(x), energy(x) / 4)
    twice = TemperedEnergy(TemperedEnergy(energy, 4.0), 0.5)
    assert np.isclose(twice(x), energy(x) / 2)
    assert np.isclose(twice.log_density(x), -energy(x) / 2)


def test_no_gradient_flows_through_a_fixed_energy(key):
    energy = PlainEnergy(MLP(2, widths=(3,), key=key))

    @eqx.filter_grad
    def slopes(energy, hold):
        return (freeze(energy) if hold else energy)(jnp.ones(2))

    for hold in (True, False):
        leaves = jax.tree.leaves(slopes(energy, hold))
        assert all(np.all(leaf == 0) for leaf in leaves) == hold
    assert np.isclose(freeze(energy)(jnp.ones(2)), energy(jnp.ones(2)))
