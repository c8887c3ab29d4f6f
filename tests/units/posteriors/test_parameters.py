import re

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.posteriors import (
    Interval,
    Parameters,
    Positive,
    Posterior,
    Real,
    Simplex,
    Wrapped,
)

MIXTURE = {
    "weight": jnp.array([0.2, 0.3, 0.5]), "mean": jnp.arange(3.0),
    "scale": jnp.ones(3), "layer": {"bias": jnp.array(0.5)},
    "phase": jnp.array([[0.5], [1.0], [6.0]]), "share": jnp.array(0.4),
}  # fmt: skip
LABELS = {"weight": 0, "mean": -1, "scale": 0, "phase": 0}


def mixture(**changes):
    given = {
        "exchangeable": LABELS, "periodic": {"phase": 6.25}, "positive": ["scale"],
        "simplex": ["weight"], "interval": {"share": (-1.0, 2.0)},
    }  # fmt: skip
    return Parameters(MIXTURE, **(given | changes))


def test_trees_come_back():
    parameters = mixture()
    assert parameters.names == (
        "layer/bias",
        "mean",
        "phase",
        "scale",
        "share",
        "weight",
    )
    assert (parameters.dim, parameters.num_labels) == (14, 3)
    back = parameters.unflatten(parameters.flatten(MIXTURE))
    assert jax.tree.structure(back) == jax.tree.structure(MIXTURE)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-14), back, MIXTURE
    )
    assert np.array_equal(parameters.example, parameters.flatten(MIXTURE))


def test_a_swap_of_labels_is_one_of_coordinates(key):
    parameters = mixture()
    point = jr.normal(key, (parameters.dim,))
    order = jnp.array([2, 0, 1])
    before = parameters.unflatten(point)
    after = parameters.unflatten(parameters.group.act(order, point))
    for name in LABELS:
        assert np.allclose(after[name], before[name][order], rtol=1e-14)
    assert after["share"] == before["share"]
    assert np.isclose(
        parameters.log_jacobian(parameters.group.act(order, point)),
        parameters.log_jacobian(point),
    )


def test_both_axes_of_a_matrix_may_have_labels(key):
    rows = jnp.full((3, 3), 1 / 3)
    parameters = Parameters(
        {"move": rows, "mean": jnp.zeros(3)}, simplex=["move"],
        exchangeable={"move": (0, 1), "mean": 0},
    )  # fmt: skip
    point, order = jr.normal(key, (12,)), jnp.array([1, 2, 0])
    before = parameters.unflatten(point)["move"]
    after = parameters.unflatten(parameters.group.act(order, point))["move"]
    assert np.allclose(after, before[order][:, order])
    assert np.allclose(after.sum(axis=1), 1)


def test_signs_of_hidden_units_change_together(key):
    parameters = Parameters(
        {"into": jnp.zeros((2, 3)), "out": jnp.zeros(3), "bias": jnp.zeros(())},
        exchangeable={"into": 1, "out": 0}, signed=True,
    )  # fmt: skip
    assert parameters.group.order == 48
    point = jr.normal(key, (10,))
    element = jax.tree.map(lambda x: x[0], parameters.group.sample(jr.key(3), 1))
    before, after = map(
        parameters.unflatten, (point, parameters.group.act(element, point))
    )
    products = lambda tree: np.sort(np.asarray(tree["into"][0] * tree["out"]))
    assert np.allclose(products(before), products(after))
    assert after["bias"] == before["bias"]


@pytest.mark.parametrize(
    ("constraint", "shape"),
    [
        (Real(), (3,)),
        (Positive(), (2, 2)),
        (Interval(-1.0, 3.0), (3,)),
        (Wrapped(2.0), (3,)),
    ],
)
def test_log_jacobians_are_those_of_the_map(constraint, shape, key):
    free = jr.normal(key, shape)
    matrix = jax.jacfwd(lambda u: constraint.forward(u.reshape(shape)).ravel())(
        free.ravel()
    )
    exact = np.linalg.slogdet(np.asarray(matrix))[1]
    assert np.isclose(constraint.log_jacobian(free), exact, rtol=1e-12)
    value = constraint.forward(free)
    assert bool(constraint.allows(value))
    assert np.allclose(constraint.forward(constraint.inverse(value)), value)


def test_the_log_jacobian_of_weights_is_that_of_weights_and_their_sum(key):
    free = jr.normal(key, (4,))

    def weights_and_sum(u):
        return jnp.append(jax.nn.softmax(u)[:-1], jnp.sum(jnp.exp(u)))

    volume = np.linalg.slogdet(np.asarray(jax.jacfwd(weights_and_sum)(free)))[1]
    total = jnp.sum(jnp.exp(free))
    gamma = jax.scipy.stats.gamma.logpdf(total, 4.0)
    assert np.isclose(Simplex().log_jacobian(free), volume + gamma, rtol=1e-12)
    two = jnp.stack([free, free])
    assert np.isclose(Simplex().log_jacobian(two), 2 * (volume + gamma), rtol=1e-12)


