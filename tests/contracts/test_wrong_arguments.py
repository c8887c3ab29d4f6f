"""Whatever a public function is given: an error of ours that names it, or an answer."""

import importlib
import inspect
import pathlib
import traceback
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from call_registry import CALLS
from hypothesis import given, HealthCheck, settings, strategies
from untried import UNTRIED

import equistein as es

SOURCE = pathlib.Path(es.__file__).parent
GATHERED = ("objectives", "negatives")  # from other packages
PLACES = [(name, argument) for name in CALLS for argument in CALLS[name][1]]

NUMBERS = strategies.one_of(
    strategies.integers(-3, 3), strategies.floats(), strategies.booleans(),
    strategies.sampled_from([10**13, 2**31, 1e300, np.int64(-1), np.float32(np.nan)]),
)  # fmt: skip
SHAPES = strategies.lists(strategies.sampled_from([0, 1, 2, 3, 6]), max_size=4)


@strategies.composite
def arrays(draw):
    dtype = draw(strategies.sampled_from([float, int, bool]))
    array = np.ones(draw(SHAPES), dtype)
    fill = draw(strategies.sampled_from([1.0, -1.0, np.nan, np.inf, 1e30]))
    if dtype is float:
        array = array * fill
    return jnp.asarray(array)


WRONG = strategies.one_of(
    strategies.none(), strategies.text(max_size=4), NUMBERS, arrays(),
    strategies.lists(NUMBERS, max_size=3), strategies.just({"a": 1}),
    strategies.sampled_from(
        [object(), np.array(["a", "b"]), es.groups.Cyclic, es.groups.Cyclic(5),
         lambda: 1, es.kernels.RBF(1.0)]
    ),
)  # fmt: skip


def raised_by_us(error):
    """Whether an error is one that the package raises itself."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return pathlib.Path(last.filename).is_relative_to(SOURCE) and (
        last.line.startswith("raise") or not isinstance(error, ValueError | TypeError)
    )


def is_a_number(result):
    """Whether no number of a result is NaN, which would say nothing."""
    for leaf in jax.tree.leaves(result):
        if isinstance(leaf, jax.Array | np.ndarray) and leaf.dtype.kind == "f":
            if np.any(np.isnan(np.asarray(leaf))):
                return False
    return True


def verdict(function, arguments, argument, value):
    """Return what a call with one wrong argument comes to, None if all is well."""
    try:
        result = function(**arguments | {argument: value})
    except (es.NonFiniteError, es.EvaluationFailed):
        return None
    except Exception as error:
        if isinstance(error, ValueError) and raised_by_us(error):
            return None
        return f"{type(error).__name__}: {error}"
    given = arguments | {argument: value}
    if is_a_number(result) or not is_a_number(given):  # a prediction of NaN may be
        return None
    return "the answer is NaN"


def tried(place, value):
    name, argument = place
    function, arguments = CALLS[name]
    found = verdict(function, arguments, argument, value)
    assert found is None, f"{name}({argument}={value!r}): {found}"


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", CALLS)
def test_a_right_call_is_answered(name):
    function, arguments = CALLS[name]
    assert is_a_number(function(**arguments))


FEW = settings(
    max_examples=250, derandomize=True, deadline=None, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("unchecked")
@FEW
@given(place=strategies.sampled_from(PLACES), value=WRONG)
def test_a_wrong_argument_is_named_or_answered(place, value):
    tried(place, value)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("unchecked")
def test_of_five_thousand_wrong_arguments_one_in_a_hundred_at_most_is_raw():
    raw = []

    @settings(FEW, max_examples=5_000)
    @given(place=strategies.sampled_from(PLACES), value=WRONG)
    def try_one(place, value):
        name, argument = place
        found = verdict(*CALLS[name], argument, value)
        if found is not None:
            raw.append(f"{name}({argument}={value!r}): {found}")

    try_one()
    assert len(raw) <= 50, "\n".join(raw)


def test_a_raw_error_and_an_answer_that_is_nan_are_found():
    """The broken twins."""

    def careless(x):
        return jnp.sqrt(x + 0.0)

    assert "TypeError" in verdict(careless, {"x": 1.0}, "x", "much")
    assert verdict(careless, {"x": 1.0}, "x", -1.0) == "the answer is NaN"
    assert verdict(careless, {"x": 1.0}, "x", 4.0) is None


@pytest.mark.parametrize("package", UNTRIED)
def test_every_public_name_is_called(package):
    """A new part is tried, or said why not; and what is tried is not said to be not."""
    owner = importlib.import_module(f"equistein.{package}")
    called = {name.rpartition(".")[2] for name in CALLS}
    names = set()
    for name in dir(owner):
        public = getattr(owner, name)
        if name.startswith(("_", "Abstract")) or isinstance(public, types.ModuleType):
            continue
        module = getattr(public, "__module__", None) or ""
        is_error = inspect.isclass(public) and issubclass(public, Exception)
        home = "equistein" if package in GATHERED else f"equistein.{package}"
        ours = module.startswith(home) and callable(public)
        if ours and not is_error:
            names.add(name)
    said = set().union(*UNTRIED[package].values())
    assert names - called == said & names - called
    assert said & called == set()
