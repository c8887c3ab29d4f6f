import warnings

import jax.numpy as jnp
import jax.random as jr
import pytest

import equistein as es


def samples(points, **summary):
    return es.Samples(points, {}, 10, False, None, summary)


def two_modes(key, weight):
    """Return points of two modes eight widths apart."""
    mode_key, key = jr.split(key)
    right = jr.uniform(mode_key, (128,)) < weight
    return jr.normal(key, (128, 2)).at[:, 0].add(jnp.where(right, 8.0, 0.0))


def test_runs_that_missed_a_mode_are_told_apart():
    apart = 0
    for i in range(20):
        first, second = jr.split(jr.key(i))
        same = two_modes(first, 0.5), two_modes(second, 0.5)
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            apart += not es.check_coverage(*map(samples, same)).agree
        with pytest.warns(es.SamplingWarning, match="missed modes"):
            found = es.check_coverage(samples(same[0]), samples(two_modes(second, 0)))
        assert not found.agree
        assert found.p_value < 0.01
    assert apart <= 2  # of 20 at a level of .01


def test_modes_that_the_group_exchanges_are_one(key):
    x = jr.normal(key, (64, 2)) + jnp.array([[5.0, 0.0]])
    pair = samples(x), samples(-jnp.flip(x, axis=0))
    with pytest.warns(es.SamplingWarning):
        assert not es.check_coverage(*pair).agree
    assert es.check_coverage(*pair, es.groups.Cyclic(2)).agree


def test_evidence_that_disagrees_is_told(key):
    x, y = jr.normal(key, (2, 64, 2))
    first = samples(x, log_z=1.0, log_z_error=0.1)
    assert es.check_coverage(first, samples(y, log_z=1.2, log_z_error=0.1)).agree
    with pytest.warns(es.SamplingWarning, match="standard errors apart"):
        found = es.check_coverage(first, samples(y, log_z=2.0, log_z_error=0.1))
    assert found.log_z_gap > 3


def test_other_shapes_are_refused(key):
    x = jr.normal(key, (8, 2))
    with pytest.raises(ValueError, match="one shape"):
        es.check_coverage(samples(x), samples(x[:, :1]))
    with pytest.raises(ValueError, match="five or more"):  # else nothing is unlikely
        es.check_coverage(samples(x[:4]), samples(x[:4] + 100))
    with pytest.raises(ValueError, match="two results"):
        es.check_coverage(x, x)


def test_posteriors_are_compared_whatever_their_labels_and_windings(key):
    angles = {"periodic": {"x": 1.0}, "exchangeable": {"x": 0}}
    density = lambda tree: 9 * jnp.sum(jnp.cos(2 * jnp.pi * tree["x"]))
    posterior = es.Posterior(density, es.Parameters({"x": jnp.zeros(2)}, **angles))

    def run(turns, step):
        start = turns + 0.05 * jr.normal(key, (32, 2))
        given = {"num_chains": 32, "num_steps": 40, "num_draws": 10, "check": False}
        return posterior.run(1, es.MALA(step), start={"x": start}, **given)

    turns = jr.randint(key, (32, 2), -9, 9).astype(float)
    mixed = run(turns, 1e-3), run(0.0, 2e-3)
    assert es.check_coverage(*mixed).agree
    stuck = run(0.5, 1e-9)
    with pytest.warns(es.SamplingWarning, match="two runs differ"):
        assert not es.check_coverage(mixed[0], stuck).agree
