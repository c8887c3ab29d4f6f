"""Posteriors of posteriordb: densities against SciPy, and names."""

import dataclasses
import itertools
import json
import os
import pathlib

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import integrate, special, stats

from equistein.posteriors import Posterior
from experiments._posteriordb_models import load_model, MODELS, reference
from experiments._posteriordb_multimodal import MULTIMODAL

FOLDER = pathlib.Path(os.environ.get("EQUISTEIN_DATA", "")) / "posteriordb"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="posteriordb is not in the folder $EQUISTEIN_DATA"
)


def load(name):
    """Return a model that is read by compiled code."""
    model = load_model(name)
    return dataclasses.replace(model, read=jax.jit(model.read))


def differences(name, oracle):
    """Return what our log density and an oracle differ by at a few trees of values."""
    posterior = load_model(name).posterior
    unflatten = jax.jit(lambda point: posterior.parameters.unflatten(point))
    function = jax.jit(posterior.function)
    noise = np.random.default_rng(0).normal(size=(4, posterior.parameters.dim))
    gaps = []
    for point in np.asarray(posterior.parameters.example) + 0.3 * noise:
        tree = unflatten(point)
        ours = float(function(tree))
        gaps.append(ours - oracle({k: np.asarray(v) for k, v in tree.items()}))
    return np.array(gaps)


@pytest.mark.parametrize("name", MODELS)
def test_a_posterior_has_every_parameter_of_the_reference(name):
    model = load(name)
    example = model.posterior.parameters.example
    found = model.numbers(jnp.broadcast_to(example[None, None], (2, 3, len(example))))
    if name not in MULTIMODAL:
        assert set(found) == set(reference(name, 1, 1))
    assert all(x.shape == (2, 3) for x in found.values())
    value, score = jax.jit(jax.value_and_grad(model.posterior.log_density))(example)
    assert np.isfinite(value)
    assert np.all(np.isfinite(score))


def test_a_regression_is_that_of_scipy_but_for_a_constant():
    data = json.loads((FOLDER / "data/kidiq.json").read_text())
    iq, school = np.array(data["mom_iq"]), np.array(data["mom_hs"])

    def oracle(v):
        b = v["beta"]
        mean = b[0] + b[1] * school + b[2] * iq + b[3] * school * iq
        seen = stats.norm.logpdf(data["kid_score"], mean, v["sigma"]).sum()
        return seen + stats.cauchy.logpdf(v["sigma"], 0, 2.5)

    gaps = differences("kidiq-kidscore_interaction", oracle)
    assert np.allclose(gaps, gaps[0], rtol=0, atol=1e-6)
    flat = lambda v: oracle(v) - stats.cauchy.logpdf(v["sigma"], 0, 2.5)
    assert np.ptp(differences("kidiq-kidscore_interaction", flat)) > 1e-3


def test_hidden_states_are_summed_over_all_paths():
    """Of the first six measurements, whose 64 paths are written out."""
    y = np.array(json.loads((FOLDER / "data/hmm_example.json").read_text())["y"][:6])
    _, density, _ = MODELS["hmm_example-hmm_example"]({"y": jnp.asarray(y)})
    tree = dict(mu=2.5, mu_gap=6.0, from_1=0.6, from_2=0.1)
    tree = {name: jnp.asarray(value) for name, value in tree.items()}
    mu, theta = [2.5, 8.5], np.array([[0.6, 0.4], [0.1, 0.9]])
    paths = [
        stats.norm.logpdf(y, [mu[k] for k in path]).sum()
        + np.log(theta[path[:-1], path[1:]]).sum()
        for path in map(list, itertools.product([0, 1], repeat=6))
    ]
    prior = stats.norm.logpdf(mu, [3, 10]).sum()
    assert float(density(tree)) == pytest.approx(prior + special.logsumexp(paths))


def test_equations_are_solved_as_by_scipy():
    data = json.loads((FOLDER / "data/hudson_lynx_hare.json").read_text())

    def oracle(v):
        a, b, c, d = v["theta"]
        rate = lambda t, z: [(a - b * z[1]) * z[0], (d * z[0] - c) * z[1]]
        solved = integrate.solve_ivp(
            rate, (0, 20), v["z_init"], t_eval=data["ts"], rtol=1e-9, atol=1e-9
        )
        seen = stats.norm.logpdf(
            np.log(data["y"]), np.log(solved.y.T), v["sigma"]
        ).sum()
        start = np.log(v["z_init"])
        seen += stats.norm.logpdf(np.log(data["y_init"]), start, v["sigma"]).sum()
        sd = np.array([0.5, 0.05, 0.5, 0.05])
        prior = stats.norm.logpdf(v["theta"], [1, 0.05, 1, 0.05], sd).sum()
        prior += stats.lognorm.logpdf(v["sigma"], 1, scale=np.exp(-1)).sum()
        return seen + prior + stats.lognorm.logpdf(v["z_init"], 1, scale=10).sum()

    posterior = load_model("hudson_lynx_hare-lotka_volterra").posterior
    trees = [
        {"theta": [0.55, 0.028, 0.8, 0.024], "z_init": [34, 6], "sigma": [0.25, 0.3]},
        {"theta": [0.6, 0.03, 0.7, 0.02], "z_init": [30, 5], "sigma": [0.3, 0.2]},
    ]
    gaps = []
    for tree in trees:
        arrays = {name: np.array(value, float) for name, value in tree.items()}
        ours = posterior.function({k: jnp.asarray(v) for k, v in arrays.items()})
        gaps.append(float(ours) - oracle(arrays))
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-3)


