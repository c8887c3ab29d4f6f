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


def test_a_network_alone_is_told_how_it_becomes_an_energy(unchecked):
    with pytest.raises(ValueError, match="PlainEnergy"):
        es.fit(
            0, TwoNumbers(), jnp.ones((8, 2)), es.objectives.ScoreMatching(),
            num_epochs=1, batch_size=4,
        )  # fmt: skip
