"""The algebraic expressions of OpenMM's custom forces, evaluated by JAX."""

import ast
import functools
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

_TOKEN = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[A-Za-z_]\w*")
_OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.Pow: operator.pow,
}  # fmt: skip


def _of_positive(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose slope is 0, not NaN, where its argument is not positive.

    `select` discards its value there, but would not discard a slope of NaN.
    """

    def safe(x):
        inside = function(jnp.where(x > 0, x, 1.0))
        return jnp.where(x > 0, inside, jax.lax.stop_gradient(function(x)))

    return safe


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": _of_positive(jnp.sqrt), "log": _of_positive(jnp.log), "exp": jnp.exp,
    "sin": jnp.sin, "cos": jnp.cos, "tan": jnp.tan, "asin": jnp.arcsin,
    "acos": jnp.arccos, "atan": jnp.arctan, "atan2": jnp.arctan2, "sinh": jnp.sinh,
    "cosh": jnp.cosh, "tanh": jnp.tanh, "erf": jax.scipy.special.erf,
    "erfc": jax.scipy.special.erfc, "abs": jnp.abs, "min": jnp.minimum,
    "max": jnp.maximum, "square": lambda x: x**2, "cube": lambda x: x**3,
    "recip": lambda x: 1 / x, "step": lambda x: jnp.where(x >= 0, 1.0, 0.0),
    "delta": lambda x: jnp.where(x == 0, 1.0, 0.0),
    "select": lambda choice, yes, no: jnp.where(choice != 0, yes, no),
}  # fmt: skip


def evaluate(
    text: str, variables: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]
) -> Any:
    """Return the value of `expression; name = expression; ...`.

    Args:
        text: The expression; the names after it are defined for it and one another.
        variables: The values of other names.
        functions: Functions beside those that OpenMM knows.
    """
    first, *others = [part for part in text.split(";") if part.strip()]
    definitions = dict(part.split("=", 1) for part in others)
    definitions = {name.strip(): part for name, part in definitions.items()}
    known = {**_FUNCTIONS, **functions}

    @functools.cache
    def named(name: str) -> Any:
        if name in definitions:
            return value(_parse(definitions[name]))
        if name not in variables:
            raise ValueError(f"the name {name!r} in the expression {text!r} is unknown")
        return variables[name]

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=name):
                return named(name[1:])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(left), value(right))
            case ast.Call(func=ast.Name(id=name), args=args) if name[1:] in known:
                return known[name[1:]](*map(value, args))
        part = re.sub(r"\b_", "", ast.unparse(node))
        raise ValueError(f"{part!r} in the expression {text!r} is not understood")

    return value(_parse(first))


@functools.cache
def _parse(text: str) -> ast.expr:
    # Some names, such as `or`, are keywords of Python's: all get an underscore.
    rename = lambda token: token[0] if token[0][0] in ".0123456789" else "_" + token[0]
    source = _TOKEN.sub(rename, text).replace("^", "**").strip()
    try:
        return ast.parse(source, mode="eval").body
    except SyntaxError:
        raise ValueError(f"{text!r} is no expression") from None
