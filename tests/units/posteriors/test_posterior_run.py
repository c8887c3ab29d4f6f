import dataclasses
import re

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from jax.scipy.stats import gamma, norm, vonmises

import equistein as es
from equistein.posteriors import LabelSwitchingWarning, Parameters, Posterior
from equistein.samplers import collect_warnings

GAP, NOISE = 1.5, 0.3


def log_density(tree):
    """Two labels whose means are seen a distance apart; all else has its prior only."""
    a, b = tree["mean"]
    prior = jnp.sum(norm.logpdf(tree["mean"])) + jnp.sum(
        gamma.logpdf(tree["rate"], 2.0)
    )
    prior += jnp.sum(vonmises.logpdf(tree["phase"], 1.0))  # weights: uniform
    return prior + norm.logpdf(GAP, jnp.abs(a - b), NOISE)


PARAMETERS = Parameters(
    {"mean": jnp.zeros(2), "rate": jnp.ones(2), "phase": jnp.zeros(2),
     "weight": jnp.full(2, 0.5)},
    exchangeable={"mean": 0, "rate": 0, "weight": 0}, positive=["rate"],
    periodic={"phase": 2 * jnp.pi}, simplex=["weight"],
)  # fmt: skip
POSTERIOR = Posterior(log_density, PARAMETERS)


def exact_log_evidence():
    gap = np.linspace(-12, 12, 20_001)
    seen = norm.pdf(GAP, jnp.abs(gap), NOISE) * norm.pdf(gap, 0, 2**0.5)
    return float(np.log(np.sum(seen) * (gap[1] - gap[0])))


@pytest.fixture(scope="module")
def samples():
    return POSTERIOR.run(
        jr.key(1), num_chains=8, num_steps=3_600, num_draws=60, num_temperatures=6
    )


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "passes"), [(0.0, True), (-np.log(2), False)])
def test_the_evidence_is_that_of_the_density_given(samples, shift, passes):
    """The factor 2 is that of the copies, which a sampler of one mode forgets."""
    assert 0 < samples.log_evidence_error < 0.1
    gap = abs(samples.log_evidence - exact_log_evidence() - shift)
    assert (gap < 4 * samples.log_evidence_error) == passes


@pytest.mark.slow
def test_draws_are_those_of_the_posterior(samples):
    values = samples.named
    assert values["mean"].shape == (8, 60, 2)
    # Each copy of the mode has half of the draws, by construction.
    first = np.asarray(values["mean"][..., 0] > values["mean"][..., 1])
    assert abs(first.mean() - 0.5) < 5 * 0.5 / 480**0.5
    assert np.allclose(jnp.sum(values["weight"], axis=-1), 1)
    assert bool(jnp.all((values["phase"] >= 0) & (values["phase"] < 2 * jnp.pi)))
    # A Gamma(2) number has mean 2 and variance 2; the draws are worth a third or more.
    assert abs(float(jnp.mean(values["rate"])) - 2) < 5 * (2 / 300) ** 0.5
    assert abs(float(jnp.mean(jnp.cos(values["phase"]))) - 0.4464) < 0.15
    assert abs(float(jnp.std(values["weight"])) - 12**-0.5) < 0.03
    assert np.allclose(
        samples.log_density[0, 0], POSTERIOR.log_density(samples.points[0, 0])
    )
    assert samples.evaluations > 8 * 6 * 1_200


@pytest.mark.slow
def test_invariants_do_not_change_with_the_labels(samples):
    found = samples.invariants()
    assert set(found) == {
        "log_density", "mean (sorted)", "rate (sorted)", "weight (sorted)",
        "phase (cos)", "phase (sin)",
    }  # fmt: skip
    assert bool(
        jnp.all(found["mean (sorted)"][..., 0] <= found["mean (sorted)"][..., 1])
    )
    assert np.array_equal(found["phase (cos)"], jnp.cos(samples.named["phase"]))


@pytest.mark.slow
def test_the_mean_of_a_parameter_with_labels_warns(samples):
    with pytest.warns(LabelSwitchingWarning, match="ask for it after `es.relabel"):
        samples.mean("mean")
    assert samples.mean("phase").shape == (2,)
    with pytest.raises(ValueError, match="must be one of mean, phase, rate, weight"):
        samples.mean("means")


@pytest.mark.slow
def test_any_sampler_moves_flat_points_or_the_pilot_s(key):
    kernel = es.kernels.PeriodicRBF(1.0, periodic=PARAMETERS.periodic)
    kernel = es.kernels.Equivariant(kernel, PARAMETERS.group)
    svgd = es.SVGD(kernel, optax.sgd(0.1))
    flat = POSTERIOR.run(key, svgd, num_chains=6, num_steps=4, num_draws=1)
    assert flat.points.shape == (6, 1, 8)
    assert np.isnan(flat.log_evidence)
    start = jax.tree.map(lambda x: jnp.stack([x, 1.1 * x]) / 1.05, {
        name: PARAMETERS.unflatten(PARAMETERS.example)[name]
        for name in PARAMETERS.names})  # fmt: skip
    smc = lambda pilot: es.AnnealedSMC(es.MALA(0.1), reference=pilot.reference)
    with pytest.raises(ValueError, match="was still hotter than the posterior"):
        POSTERIOR.run(key, smc, num_chains=8, num_steps=2, num_draws=1, start=start)


def test_a_density_without_the_symmetry_names_the_swap(key):
    skewed = Posterior(lambda tree: log_density(tree) - tree["mean"][0], PARAMETERS)
    with pytest.raises(ValueError, match=re.escape("[1 0]")) as error:
        skewed.run(key)
    assert "a violation of" in str(error.value)