@pytest.mark.parametrize("name", MULTIMODAL)
def test_neither_labels_nor_signs_change_a_density_or_what_is_read(name):
    model = load(name)
    posterior, group = model.posterior, model.posterior.group
    example = np.asarray(posterior.parameters.example)
    point = example + 0.5 * np.random.default_rng(0).normal(size=example.shape)
    move = jax.jit(jax.vmap(group.act, (0, None)))
    moved = move(jax.jit(lambda key: group.sample(key, 8))(jr.key(1)), point)
    assert len(np.unique(np.asarray(moved).round(6), axis=0)) > 1
    points = np.concatenate([moved, point[None]])
    values = np.asarray(jax.jit(jax.vmap(posterior.log_density))(points))
    assert values[:-1] == pytest.approx(values[-1])
    for key, read in model.numbers(jnp.asarray(points[None])).items():
        assert read[0, :-1] == pytest.approx(read[0, -1]), key
    # One parameter in another order alone is another point.
    tree, function = posterior.parameters.unflatten(point), jax.jit(posterior.function)
    part = next(key for key in ("mu", "phi", "loadings") if key in tree)
    other = function(tree | {part: np.flip(tree[part], -1)})
    assert abs(float(other) - float(function(tree))) > 1e-2


def test_factors_and_topics_are_those_of_scipy_but_for_a_constant():
    draw = np.random.default_rng(0)
    loadings, scores = draw.normal(size=(2, 6)), draw.normal(size=(100, 2))
    y = scores @ loadings + 0.5 * draw.normal(size=(100, 6))

    def of_factors(v):
        covariance = v["loadings"].T @ v["loadings"] + np.diag(v["psi"] ** 2)
        seen = stats.multivariate_normal(cov=covariance).logpdf(y).sum()
        prior = stats.norm.logpdf(v["loadings"]).sum()
        return seen + prior + stats.lognorm.logpdf(v["psi"], 1).sum()

    gaps = differences("simulated-factor_model", of_factors)
    assert np.allclose(gaps, gaps[0], rtol=0, atol=1e-6)
    half = lambda v: of_factors(v | {"psi": v["psi"] / 2})
    assert np.ptp(differences("simulated-factor_model", half)) > 1e-3

    draw = np.random.default_rng(0)
    topics = [[30, 30, 20, 10, 5, 3, 1, 1], [1, 2, 2, 5, 10, 20, 30, 30]]
    texts = draw.dirichlet([0.8, 0.8], 12) @ (np.array(topics) / 100)
    counts = draw.multinomial(40, texts)

    def of_topics(v):
        seen = np.sum(stats.multinomial.logpmf(counts, 40, v["theta"] @ v["phi"]))
        return seen + sum(stats.dirichlet.logpdf(x, [0.8, 0.8]) for x in v["theta"])

    gaps = differences("simulated-lda", of_topics)
    assert np.allclose(gaps, gaps[0], rtol=0, atol=1e-6)


@pytest.mark.slow
def test_tempering_over_all_labels_has_the_moments_of_posteriordb():
    """The ordered model of posteriordb is one labeling of the free one."""
    model = load_model("hmm_example-free_hmm")
    samples = model.posterior.run(jr.key(0), num_steps=800, num_draws=100)
    known = reference("hmm_example-hmm_example", 1, 1)

    def errors(model):
        draws = model.numbers(samples.points)
        return [
            (abs(draws[key].mean() - mean) / sd, abs(draws[key].std() / sd - 1))
            for key, (mean, sd) in known.items()
        ]

    assert np.max(errors(model)) < 0.1
    as_labeled = lambda v: {f"theta{k + 1}": v["theta"][k] for k in (0, 1)} | v
    assert np.min(errors(dataclasses.replace(model, read=as_labeled))[-2:]) > 1


@pytest.mark.slow
def test_a_long_run_is_a_reference_and_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("EQUISTEIN_CACHE", str(tmp_path))
    reference.cache_clear()
    found = reference("hmm_example-free_hmm", 8, 240)
    assert found["mu[1]"] == pytest.approx((3.02, 0.22), abs=0.3)
    reference.cache_clear()
    monkeypatch.setattr(Posterior, "run", None)
    assert reference("hmm_example-free_hmm", 8, 240) == found
    with pytest.raises(TypeError):  # another length is another run
        reference("hmm_example-free_hmm", 8, 252)
    reference.cache_clear()