@pytest.mark.parametrize(("constant", "passes"), [(0.0, True), (0.05, False)])
def test_a_flat_density_of_weights_integrates_to_one(constant, passes):
    ticks = jnp.linspace(-14.0, 4.0, 301)
    pairs = jnp.stack(jnp.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    density = jnp.exp(jax.vmap(Simplex().log_jacobian)(pairs) + constant)
    assert (abs(float(jnp.sum(density)) * (18 / 300) ** 2 - 1) < 1e-4) == passes


def test_what_is_periodic_is_wrapped():
    parameters = mixture()
    tree = MIXTURE | {"phase": MIXTURE["phase"] + jnp.array(12.5)}
    point = parameters.flatten(tree)
    assert np.allclose(parameters.unflatten(point)["phase"], MIXTURE["phase"])
    assert np.allclose(parameters.wrap(point), parameters.example)
    assert Parameters({"x": 1.0}).periodic is None


def test_a_posterior_adds_the_volume(key):
    posterior = Posterior(
        lambda tree: jax.scipy.stats.gamma.logpdf(tree["x"], 2.5),
        Parameters({"x": 1.0}, positive=["x"]),
    )
    ticks = jnp.linspace(-12.0, 5.0, 2_001)[:, None]
    density = jnp.exp(jax.vmap(posterior.log_density)(ticks))
    assert abs(float(jnp.sum(density)) * 17 / 2_000 - 1) < 1e-6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"exchangeable": {"means": 0}}, "`exchangeable`"),
        ({"positive": ["scales"]}, "`positive`"),
        ({"positive": "scale"}, "`positive`"),
        ({"exchangeable": {"mean": 1}}, "axes of 'mean', whose shape is (3,), but"),
        ({"exchangeable": {"mean": 0, "phase": 1}}, "'mean' along 0 has 3, 'phase'"),
        ({"exchangeable": {"phase": 1}}, "at least 2 labels to swap"),
        ({"exchangeable": ["mean"]}, "`exchangeable`"),
        ({"periodic": {"phase": 0.0}}, "a period > 0 for 'phase', but got 0.0"),
        ({"periodic": {"phase": "x"}}, "a period > 0 for 'phase', but got 'x'"),
        ({"positive": ["scale", "phase"]}, "`periodic`"),
        ({"positive": ["mean"]}, "`example`"),
        ({"simplex": ["scale"], "positive": []}, "of 'scale' positive numbers whose"),
        ({"interval": {"share": (1.0, 0.0)}}, "two finite ends, the lower one first"),
        ({"interval": {"share": (0.5, 1.0)}}, "strictly inside the interval"),
        ({"interval": {"share": 1.0}}, "two ends for 'share', as (0, 1), but got 1.0"),
        ({"constraints": {"mean": 3}}, "a constraint for 'mean', as es.posteriors"),
        ({"signed": True}, "that are free along one axis, but 'weight'"),
        ({"signed": True, "exchangeable": {}}, "`exchangeable`"),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused(changes, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        mixture(**changes)


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ({"x": jnp.arange(3)}, "'x' is [0 1 2] of int64"),
        (
            {"x": jnp.array(jnp.nan)},
            "needs finite numbers with a point, at least one, but 'x'",
        ),
        ({"x": object()}, "needs an array for 'x', but got <object"),
        ({}, "`example`"),
        (jnp.zeros(3), "`example`"),
        ({1: jnp.zeros(2), "a": jnp.zeros(2)}, "`example` must be a tree of JAX"),
        ({"a/b": jnp.zeros(2), "a": {"b": 0.0}}, "two arrays of the name 'a/b'"),
    ],
)
def test_bad_examples_are_refused(example, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        Parameters(example)


def test_other_trees_and_points_are_refused(unchecked):
    parameters = Parameters({"x": jnp.zeros(3)})
    with pytest.raises(ValueError, match="must have the names of the example, x"):
        parameters.flatten({"y": jnp.zeros(3)})
    with pytest.raises(ValueError, match="must have shape \\(3,\\) for 'x'"):
        parameters.flatten({"x": jnp.zeros(2)})
    with pytest.raises(
        ValueError, match="must have shape \\(3,\\), but got \\(2, 3\\)"
    ):
        parameters.unflatten(jnp.zeros((2, 3)))
