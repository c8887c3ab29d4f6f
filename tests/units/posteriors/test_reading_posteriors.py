"""Draws relabelled, for ArviZ, and as a picture."""

import itertools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import equistein as es
from equistein.posteriors import plot, PosteriorSamples


def made(parameters, centers, key, noise=0.1):
    """Draws around one point, each with labels in a random order."""
    posterior = es.Posterior(lambda tree: 0.0, parameters)
    move_key, noise_key = jr.split(key)
    points = centers[None] + noise * jr.normal(noise_key, (400, parameters.dim))
    elements = parameters.group.sample(move_key, 400)
    points = jax.vmap(parameters.group.act)(elements, points).reshape(4, 100, -1)
    lp = -jnp.sum((points.reshape(400, -1) - centers[None]) ** 2, axis=1)
    nan = float("nan")
    samples = es.Samples(points[0], {}, 0, False, None)
    return PosteriorSamples(points, lp.reshape(4, 100), nan, nan, 1, samples, posterior)


MIXTURE = es.Parameters(
    {"mean": jnp.zeros(3), "move": jnp.zeros((3, 3)), "phase": jnp.zeros(3),
     "noise": jnp.zeros(2)},
    exchangeable={"mean": 0, "move": (0, 1), "phase": 0}, periodic={"phase": 1.0},
)  # fmt: skip
TREE = {
    "mean": jnp.array([-3.0, 0.0, 3.0]), "move": 3.0 * jnp.eye(3),
    "phase": jnp.array([0.0, 0.5, 0.97]), "noise": jnp.zeros(2),
}  # fmt: skip


@pytest.fixture
def samples(key):
    return made(MIXTURE, MIXTURE.flatten(TREE), key)


@pytest.mark.slow
def test_relabelled_draws_are_near_the_reference(samples):
    readable = es.relabel(samples)
    assert np.asarray(samples.named["mean"]).std(axis=(0, 1)).min() > 2
    means = readable.mean("mean")  # of which no warning comes
    # By default labels are in the order of their first number.
    assert np.allclose(means, TREE["mean"], atol=5 * 0.1 / 400**0.5)
    assert np.asarray(readable.named["mean"]).std(axis=(0, 1)).max() < 0.12
    assert np.allclose(jnp.mean(readable.named["move"], axis=(0, 1)), TREE["move"],
                       atol=0.03)  # fmt: skip
    for name, values in readable.invariants().items():
        assert np.allclose(values, samples.invariants()[name], atol=1e-12), name


@pytest.mark.slow
def test_many_labels_are_assigned_as_trying_all_would(key):
    """Signs too: 7 labels have 645 120 elements, which are not enumerated."""
    parameters = es.Parameters(
        {"into": jnp.zeros((2, 7)), "out": jnp.zeros(7)},
        exchangeable={"into": 1, "out": 0}, signed=True,
    )  # fmt: skip
    samples = made(parameters, 3 * jr.normal(jr.key(5), (parameters.dim,)), key)
    readable = es.relabel(samples)
    center = jnp.mean(readable.points, axis=(0, 1))
    spread = np.asarray(readable.points - center[None, None]).std()
    assert abs(spread - 0.1) < 5 * 0.1 / (2 * 400 * 21) ** 0.5
    # The least cost of a draw by trying all orders, and the signs of each pair.
    first = parameters.unflatten(samples.points[0, 0])
    rows = np.vstack([first["into"], first["out"]]).T
    goal = parameters.unflatten(center)
    goals = np.vstack([goal["into"], goal["out"]]).T
    table = np.min(
        [((goals[:, None] - s * rows[None]) ** 2).sum(-1) for s in (1, -1)], axis=0
    )
    best = min(table[range(7), list(p)].sum() for p in itertools.permutations(range(7)))
    assert np.isclose(np.sum((readable.points[0, 0] - center) ** 2), best)


def test_arviz_gets_what_does_not_depend_on_labels(samples):
    tree = es.to_arviz(samples)
    assert set(tree.children) == {"posterior", "sample_stats", "relabelled"}
    assert set(tree["posterior"].data_vars) == {
        "mean (sorted)", "move (diagonal, sorted)", "phase (cos) (sorted)",
        "phase (sin) (sorted)", "noise",
    }  # fmt: skip
    assert tree["posterior"].sizes["chain"] == 4
    assert set(tree["relabelled"].data_vars) == {"mean", "move", "phase"}
    assert np.array_equal(tree["sample_stats"]["lp"], samples.log_density)
    assert np.isnan(tree.attrs["log_evidence"])


def test_the_picture_has_relabelled_beside_invariant_marginals(samples):
    figure = plot(samples)
    titles = [panel.get_xlabel() for panel in figure.axes]
    assert titles[:2] == ["mean, relabelled", "mean, sorted"]
    assert titles[-2] == "noise"


def test_without_labels_nothing_is_relabelled(key, unchecked):
    parameters = es.Parameters({"x": jnp.zeros(2)})
    samples = made(parameters, jnp.zeros(2), key)
    assert es.relabel(samples) is samples
    assert set(es.to_arviz(samples).children) == {"posterior", "sample_stats"}
    with pytest.raises(ValueError, match="`samples`"):
        es.relabel(samples.samples)


def test_the_summary_has_means_and_errors_of_what_labels_do_not_change(samples):
    found = samples.summary()
    assert set(found) == set(samples.invariants())
    mean = found["mean (sorted)"]
    assert np.allclose(mean["mean"], TREE["mean"], atol=5 * mean["error"].max())
    assert np.allclose(mean["error"], 0.1 / 400**0.5, rtol=0.3)
    assert np.all(mean["r_hat"] < 1.05)
