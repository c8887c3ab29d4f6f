import gc

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from equistein._alike import one_of_alike

import equistein as es
from equistein.samplers import vector_adam

ALIKE = {
    "number": lambda: optax.sgd(0.1),
    "momentum": lambda: optax.sgd(0.1, momentum=0.9),
    "schedule": lambda: optax.sgd(optax.cosine_decay_schedule(0.1, 100)),
    "chain": lambda: optax.chain(optax.clip(1.0), optax.adam(1e-3)),
    "array": lambda: optax.sgd(jnp.asarray(0.1)),
}
RATE = 0.1


@pytest.mark.parametrize("make", ALIKE.values(), ids=ALIKE.keys())
def test_optimizers_that_are_made_alike_are_one(make):
    assert one_of_alike(make()) is one_of_alike(make())


def test_no_optimizer_is_taken_for_another():
    different = [
        *(make() for make in ALIKE.values()),
        optax.sgd(0.2),
        optax.sgd(1),
        optax.sgd(1.0),
        optax.sgd(jnp.asarray(0.2)),
        optax.sgd(np.float32(0.1)),
        optax.sgd(0.1, momentum=0.8),
        optax.sgd(0.1, momentum=0.9, nesterov=True),
        optax.sgd(optax.cosine_decay_schedule(0.1, 200)),
        optax.sgd(optax.linear_schedule(0.1, 0.0, 100)),
        optax.adam(0.1),
        optax.chain(optax.clip(2.0), optax.adam(1e-3)),
        vector_adam(0.1),
        vector_adam(0.2),
    ]
    found = {id(one_of_alike(optimizer)) for optimizer in different}
    assert len(found) == len(different)


def test_a_user_s_schedule_is_like_itself_alone():
    def made():
        return optax.sgd(lambda step: RATE)

    kept = made()
    assert one_of_alike(kept) is one_of_alike(kept)
    assert one_of_alike(made()) is not one_of_alike(made())


def test_an_optimizer_with_a_part_that_tells_nothing_is_itself():
    noisy = optax.add_noise(0.1, 0.5, key=jr.key(0))
    assert one_of_alike(noisy) is noisy


@pytest.mark.slow
def test_a_forgotten_object_is_not_taken_for_a_new_one():
    found = set()
    for _ in range(20):
        found.add(one_of_alike(optax.sgd(lambda step: 0.1)))
        gc.collect()
    assert len(found) == 20


def count_traces(optimizers, lengths):
    """Return how often a density is traced by runs with these."""
    count = [0]

    def log_density(x):
        count[0] += 1
        return -jnp.sum(x**2) / 2

    start = jr.normal(jr.key(0), (4, 2))
    for optimizer, num_steps in zip(optimizers, lengths, strict=True):
        sampler = es.SVGD(es.kernels.RBF(1.0), optimizer)
        es.run(jr.key(0), sampler, log_density, start, num_steps=num_steps, check=False)
    return count[0]


def test_runs_of_any_length_and_of_like_optimizers_are_compiled_once():
    lengths = [1, 2, 5, 19, 20, 21, 60, 99, 100, 101, 150, 199, 200, 201, 299, 300]
    lengths += [1_000, 1_999, 2_345, 5_000]
    once = count_traces([optax.sgd(0.11)], [3])
    assert count_traces([optax.sgd(0.11) for _ in lengths], lengths) == once
    # The broken twin: other optimizers are compiled anew.
    others = [optax.sgd(rate) for rate in (0.11, 0.12, lambda step: 0.11)]
    assert count_traces(others, [3, 3, 3]) == 3 * once