@pytest.mark.slow
def test_an_improper_prior_that_runs_away_is_found(key):
    parameters = Parameters({"a": 0.0, "b": 0.0, "c": jnp.zeros(2)})
    flat = Posterior(lambda t: norm.logpdf(t["a"]) + norm.logpdf(t["b"]), parameters)
    with pytest.raises(ValueError, match="runs away along 'c'.*Give a proper prior"):
        flat.run(key)
    with pytest.warns(es.SamplingWarning, match="runs away along 'c'"):
        flat.run(key, es.MALA(0.1), num_chains=4, num_steps=8, num_draws=2)


def test_a_density_of_one_over_x_is_improper(key):
    heavy = lambda a: Posterior(lambda t: -a * jnp.log1p(jnp.abs(t["x"])), LINE)
    with pytest.warns(es.SamplingWarning, match="runs away along 'x'"):
        heavy(1.0).run(key, es.MALA(0.1), num_chains=4, num_steps=8, num_draws=2)
    heavy(1.1).run(key, es.MALA(0.1), num_chains=4, num_steps=8, num_draws=2)


LINE = Parameters({"x": 0.0})
ENDS = {
    "interval": ({"interval": {"x": (0, 1)}}, 1 - 1e-7, 0.999),
    "positive": ({"positive": ["x"]}, 1e-37, 1e-30),
    "simplex": ({"simplex": ["x"]}, (1e-37, 1.0), (1e-30, 1.0)),
}


@pytest.mark.parametrize("name", ENDS)
def test_draws_that_round_to_an_end_are_told(name, key, single_precision):
    constraint, end, inside = ENDS[name]
    parameters = Parameters({"x": jnp.full(np.shape(end), 0.5)}, **constraint)
    constant = Posterior(lambda tree: 0.0 * jnp.sum(tree["x"]), parameters)
    run = lambda x: constant.run(
        key, es.MALA(1e-3), start={"x": jnp.array([x])}, num_chains=4, num_steps=8,
        num_draws=2, check=False,
    )  # fmt: skip
    run(inside)
    with pytest.warns(es.SamplingWarning, match="% of the draws of 'x' are where"):
        run(end)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_chains": 0}, "`num_chains`"),
        ({"sampler": 3}, "a function of a pilot"),
        ({"num_steps": 100}, "`num_steps`"),
        ({"start": {"mean": jnp.zeros((3, 2))}}, "must have the names of the example"),
    ],
)
def test_bad_settings_are_refused(given, message, key, unchecked):
    with pytest.raises(ValueError, match=message):
        POSTERIOR.run(key, **given)


@pytest.mark.parametrize("value", [lambda t: t["a"], lambda t: None, lambda t: t["b"]])
def test_a_density_that_is_no_scalar_is_refused(value, key, unchecked):
    posterior = Posterior(value, Parameters({"a": jnp.zeros(1)}))
    with pytest.raises(ValueError, match="`log_density` must"):
        posterior.run(key)
    with pytest.raises(ValueError, match="`log_density` must"):
        posterior.pilot(key)


@pytest.mark.parametrize("low", [0.0, -12.5664])
def test_angles_all_around_a_circle_have_no_mean(low):
    wrapped = es.posteriors.Wrapped(6.2832, low)
    parameters = Parameters({"angle": 0.0}, constraints={"angle": wrapped})
    posterior = Posterior(lambda tree: jnp.cos(tree["angle"]), parameters)
    made = posterior.run(0, es.MALA(0.1), num_chains=4, num_steps=8, num_draws=2)
    for gap in (0.5, 3.1416):
        points = jnp.asarray([[[0.0], [gap]]] * 4)
        with collect_warnings() as found:
            mean = dataclasses.replace(made, points=points).mean("angle")
        assert bool(found) == (gap > 3)
        assert gap > 3 or abs(mean - low - gap / 2) < 1e-3


def modes(gap):
    """Two normal densities, a gap apart."""

    def log_density(tree):
        near, far = (-0.5 * jnp.sum((tree["x"] - c) ** 2) for c in (0.0, gap))
        return jnp.logaddexp(near, far)

    return Posterior(log_density, Parameters({"x": jnp.zeros(2)}))


SMALL = {"num_steps": 1_000, "num_draws": 50, "num_chains": 16}


@pytest.mark.parametrize(
    ("gap", "choice"),
    [(1.0, "HMC"), pytest.param(6.0, "tempering", marks=pytest.mark.slow)],
)
def test_without_evidence_hmc_samples_what_its_chains_cross(gap, choice, key):
    start = {"x": 4 * jr.normal(jr.key(7), (16, 2))}
    samples = modes(gap).run(key, evidence=False, start=start, **SMALL)
    assert samples.choice.startswith(choice)
    assert "R-hat" in repr(samples)
    assert np.isfinite(samples.log_evidence) == (choice == "tempering")
    mean = samples.summary()["x"]
    assert np.all(abs(mean["mean"] - gap / 2) < 5 * mean["error"] + 1e-3)
    full = 1_000 * 16 * 45
    assert (samples.evaluations < 0.4 * full) == (choice == "HMC")


def test_chains_that_do_not_mix_are_warned_of(key):
    start = {"x": jnp.repeat(jnp.array([0.0, 9.0]), 8)[:, None] * jnp.ones((1, 2))}
    with pytest.warns(es.SamplingWarning, match="R-hat of"):
        modes(9.0).run(key, es.HMC(), start=start, **SMALL)
