"""What is outside the domain of a part is refused by name, never answered."""

import re

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from call_registry import CALLS, JOINT, LABELS, X
from group_registry import every_group
from test_features import every_map
from test_targets import every_target
from test_wrong_arguments import is_a_number, raised_by_us

import equistein as es

SHAPES = [(2,), (4,), (7,), (2, 2), (4, 2), (4, 3), (13, 3), (4, 5, 1), (2, 2, 2)]
METRICS = {
    name.removeprefix("es.metrics."): call
    for name, call in CALLS.items()
    if name.startswith("es.metrics.")
}
LABELED = [name for name, (_, given) in METRICS.items() if "labels" in given]
HOST = {  # whose answer depends on numbers that are not known while traced
    "annealed_importance_sampling", "free_energy", "geometric_wasserstein", "reweight",
    "radial_distribution", "summarize_chains",
}  # fmt: skip
OF_NUMBERS = [
    (name, argument)
    for name, (_, given) in METRICS.items()
    for argument, value in given.items()
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jnp.floating)
]


def fault(call, named):
    """Return how a call that should be refused with a name is not; None if it is."""
    try:
        result = call()
    except Exception as error:
        ours = isinstance(error, ValueError) and raised_by_us(error)
        if ours and re.search(named, str(error)):
            return None
        return f"{type(error).__name__}: {error}"
    return f"it gave {result!r}"


def is_refused(call):
    try:
        call()
    except ValueError:
        return True
    return False


def at_shape(function, shape):
    """Call a function of a point of a shape while it is traced: nothing is computed."""
    return jax.eval_shape(function, jax.ShapeDtypeStruct(shape, float))


def shape_faults(function, shapes):
    """Return the shapes that a function does not refuse, with what it does instead."""
    found = {s: fault(lambda s=s: at_shape(function, s), "point") for s in shapes}
    return {shape: told for shape, told in found.items() if told is not None}


@pytest.mark.usefixtures("unchecked")
@every_target
def test_a_target_takes_points_of_its_shape_alone(target, shape):
    assert target.shape == shape
    others = [other for other in SHAPES if other != shape]
    assert shape_faults(target.log_density, others) == {}
    assert at_shape(target.log_density, shape).shape == ()
    for point in ("point", [0.0] * 4, None, np.zeros(shape, int)):
        assert fault(lambda point=point: target.log_density(point), "`point`") is None


@pytest.mark.usefixtures("unchecked")
@every_map
def test_a_feature_map_takes_points_that_its_group_acts_on(features, shape, num, group):
    wrong = [s for s in SHAPES if is_refused(lambda s=s: features.group(s))]
    assert shape not in wrong
    assert wrong or isinstance(features, es.features.Coordinates)
    assert at_shape(features, shape).shape == (num,)
    for function in (features, features.laplacian):
        assert shape_faults(function, wrong) == {}


@pytest.mark.usefixtures("unchecked")
@every_group
def test_a_group_acts_on_points_of_its_shapes_alone(make, shape):
    group = make()
    wrong = [s for s in SHAPES if is_refused(lambda s=s: group.check_shape(s))]
    assert shape not in wrong
    assert wrong or isinstance(group, es.groups.Trivial)
    first = lambda key: jax.tree.map(lambda leaf: leaf[0], group.sample(key, 1))
    element = jax.eval_shape(first, jr.key(0))
    act = lambda point: jax.eval_shape(group.act, element, point)
    for function in (act, group.canonicalize, group.project):
        assert shape_faults(function, wrong) == {}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "label", [-1, 3, 99, np.int64(3), 1.5, True, "a", None], ids=repr
)
def test_a_class_that_an_energy_lacks_is_refused(label):
    for call in (
        lambda: JOINT.condition(label),
        lambda: JOINT.joint_energy(X[0], label),
        lambda: es.energies.ConditionalEnergy(JOINT, label),
    ):
        assert fault(call, "`label`") is None


def test_a_class_that_is_traced_and_lacking_is_nan():
    found = jax.jit(jax.vmap(JOINT.joint_energy, (None, 0)))(X[0], jnp.arange(-1, 5))
    assert np.array_equal(np.isnan(found), [True, False, False, False, True, True])
    expected = [JOINT.joint_energy(X[0], label) for label in range(3)]
    assert np.allclose(found[1:4], np.array(expected))


@pytest.mark.parametrize("name", LABELED)
@pytest.mark.parametrize("label", [7, -2, -1])
def test_a_metric_refuses_labels_that_are_no_class(name, label):
    if (name, label) == ("typicality", -1):
        return  # stands for unknown
    metric, given = METRICS[name]
    given = given | {"labels": LABELS.at[3].set(label)}
    assert fault(lambda: metric(**given), "`labels`, classes from 0 to 2") is None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "argument"), OF_NUMBERS)
def test_a_metric_refuses_nan(name, argument):
    metric, given = METRICS[name]
    given = given | {argument: with_nan(given[argument])}
    assert fault(lambda: metric(**given), f"`{argument}`") is None


@pytest.mark.parametrize(
    ("name", "argument"), [place for place in OF_NUMBERS if place[0] not in HOST]
)
def test_a_compiled_metric_equals_eager_and_is_nan_of_nan(name, argument):
    assert is_nan_of_nan(*METRICS[name], argument)


@pytest.mark.parametrize("name", sorted({*LABELED} - {"typicality"}))
def test_a_metric_of_a_traced_label_that_is_no_class_is_nan(name):
    metric, given = METRICS[name]
    labels = LABELS.at[3].set(3)
    found = jax.jit(lambda labels: metric(**given | {"labels": labels}))(labels)
    assert not is_a_number(found)


def with_nan(values):
    return values.at[(0,) * values.ndim].set(jnp.nan)


def is_nan_of_nan(metric, given, argument):
    """Whether a compiled metric gives what it is for numbers, and NaN for NaN."""
    compiled = jax.jit(lambda value: metric(**given | {argument: value}))
    good, bad = given[argument], with_nan(given[argument])
    pairs = zip(
        jax.tree.leaves(compiled(good)), jax.tree.leaves(metric(**given)), strict=True
    )
    return all(np.allclose(*pair) for pair in pairs) and not is_a_number(compiled(bad))
