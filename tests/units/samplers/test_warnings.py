"""What samples are doubted for, and that sound runs are not."""

import re

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
import scipy.signal

import equistein as es
from equistein.metrics import split_r_hat
from equistein.samplers import collect_warnings
from equistein.samplers._warnings import _of_mixing, _of_weights


def normal(x):
    return -0.5 * jnp.sum(x**2)


def two_wells(x):
    return jnp.logaddexp(normal(x - 8), normal(x + 8))


def within(radius, x):
    return jnp.where(jnp.sum(x**2) > radius**2, jnp.nan, normal(x))


# A normal density, NaN beyond a radius of which many proposals go, and one that is not.
outside_nan, nowhere_nan = (
    jax.tree_util.Partial(within, jnp.asarray(radius)) for radius in (1.0, jnp.inf)
)


def with_a_pole(x):
    return jnp.where(jnp.sum(x**2) > 1, jnp.inf, normal(x))


def asymmetric_far_off(x):
    """A density that quarter turns keep near the origin only."""
    return normal(x / 3) + 0.5 * jnp.maximum(x[0] - 2, 0.0)


def constant(x):
    return jnp.zeros(()) + 0 * jnp.sum(x)


def improper(x):
    return 1e3 * jnp.sum(x)


START = 0.3 * jr.normal(jr.key(0), (40, 2))
MALA = es.MALA(0.3)
SVGD = es.SVGD(es.kernels.Equivariant(es.kernels.RBF(1.0), es.groups.Cyclic(4)),
               optax.sgd(0.3))  # fmt: skip
# A run that should be doubted, what it is told, and the same run of a sound density.
DOUBTED = {
    "stuck": (es.MALA(1e6), normal, {}, "of proposals were accepted", MALA),
    "drifting": (es.Langevin(10.0), improper, {}, "of the density finite", MALA),
    "undefined": (MALA, outside_nan, {}, "`log_density` was NaN or inf at", None),
    "infinite": (MALA, with_a_pole, {}, "`log_density` was NaN or inf at", None),
    "undefined at some temperature": (
        es.ParallelTempering(MALA, [1.0, 0.5], num_adapt=10), outside_nan, {},
        "`log_density` was NaN or inf at", None,
    ),
    "still": (es.Langevin(1e-60), normal, {}, "40 of 40 particles stand", MALA),
    "constant": (es.Langevin(1e-3), constant, {}, "is exactly zero at 40 of 40", None),
    "rounded": (
        MALA, lambda x: normal(x) + 1e20, {}, "log density is rounded to 1.6", None,
    ),
    "unmixed": (MALA, two_wells, {"keep": 8}, "R-hat of the 8 chains", None),
    "asymmetric": (SVGD, asymmetric_far_off, {}, "not where they ended", None),
}  # fmt: skip


@pytest.mark.parametrize("name", DOUBTED)
def test_a_run_that_should_be_doubted_says_so(name):
    sampler, density, options, told, better = DOUBTED[name]
    start = jnp.sign(START) * 8 if name == "unmixed" else START
    options = {"num_steps": 200} | options
    with pytest.warns(es.SamplingWarning, match=told):
        samples = es.run(jr.key(1), sampler, density, start, **options)
    assert told in samples.warnings[0]
    assert samples.warnings[0].startswith(type(sampler).__name__)
    assert "1 warning" in repr(samples)
    # The same of a sound density, or a better step, is not doubted.
    known = nowhere_nan if density is outside_nan else normal
    sound = es.run(jr.key(1), better or sampler, known, START, **options)
    assert sound.warnings == ()


def narrow_mode(depth, x):
    return jnp.logaddexp(normal(x), depth + normal((x - 6) / 1e-3))


@pytest.mark.parametrize("depth", [0.0, 20.0])
def test_a_chain_trapped_in_a_narrow_mode_is_warned_of(depth):
    start = jr.normal(jr.key(0), (16, 1)).at[0].set(6.0)
    density = jax.tree_util.Partial(narrow_mode, jnp.asarray(depth))
    sampler = es.ParallelTempering(MALA, num_temperatures=4)
    with collect_warnings() as found:
        es.run(0, sampler, density, start, num_steps=800)
    assert any("it is trapped" in text for text in found) == (depth > 0)


def wide(x):
    return normal(x / 4)


@pytest.mark.parametrize("width", [0.3, 3.0])
@pytest.mark.parametrize("sampler", [es.ParallelTempering(), es.AnnealedSMC()])
def test_a_start_narrower_than_the_target_everywhere_is_warned_of(sampler, width):
    start = width * jr.normal(jr.key(0), (64, 2))
    with collect_warnings() as found:
        es.run(0, sampler, wide, start, num_steps=200)
    assert any("began in a place" in text for text in found) == (width < 1)


