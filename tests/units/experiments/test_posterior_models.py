"""Posteriors with a symmetry: their densities, and how draws are measured."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import integrate, special, stats

from experiments._mixture_model import Mixture, Reading, Yardstick


def mixture_oracle(model, tree):
    mean, variance, weight = tree["mean"], tree["variance"], tree["weight"]
    y = np.asarray(model.data)[:, None]
    densities = weight * stats.norm.pdf(y, mean, np.sqrt(variance))
    return (
        np.log(densities.sum(axis=1)).sum()
        + stats.norm.logpdf(mean, 20, 10).sum()
        + stats.invgamma.logpdf(variance, 3, scale=20).sum()
        + stats.dirichlet.logpdf(weight, np.ones(len(weight)))
    )


def test_log_densities_are_those_of_scipy_whatever_the_labels():
    model = Mixture(3)
    posterior, tree = model.posterior(), model.prior(jr.key(0))
    wanted = mixture_oracle(model, {k: np.asarray(v) for k, v in tree.items()})
    assert float(model.log_density(tree)) == pytest.approx(wanted, rel=1e-9)
    points = posterior.draw_start(jr.key(1), 2)
    element = posterior.group.sample(jr.key(2), 1)[0]
    moved = jax.jit(jax.vmap(lambda point: posterior.group.act(element, point)))(points)
    reading = Reading(model)
    assert reading.quantities(moved) == pytest.approx(
        np.asarray(reading.quantities(points)), rel=1e-9
    )


def test_the_evidence_of_one_component_is_that_of_the_closed_form():
    model = Mixture(1)
    y, posterior = np.asarray(model.data), model.posterior()
    n, gap = len(y), y - 20

    def given(log_variance):  # the mean is integrated out by hand
        s = np.exp(log_variance)
        quadratic = gap @ gap / s - 100 * gap.sum() ** 2 / (s * (s + 100 * n))
        logs = (n - 1) * log_variance + np.log(s + 100 * n) + n * np.log(2 * np.pi)
        prior = stats.invgamma.logpdf(s, 3, scale=20) + log_variance
        return np.exp(-0.5 * (quadratic + logs) + prior + 250)

    exact = np.log(integrate.quad(given, 1, 6)[0]) - 250
    mean, log_variance = jnp.linspace(17, 25, 161), jnp.linspace(2, 5, 121)
    log_sum = jnp.linspace(-30, 4, 341)  # of the weights: it integrates to 1
    density = jax.jit(lambda *u: posterior.log_density(jnp.stack(u)))
    plane = jax.vmap(jax.vmap(density, (None, 0, None)), (0, None, None))(
        mean, log_variance, 0.0
    )
    line = jax.vmap(density, (None, None, 0))(mean[0], log_variance[0], log_sum)
    line = line - density(mean[0], log_variance[0], 0.0)
    cell = 0.05 * 0.025 * 0.1
    found = special.logsumexp(plane) + special.logsumexp(line) + np.log(cell)
    assert found == pytest.approx(exact, abs=1e-6)


def test_the_galaxies_are_those_that_were_published():
    data = np.asarray(Mixture(1).data)
    assert len(data) == 82
    assert np.all(np.diff(data) > 0)
    assert data.mean() == pytest.approx(20.8315, abs=1e-3)
    assert data[77] == pytest.approx(26.96)  # 26.69 in R's MASS


@pytest.mark.slow
def test_the_yardstick_sees_labels_only_where_they_are_not_expanded():
    model = Mixture(3)
    posterior = model.posterior()
    points = posterior.draw_start(jr.key(0), 40)
    # The components in order: other labels than the reference's.
    ordered = jax.jit(jax.vmap(posterior.group.canonicalize))(points)
    yardstick = Yardstick(posterior, jnp.ones(posterior.parameters.dim), points)
    expanded = [float(yardstick(x)["expanded"]) for x in (points, ordered)]
    assert expanded == pytest.approx([0.0] * 2, abs=1e-6)
    orbit = jax.jit(jax.vmap(posterior.group.orbit))(ordered).reshape(
        -1, ordered.shape[1]
    )
    assert float(yardstick(orbit)["energy_distance"]) == pytest.approx(0, abs=1e-6)
    assert yardstick(ordered)["energy_distance"] > 0.2
