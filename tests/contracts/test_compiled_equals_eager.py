"""What is compiled is what is written: steps of samplers, and losses."""

import jax
import jax.random as jr
import numpy as np
import pytest
from registries import some_slow
from sampler_registry import log_density, one_step, SAMPLERS, start
from test_training_parts import tried
from training_registry import batch_of, OBJECTIVES

DRAWING = ["contrastive divergence", "blurred", "sum"]
"""Objectives that run samplers, one operation after the other."""


def alike(first, second):
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(np.allclose(*pair, rtol=1e-9, atol=1e-9) for pair in pairs)


@pytest.mark.parametrize("sampler", some_slow(SAMPLERS, ["hmc", "tempering", "smc"]))
def test_a_compiled_step_equals_eager(sampler, key):
    state = sampler.init(start(key), log_density)
    step_key = jr.fold_in(key, 1)
    eager = sampler.step(step_key, state, log_density)
    assert alike(eager, one_step(sampler, step_key, state))
    assert not alike(
        eager, one_step(sampler, key, sampler.init(start(step_key), log_density))
    )


@pytest.mark.parametrize(("make", "energy", "labels"), some_slow(OBJECTIVES, DRAWING))
def test_a_compiled_loss_equals_eager(make, energy, labels, key):
    objective, energy = make(), energy()
    compiled, _, state, _, _ = tried(key, objective, energy, labels)
    eager, *_ = objective.loss(key, energy, state, batch_of(labels))
    assert alike(eager, compiled)
