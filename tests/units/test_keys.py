"""Where randomness comes in, an integer is a key, and what is none is refused."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import equistein as es
from equistein._arrays import as_key, as_keys


@pytest.mark.parametrize("given", [0, 7, np.int64(7)])
def test_an_integer_is_a_key(given):
    assert jnp.array_equal(jr.key_data(as_key(given)), jr.key_data(jr.key(int(given))))


def test_keys_of_both_kinds_stay_what_they_are():
    for key in (jr.key(1), jr.PRNGKey(1)):
        assert as_key(key) is key
    keys = jr.split(jr.key(1), 3)
    assert as_keys(keys) is keys


@pytest.mark.parametrize(
    "given", [-1, 1.0, True, None, "0", np.zeros(2, np.uint32), jnp.zeros(2)]
)
def test_what_is_no_key_is_refused_with_the_remedy(given):
    with pytest.raises(ValueError, match=r"`key` must be jax.random.key\(0\)"):
        as_keys(given)


def test_runs_and_fits_take_integers():
    bowl = lambda x: -jnp.sum(x**2) / 2
    run = lambda key: (
        es.run(key, es.Langevin(0.1), bowl, jnp.ones((4, 2)), num_steps=3).particles
    )
    assert jnp.array_equal(run(5), run(jr.key(5)))
    data = jr.normal(jr.key(0), (16, 2))
    settings = es.models.ContrastiveSettings(
        num_particles=8, num_steps=2, batch_size=4, widths=(4,), num_epochs=1,
        sample_steps=3,
    )  # fmt: skip
    group = es.groups.Cyclic(4)

    def drawn(one, two, three):
        model = es.models.for_data(one, group, data, settings=settings)
        return model.fit(two, data).sample(three, 4)

    assert jax.numpy.array_equal(drawn(1, 2, 3), drawn(*map(jr.key, (1, 2, 3))))
