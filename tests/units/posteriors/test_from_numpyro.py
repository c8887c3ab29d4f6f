import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.scipy.special import gammaln
from numpyro.distributions import biject_to, constraints
from numpyro.infer.util import log_density
from numpyro_models import gaussian_mixture, logistic_regression, MODELS

from equistein.posteriors import from_numpyro


def permissive(function):
    def call(*args):
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            return function(*args)

    return call


def by_numpyro(model, data, sites):
    """The log density of flat points from NumPyro's, with maps written out anew."""

    def of(point):
        values, volume, start = {}, 0.0, 0
        for name in sorted(sites):
            shape, support = sites[name]
            free = point[start : start + math.prod(shape)].reshape(shape)
            start += free.size
            if support is constraints.simplex:
                values[name] = jax.nn.softmax(free, axis=-1)
                rows = free.size // shape[-1]
                volume += jnp.sum(free) - jnp.sum(jnp.exp(free))
                volume -= rows * gammaln(float(shape[-1]))
            elif support is constraints.circular:
                values[name] = free
            else:
                transform = biject_to(support)
                values[name] = transform(free)
                jacobian = transform.log_abs_det_jacobian(free, values[name])
                volume += jnp.sum(jacobian)
        return log_density(model, data, {}, values)[0] + volume

    return of


@pytest.mark.slow
@pytest.mark.parametrize("write", MODELS, ids=lambda write: write.__name__)
def test_log_densities_are_numpyro_s(write, key):
    model, data = write()
    posterior = from_numpyro(model, *data)
    assert posterior.exchangeable == MODELS[write]
    trace = permissive(
        numpyro.handlers.trace(numpyro.handlers.seed(model, 1)).get_trace
    )(*data)
    sites = {
        name: (site["value"].shape, site["fn"].support)
        for name, site in trace.items()
        if site["type"] == "sample" and not site["is_observed"]
    }
    plain = {n: (s, getattr(c, "base_constraint", c)) for n, (s, c) in sites.items()}
    points = posterior.draw_start(key, 3)
    values, scores = jax.jit(jax.vmap(jax.value_and_grad(posterior.log_density)))(
        points
    )
    exact = permissive(
        jax.jit(jax.vmap(jax.value_and_grad(by_numpyro(model, data, plain))))
    )
    exact_values, exact_scores = exact(points)
    np.testing.assert_allclose(values, exact_values, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(scores, exact_scores, rtol=1e-6, atol=1e-6)


def test_labels_may_be_named_and_are_checked():
    model, data = gaussian_mixture()
    labels = {"weights": 0, "locs": 0, "scales": 0}
    named = from_numpyro(model, *data, exchangeable=labels)
    assert named.exchangeable == MODELS[gaussian_mixture]
    assert named.group.order == 6
    assert from_numpyro(model, *data, exchangeable={}).group.order == 1
    with pytest.raises(ValueError, match="not invariant under(.|\n)*a violation of"):
        from_numpyro(model, *data, exchangeable={"locs": 0})
    with pytest.raises(ValueError, match="'loc', which is no parameter"):
        from_numpyro(model, *data, exchangeable={"loc": 0})
    model, data = logistic_regression()
    with pytest.raises(ValueError, match="not invariant under(.|\n)*a violation of"):
        from_numpyro(model, *data, exchangeable={"coefs": 0})


def discrete():
    numpyro.sample("which", dist.Categorical(jnp.ones(3) / 3))


def ordered():
    base = dist.Normal(0, 1).expand([3])
    order = dist.transforms.OrderedTransform()
    numpyro.sample("locs", dist.TransformedDistribution(base.to_event(1), order))


def improper():
    numpyro.sample("x", dist.ImproperUniform(constraints.real, (), ()))


def fixed():
    numpyro.sample("x", dist.Delta(jnp.ones(3)).to_event(1))


def depends():
    top = numpyro.sample("top", dist.Exponential(1.0))
    numpyro.sample("x", dist.Uniform(0.0, top))


def nothing():
    numpyro.sample("x", dist.Normal(0, 1), obs=1.0)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (discrete, "the site 'which' is discrete. Marginalise it: .*MixtureSameFamily"),
        (ordered, "'locs' is ordered"),
        (improper, "cannot be drawn from"),
        (depends, "the support of the site 'x' depends on another site"),
        (fixed, "the site 'x' has one value"),
        (nothing, "the model has no latent site"),
    ],
)
def test_models_that_cannot_be_sampled_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        from_numpyro(model)


def test_an_ordered_site_is_taken_where_no_symmetry_is_wanted():
    posterior = from_numpyro(ordered, exchangeable={})
    values = posterior.parameters.unflatten(posterior.parameters.example)
    assert bool(jnp.all(jnp.diff(values["locs"]) > 0))


def test_without_numpyro_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(ImportError, match=r"pip install 'equistein\[bayes\]'"):
        from_numpyro(discrete)
