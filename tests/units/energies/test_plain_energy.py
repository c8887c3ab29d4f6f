import jax.numpy as jnp
import pytest

import equistein as es


class TwoNumbers(es.networks.AbstractNetwork):
    def __call__(self, point):
        return point

    def group(self, shape):
        return es.groups.Trivial()


def test_a_network_of_several_numbers_is_no_energy():
    with pytest.raises(ValueError, match=r"one number.*it is of shape \(2,\)"):
        es.energies.PlainEnergy(TwoNumbers())(jnp.ones(2))