ALGORITHMS = {"hmc": {"num_integration_steps": 3}, "nuts": {}, "adjusted_mclmc": {}}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "hmc" else [pytest.mark.slow])
        for name in ALGORITHMS
    ],
)
def test_moves_of_blackjax_into_nan_are_told(name):
    blackjax = pytest.importorskip("blackjax")
    algorithm, options = getattr(blackjax, name), ALGORITHMS[name]
    sampler = es.samplers.from_blackjax(algorithm, step_size=0.5, **options)
    with pytest.warns(es.SamplingWarning, match="`log_density` was NaN or inf at"):
        es.run(jr.key(1), sampler, outside_nan, START, num_steps=20)
    assert es.run(jr.key(1), sampler, nowhere_nan, START, num_steps=20).warnings == ()


@pytest.mark.filterwarnings("ignore::equistein.SamplingWarning")
def test_sequential_monte_carlo_counts_moves_to_where_there_is_no_density():
    sampler = es.AnnealedSMC(MALA, num_runs=2, num_moves=2)
    samples = es.run(jr.key(1), sampler, outside_nan, START, num_steps=20)
    assert any("`log_density` was NaN or inf at" in text for text in samples.warnings)
    sound = es.run(jr.key(1), sampler, nowhere_nan, START, num_steps=20)
    assert not np.any(sound.history["undefined"])


def test_draws_that_are_nearly_alike_are_told():
    """Chains in one place, so that R-hat is content, each of which creeps."""
    noise = np.asarray(jr.normal(jr.key(0), (400, 30, 1)))
    creeping = scipy.signal.lfilter([1.0], [1.0, -0.93], noise, axis=0)
    (told,) = _of_mixing(creeping)
    assert re.search(r"the 6000 draws of the 30 chains .* are worth [12]\d\d\.", told)
    assert not list(_of_mixing(noise))
    some = np.array([1.0, *[1e-3] * 99])
    assert "are worth 1.2 equal ones" in next(_of_weights(some))
    assert not list(_of_weights(np.full(100, 0.01)))


def hollow(x):
    """A hollow in a plain without an end, which keeps no chain."""
    return 1e-3 * (4 - jnp.minimum(jnp.sum(x**2), 4.0))


def test_chains_that_left_for_where_nothing_guides_them_are_doubted():
    start = 0.5 * jr.normal(jr.key(0), (16, 2))
    with pytest.warns(es.SamplingWarning, match="zero at 1. of 16 .* at the end"):
        es.run(0, es.MALA(1.0), hollow, start, num_steps=60)
    keys, starts = jr.split(jr.key(0)), jnp.stack([start, start])
    with pytest.warns(es.SamplingWarning, match="in run .* at the end"):
        es.run(keys, es.MALA(1.0), hollow, starts, num_steps=60)
    kept = es.run(0, es.MALA(1.0), normal, start, num_steps=60)
    assert kept.warnings == ()


def test_warnings_of_several_runs_name_the_runs_and_are_saved(tmp_path):
    keys, start = jr.split(jr.key(0), 2), jnp.stack([START, START])
    with pytest.warns(es.SamplingWarning, match="MALA: in run 0, 1: only"):
        samples = es.run(keys, es.MALA(1e6), normal, start, num_steps=50)
    assert samples[0].warnings == samples.warnings
    samples.save(tmp_path / "samples.npz")
    assert (
        es.samplers.load_samples(tmp_path / "samples.npz").warnings == samples.warnings
    )


def test_samples_that_would_not_fit_into_memory_are_not_read(tmp_path, monkeypatch):
    path = tmp_path / "samples.npz"
    np.savez_compressed(path, about="{}", particles=np.zeros((100_000, 2)))
    assert path.stat().st_size < 10_000
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", "1000000")
    with pytest.raises(ValueError, match="set EQUISTEIN_MAX_BYTES to 1600"):
        es.samplers.load_samples(path)


def test_r_hat_is_that_of_arviz():
    arviz = pytest.importorskip("arviz_stats.base.array").array_stats
    rng = np.random.default_rng(0)
    for values in (rng.standard_t(1, (4, 50)), rng.normal(size=(6, 21)).cumsum(axis=1)):
        assert split_r_hat(values) == pytest.approx(arviz.rhat(values), rel=1e-3)
    assert split_r_hat(np.zeros((2, 8))) == 1.0
    assert split_r_hat(np.arange(2.0)[:, None] * np.ones((2, 8))) == np.inf
    same = np.asarray(jr.normal(jr.key(0), (8, 500)))
    assert split_r_hat(same) == pytest.approx(1, abs=0.02)
