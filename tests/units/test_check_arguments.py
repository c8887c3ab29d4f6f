"""Checks of arguments: what passes, what does not, and in which words."""

from collections.abc import Callable, Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float, Int

from equistein._check_arguments import check_arguments, check_finite_arguments
from equistein.groups import AbstractGroup, Cyclic

pytestmark = pytest.mark.usefixtures("unchecked")


@check_arguments
def everything(
    x: Float[Array, "n dim"],
    labels: Int[Array, " n"] | None = None,
    number: float = 1.0,
    count: int = 1,
    names: Sequence[str] = (),
    pair: tuple[float, float] = (0.0, 1.0),
    mode: Literal["a", "b"] = "a",
    function: Callable[[float], float] = abs,
    flag: bool = False,
):
    return x.shape


X = jnp.zeros((3, 2))


@pytest.mark.parametrize(
    "options",
    [
        {"labels": jnp.zeros(3, int)}, {"labels": None}, {"number": np.float32(2)},
        {"number": 3}, {"number": jnp.zeros(())}, {"count": np.int64(4)},
        {"names": ["a", "b"]}, {"pair": (1, 2)}, {"mode": "b"}, {"flag": np.True_},
        {"function": lambda x, y=1: x}, {"x": np.zeros((1, 9))},
    ],
)  # fmt: skip
def test_what_an_annotation_says_passes(options):
    assert everything(**{"x": X} | options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"x": jnp.zeros(3)},
            r"`x`, an array of numbers \(n, dim\), but got an array ",
        ),
        ({"x": jnp.zeros((3, 2), int)}, "`x`, an array of numbers"),
        ({"x": np.ma.masked_equal(np.eye(2), 1)}, "`x` without masked numbers"),
        (
            {"labels": jnp.zeros(4, int)},
            r"`labels`, .* \(n\) or None, but .* with `x` of shape \(3, 2\)",
        ),
        ({"labels": jnp.zeros(3)}, "`labels`, an array of integers"),
        ({"number": "much"}, "`number`, a number, but got 'much'"),
        ({"number": True}, "`number`"),
        ({"count": 1.0}, "`count`, an integer, but got 1.0"),
        ({"count": 10**13}, "`count` of at most 1e\\+09, but got 10000000000000"),
        ({"names": [1]}, "`names`"),
        ({"pair": (1.0,)}, "`pair`"),
        ({"mode": "c"}, "`mode`"),
        ({"function": 1}, "`function`"),
        ({"flag": 1}, "`flag`, True or False, but got 1"),
    ],
)
def test_anything_else_is_named(options, told):
    with pytest.raises(ValueError, match=told):
        everything(**{"x": X} | options)


def test_numbers_that_are_traced_are_not_looked_at():
    @check_finite_arguments
    def average(x: Float[Array, " n"]):
        return jnp.mean(x)

    assert np.isnan(jax.jit(average)(jnp.array([jnp.nan])))
    with pytest.raises(ValueError, match="`x`"):
        average(jnp.array([jnp.nan, 1.0]))
    with pytest.raises(ValueError, match="`x`"):
        average(jnp.zeros(0))


def test_a_class_checks_its_fields():
    @check_arguments
    class Part(eqx.Module):
        group: AbstractGroup
        size: float = eqx.field(default=1.0, converter=float)

    assert Part(Cyclic(4), 2).size == 2.0
    with pytest.raises(ValueError, match="`group`"):
        Part("c4")
    with pytest.raises(ValueError, match="`size`"):
        Part(Cyclic(4), "much")
