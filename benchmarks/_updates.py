"""One update of SVGD from a thousand particles on, beside its peers."""

import importlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array

from benchmarks._blocks import force_by_hand
from benchmarks._page import show
from benchmarks._rates import product_rate
from benchmarks._timing import (
    Compiled,
    compiled,
    Contestant,
    exponent,
    interleaved,
    is_installed,
)
from equistein.groups import Cyclic, ImageRotations
from equistein.kernels import AbstractKernel, Equivariant, RBF
from equistein.plotting import curves
from equistein.samplers import SVGD

_NUMBERS = (1_000, 4_000, 16_000, 64_000, 100_000)
_SHAPES = ((2,), (8, 8), (28, 28))
_LARGE = 4_000  # the exponent is fitted from here on
_TOO_LONG = 25.0  # seconds that the next update may take
_TOO_LARGE = 6e9  # bytes that it may
_STEP = 1e-3


def updates() -> None:
    """Print and draw the time, the memory and the exponent of one update."""
    rate = product_rate()
    for shape in _SHAPES:
        dim = int(np.prod(shape))
        print(
            f"\nOne update of SVGD, d = {dim}: seconds, and MiB beside the particles;"
        )
        print("then the exponent of the time from n = 4 000 on, and the seconds that")
        print("compiling takes, apart from the others: the longest of the row")
        numbers = "".join(f"{num:>18}" for num in _NUMBERS)
        print(f"{'':<22}{numbers}{'exponent':>10}{'compiling':>11}")
        table = {"a product's rate": _row()} | _measured(shape)
        table["a product's rate"]["seconds"] = np.array(
            [num**2 * (4 * dim + 2) / rate for num in _NUMBERS]
        )
        for name, row in table.items():
            cells = "".join(map(_cell, row["seconds"], row["MiB"]))
            power = exponent(_NUMBERS, row["seconds"], _LARGE)
            known = row["compiling"][np.isfinite(row["compiling"])]
            took = f"{known.max():>11.2f}" if len(known) else f"{'-':>11}"
            print(f"{name:<22}{cells}{power:>10.2f}{took}", flush=True)
        for what, file in (("seconds", "update"), ("MiB", "memory")):
            lines = {
                name: (np.array(_NUMBERS), row[what][None])
                for name, row in table.items()
                if np.any(row[what] > 0)
            }
            figure = curves(
                lines, f"{what} of an update, d = {dim}", x_label="particles",
                log_x=True, log_y=True,
            )  # fmt: skip
            show(f"{file}-{dim}", figure)


def _row() -> dict[str, np.ndarray]:
    """Return a row of the table in which nothing is known yet."""
    nothing = np.full(len(_NUMBERS), np.nan)
    return {what: nothing.copy() for what in ("seconds", "MiB", "compiling")}


def _measured(shape: tuple[int, ...]) -> dict[str, dict[str, np.ndarray]]:
    """Return the row of each contestant."""
    makers = _makers(shape)
    rows = {name: _row() for name in makers}
    left = dict(makers)
    for place, num in enumerate(_NUMBERS):
        x, contestants = jr.normal(jr.key(num), (num, *shape)), {}
        for name, make in left.items():
            made = make(x)
            rows[name]["MiB"][place] = made.memory / 2**20
            rows[name]["compiling"][place] = made.compiling
            if not made.memory > _TOO_LARGE:
                repeats = 5 if place < 2 else 1
                contestants[name] = Contestant(made.run, repeats=repeats)
        for name, found in interleaved(contestants).items():
            rows[name]["seconds"][place] = found.median
        grown = (_NUMBERS[min(place + 1, len(_NUMBERS) - 1)] / num) ** 2
        left = {
            name: make for name, make in left.items()
            if rows[name]["seconds"][place] * grown < _TOO_LONG
        }  # fmt: skip
    return rows


def _makers(shape: tuple[int, ...]) -> dict[str, Callable[[Array], Compiled]]:
    """Return what makes each contestant's update for some particles."""
    group = Cyclic(4) if len(shape) == 1 else ImageRotations()
    found = {
        "blocks by hand": _by_hand,
        "equistein, RBF": update_of(RBF(1.0)),
        "equistein, C4": update_of(Equivariant(RBF(1.0), group)),
    }
    if is_installed("blackjax", "BlackJAX"):
        found["BlackJAX"] = _blackjax
    if is_installed("numpyro", "NumPyro"):
        found["NumPyro, its median"] = _numpyro
    if is_installed("torch", "PyTorch"):
        found["PyTorch, dense"] = _torch
    return found


def _log_density(x: Array) -> Array:
    return -0.5 * jnp.sum(x**2)


def _by_hand(x: Array) -> Compiled:
    side = next(side for side in (1_000, 500, 250) if not len(x) % side)
    rows = x.reshape(len(x), -1)
    return compiled(lambda rows: rows + _STEP * force_by_hand(rows, side), rows)


def update_of(kernel: AbstractKernel) -> Callable[[Array], Compiled]:
    """Return what compiles an update of SVGD on a normal density."""
    sampler = SVGD(kernel, optax.sgd(_STEP))
    step = lambda state: sampler.step(jr.key(0), state, _log_density)[0]
    return lambda x: compiled(step, sampler.init(x, _log_density))


def _blackjax(x: Array) -> Compiled:
    import blackjax

    algorithm = blackjax.svgd(
        jax.grad(_log_density), optax.sgd(_STEP),
        update_kernel_parameters=lambda state: state,  # a fixed bandwidth, as ours
    )  # fmt: skip
    # Its length scale is that of exp(-|x - y|^2 / l).
    parameters: Any = {"length_scale": 2.0}
    return compiled(algorithm.step, algorithm.init(x, parameters))


def _numpyro(x: Array) -> Compiled:
    import numpyro
    from numpyro import distributions
    from numpyro.contrib.einstein import RBFKernel, SteinVI
    from numpyro.infer.autoguide import AutoDelta

    def model():
        law = distributions.Normal(0.0, 1.0).expand(x.shape[1:]).to_event(x.ndim - 1)
        numpyro.sample("x", law)

    flow = SteinVI(
        model, AutoDelta(model), numpyro.optim.SGD(_STEP), RBFKernel(),
        num_stein_particles=len(x), num_elbo_particles=1,
    )  # fmt: skip
    state = flow.init(jr.key(0))
    return compiled(lambda state: flow.update(state)[0], state)


def _torch(x: Array) -> Compiled:
    torch = importlib.import_module("torch")

    rows = torch.tensor(np.array(x.reshape(len(x), -1)))

    def update():
        with torch.no_grad():
            gram = torch.exp(-0.5 * torch.cdist(rows, rows) ** 2)
            pull = gram.sum(1, keepdim=True) * rows - gram @ rows
            return rows + _STEP * (gram @ -rows + pull) / len(rows)

    return Compiled(update, 3.0 * 4 * len(x) ** 2)


def _cell(seconds_: float, memory: float) -> str:
    if not np.isfinite(seconds_):
        return f"{'-':>18}"
    room = f" / {memory:.0f}" if np.isfinite(memory) else ""
    return f"{f'{seconds_:.3g}{room}':>18}"
