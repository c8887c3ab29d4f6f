import dataclasses

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import equistein as es
from equistein.groups import Cyclic
from equistein.kernels import RBF
from equistein.targets import RotatedGaussians

pytestmark = pytest.mark.usefixtures("unchecked")
SAMPLER = es.SVGD(RBF(0.5), optax.sgd(0.1))
START = jnp.zeros((4, 2)).at[:, 0].set(jnp.arange(4.0))


def bowl(x):
    return -0.5 * jnp.sum(x**2)


def run(log_density=bowl, particles=START, sampler=SAMPLER, **options):
    options = {"num_steps": 2} | options
    return es.run(jr.key(0), sampler, log_density, particles, **options)


@pytest.mark.parametrize(
    ("particles", "words"),
    [
        (jnp.zeros((0, 2)), "at least one point"),
        (jnp.zeros((4, 0)), "at least one point"),
        (jnp.zeros(4), r"shape \(n, \*shape\).*got shape \(4,\)"),
        (3.0, r"got shape \(\)"),
        (jnp.zeros((4, 2), int), "floating point, but got int64.*astype"),
        (np.zeros((4, 2), complex), "floating point, but got complex"),
        (jnp.zeros((4, 2), jnp.float16), "double precision .*, but got float16"),
        ("particles", "array of numbers"),
        (START.at[2, 1].set(jnp.nan), "finite, but 1 of 4 are not.* index 2"),
        (START.at[1].set(jnp.inf), "finite, but 1 of 4 are not.* index 1"),
    ],
)
def test_a_wrong_start_is_refused(particles, words):
    with pytest.raises(ValueError, match=words):
        run(particles=particles)


@pytest.mark.parametrize(
    ("log_density", "words"),
    [
        (lambda x: bowl(x)[None], r"return a scalar, but it returned .*\(1,\)"),
        (lambda x: x, r"return a scalar, but it returned .*\(2,\)"),
        (RotatedGaussians(Cyclic(4)), "target.log_density"),
        (None, "function of one point"),
        (
            lambda x: bowl(x) + jnp.log(x[0] - 1),
            "finite at the start.* 2 of 4 .*index 0",
        ),
        (lambda x: bowl(x) * jnp.nan, "4 of 4 particles"),
        (lambda x: -jnp.sqrt(jnp.sum(x**2)), "the gradient"),
    ],
)
def test_a_wrong_density_is_refused(log_density, words):
    with pytest.raises(ValueError, match=words):
        run(log_density=log_density)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_steps": -1}, "`num_steps`"),
        ({"keep": -1}, "`keep`"),
        ({"num_steps": 2.5}, "`num_steps`"),
        ({"tol": 0.0}, "`tol`"),
        ({"tol": float("nan")}, "`tol`"),
        ({"record_every": 0}, "`record_every`"),
        ({"record_every": 1.5}, "`record_every`"),
    ],
)
def test_a_wrong_option_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        run(**options)


def test_a_state_and_a_start_exclude_each_other():
    state = run().state
    with pytest.raises(ValueError, match="one or the other"):
        run(initial_state=state)


def test_a_log_density_that_stops_being_a_number_ends_the_run():
    # The particles and their scores are finite all the time.
    cliff = lambda x: jnp.where(x[0] > 3.5, jnp.nan, x[0])
    with pytest.raises(es.NonFiniteError) as caught:
        run(cliff, num_steps=100, record_every=1)
    assert np.all(np.isfinite(caught.value.samples.history["log_density"]))


def test_wrong_repellers_are_refused():
    with pytest.raises(ValueError, match="`repellers`"):
        dataclasses.replace(SAMPLER, repellers=jnp.zeros((2, 2), int))
    with pytest.raises(ValueError, match="`repellers`"):
        dataclasses.replace(SAMPLER, repellers=jnp.full((2, 2), jnp.nan))
    with pytest.raises(ValueError, match="`repellers`"):
        run(sampler=dataclasses.replace(SAMPLER, repellers=jnp.zeros((2, 3))))
    dense = lambda x: bowl(x) + jnp.sqrt(x[0] + 0.5)
    with pytest.raises(es.NonFiniteError):
        run(
            dense,
            sampler=dataclasses.replace(
                SAMPLER, repellers=jnp.array([[0.0, 0.0], [-1.0, 0.0]])
            ),
        )
