"""What every objective, negatives, generator and start does."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from registries import classes_of, some_slow
from training_registry import (
    arrays,
    batch_of,
    GENERATORS,
    GROUPS,
    NEGATIVES,
    OBJECTIVES,
    plain,
    SHAPE,
    STARTS,
)

import equistein as es
from equistein.energies import freeze
from equistein.models._model import OneHanded
from equistein.training import (
    AbstractGenerator,
    AbstractInitial,
    AbstractNegatives,
    AbstractObjective,
)

ALL = "equistein."
every_objective = pytest.mark.parametrize(
    ("make", "energy", "labels"), OBJECTIVES.values(), ids=OBJECTIVES.keys()
)
every_negatives = pytest.mark.parametrize(
    "make", NEGATIVES.values(), ids=NEGATIVES.keys()
)
every_generator = pytest.mark.parametrize(
    ("make", "energy", "conditions"), GENERATORS.values(), ids=GENERATORS.keys()
)
every_generator_costly_ones_slow = pytest.mark.parametrize(
    ("make", "energy", "conditions"),
    some_slow(GENERATORS, ["sampler of classes"]),
)
every_start = pytest.mark.parametrize("make", STARTS.values(), ids=STARTS.keys())
every_group = pytest.mark.parametrize("group", some_slow(GROUPS, ["cloud"]))


def test_every_part_of_the_library_is_tried():
    def kinds(rows):
        return {type(row[0]() if isinstance(row, tuple) else row()) for row in rows}

    assert kinds(OBJECTIVES.values()) == classes_of(AbstractObjective, ALL)
    assert kinds(NEGATIVES.values()) == classes_of(AbstractNegatives, ALL)
    generators = classes_of(AbstractGenerator, ALL) - {OneHanded}  # of molecules
    assert kinds(GENERATORS.values()) == generators
    starts = {type(make(GROUPS["none"])) for make in STARTS.values()}
    assert starts == classes_of(AbstractInitial, ALL)


# ------------------------------------------------------------ objectives


@eqx.filter_jit
def gradients(key, objective, energy, state, batch):
    points, labels, rows = batch

    @eqx.filter_value_and_grad(has_aux=True)
    def loss(energy):
        value, after, info = objective.loss(
            key, energy, state, es.training.Batch(points, labels, rows)
        )
        return value, (after, info)

    return loss(energy)


def tried(key, objective, energy, labels, dtype=None):
    """Return value, gradient, state before and after, and info of a batch."""
    batch = batch_of(labels, dtype)
    state = objective.init(key, energy, batch)
    parts = (batch.points, batch.labels, batch.rows)
    (value, (after, info)), gradient = gradients(key, objective, energy, state, parts)
    return value, gradient, state, after, info


def shapes(tree):
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), arrays(tree))


@every_objective
def test_a_loss_is_a_number_with_a_finite_gradient(make, energy, labels, key):
    objective, energy = make(), energy()
    value, gradient, before, after, info = tried(key, objective, energy, labels)
    assert value.shape == ()
    assert np.isfinite(value)
    leaves = jax.tree.leaves(arrays(gradient))
    assert all(np.all(np.isfinite(leaf)) for leaf in leaves)
    assert max(np.max(np.abs(leaf)) for leaf in leaves) > 0
    # The state keeps its form, so that an epoch is one loop; numbers are scalars.
    assert shapes(before) == shapes(after)
    assert jax.tree.structure(before) == jax.tree.structure(after)
    assert info
    assert all(jnp.shape(number) == () for number in info.values())
    # The same key, the same loss.
    again = tried(key, objective, energy, labels)
    assert again[0] == value
    assert objective.uses_labels or labels is None


@pytest.mark.parametrize(
    ("make", "energy", "labels"),
    [OBJECTIVES["contrastive divergence"], OBJECTIVES["all levels"]],
)
def test_objectives_scale(make, energy, labels, key):
    objective, energy = make(), energy()
    half = 0.5 * objective
    both = objective + half
    assert (0.5 * both).terms == tuple((0.5 * w, part) for w, part in both.terms)
    value, gradient, _, _, info = tried(key, half, energy, labels)
    alone, slope, _, _, found = tried(jr.split(key, 1)[0], objective, energy, labels)
    assert np.isclose(value, 0.5 * alone)
    assert set(info) == set(found)
    pairs = zip(*map(jax.tree.leaves, map(arrays, (gradient, slope))), strict=True)
    assert all(np.allclose(one, 0.5 * other, atol=1e-12) for one, other in pairs)


@every_objective
def test_a_loss_has_the_precision_of_the_data(make, energy, labels, key):
    with jax.enable_x64(False):
        if labels is not None:
            kind = np.float32 if labels.dtype == np.float64 else np.int32
            labels = jnp.asarray(np.asarray(labels).astype(kind))
        value, *_ = tried(key, make(), energy(), labels, jnp.float32)
        assert value.dtype == jnp.float32
        assert np.isfinite(value)


# ------------------------------------------------------------ negatives


@pytest.mark.parametrize("make", some_slow(NEGATIVES, ["reweighted", "buffer"]))
def test_negatives_are_drawn_by_the_key_alone(make, key):
    negatives, energy, batch = make(), plain(), batch_of()
    state = negatives.init(key, energy, batch)
    before = shapes(state)

    @eqx.filter_jit
    def draw(key, energy, state, batch=batch):
        return negatives.draw(key, freeze(energy), state, batch)

    drawn, after, info = draw(key, energy, state)
    assert drawn.shape[1:] == SHAPE
    assert np.all(np.isfinite(drawn))
    assert shapes(after) == before
    assert jax.tree.structure(after) == jax.tree.structure(state)
    assert all(jnp.shape(number) == () for number in info.values())
    again = draw(key, energy, state)
    assert np.array_equal(again[0], drawn)
    other = draw(jr.fold_in(key, 1), energy, state)
    assert not np.array_equal(other[0], drawn)
    further, _, _ = draw(key, energy, after)
    has_state = bool(jax.tree.leaves(after))
    assert np.array_equal(further, drawn) != has_state
    other = es.training.Batch(batch.points, None, batch.rows, 0.5)
    smaller, _, _ = draw(key, energy, state, other)
    assert not np.array_equal(smaller, drawn)


@every_negatives
def test_no_gradient_flows_through_negatives(make, key):
    negatives, batch = make(), batch_of()
    state = negatives.init(key, plain(), batch)

    @eqx.filter_jit
    @eqx.filter_grad
    def slopes(energy):
        drawn, _, _ = negatives.draw(key, freeze(energy), state, batch_of())
        return jnp.sum(drawn**2)

    assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(slopes(plain())))


# ------------------------------------------------------------ generators


@every_generator_costly_ones_slow
def test_a_generator_draws_as_many_as_it_is_asked_for(make, energy, conditions, key):
    generator, energy = make(), energy()
    drawn = {}
    for condition in conditions:
        found = generator.sample(key, energy, 4, condition)  # more than at once
        assert found.shape[0] == 4
        assert found.dtype == jnp.float64
        assert np.all(np.isfinite(found))
        assert len(np.unique(found.reshape(4, -1), axis=0)) == 4
        assert np.array_equal(found, generator.sample(key, energy, 4, condition))
        drawn[condition] = found
    other = generator.sample(jr.fold_in(key, 1), energy, 4, conditions[0])
    assert not np.array_equal(other, drawn[conditions[0]])
    if conditions == [None, 0, 1]:
        assert not np.array_equal(drawn[0], drawn[1])
    smaller = generator.scale_steps(jnp.asarray(0.25)).sample(
        key, energy, 4, conditions[0]
    )
    assert not np.array_equal(smaller, drawn[conditions[0]])


@every_generator
def test_a_generator_refuses_conditions_that_are_none(
    make, energy, conditions, key, unchecked
):
    generator, energy = make(), energy()
    wrong = [0] if conditions == [None] else [-1, 2, 1.0, True, "a"]
    for condition in wrong:
        with pytest.raises(ValueError, match="`label`"):
            generator.sample(key, energy, 2, condition)
    if None not in conditions:
        with pytest.raises(ValueError, match="`label`"):
            generator.sample(key, energy, 2)
    for num in (0, 2.0, True):
        with pytest.raises(ValueError, match="`num`"):
            generator.sample(key, energy, num, conditions[0])


@every_generator_costly_ones_slow
def test_a_generator_draws_in_single_precision(make, energy, conditions, key):
    with jax.enable_x64(False):
        found = make().sample(key, energy(), 2, conditions[-1])
        assert found.dtype == jnp.float32
        assert np.all(np.isfinite(found))


# ------------------------------------------------------------ starts


@every_start
@every_group
def test_a_start_is_a_law_on_the_subspace(make, group, key):
    start = make(group)
    found = start.sample(key, 50)
    assert found.shape == (50, *SHAPE)
    assert np.all(np.isfinite(found))
    assert np.allclose(jax.jit(jax.vmap(group.project))(found), found, atol=1e-12)
    assert np.array_equal(start.sample(key, 50), found)
    assert not np.array_equal(start.sample(jr.fold_in(key, 1), 50), found)
    assert start.group == group
    assert start.center.shape == SHAPE
    assert start.reach > 0
    assert start.sample(key, 2, 0).shape == (2, *SHAPE)
