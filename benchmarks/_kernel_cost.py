"""What a step of SVGD costs with each kernel, against the number of particles."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

from benchmarks._page import show
from benchmarks._timing import exponent, seconds
from equistein.features import PairHistogram
from equistein.kernels import (
    AbstractKernel,
    Equivariant,
    Gradient,
    Moments,
    Pullback,
    RBF,
)
from equistein.plotting import curves
from equistein.samplers import SVGD
from equistein.targets import DoubleWell

_NUMBERS = (100, 316, 1_000, 3_162, 10_000)
_LARGE = 1_000  # the exponent is fitted from here on
_SECONDS = 1.0  # to measure for, at least
_TOO_LONG = 60.0  # seconds for a single step


def kernel_cost() -> None:
    """Print and draw the seconds of 1 000 steps on DW-4, for each kernel."""
    target = DoubleWell()
    species = target.group.species
    histogram = PairHistogram(species, num_centers=8, width=1.0)
    kernels: dict[str, AbstractKernel] = {
        "RBF": RBF(1.0),
        "Moments, histogram": Moments(histogram),
        "Pullback, sorted distances": Pullback(RBF(0.5), target.features),
        "Pullback, histogram": Pullback(RBF(0.5), histogram),
        "Gradient, histogram": Gradient(RBF(0.5), histogram),
        "Equivariant, in the plane": Equivariant(RBF(1.0), target.group),
    }
    print(
        "\nSeconds for 1000 steps of SVGD on DW-4 (4 particles in the plane), against"
    )
    print(f"the number of particles; exponent of the cost from n = {_LARGE} on")
    header = "".join(f"{num:>11}" for num in _NUMBERS)
    print(f"{'':<28}{header}{'exponent':>11}", flush=True)
    table: dict[str, np.ndarray] = {}
    for name, kernel in kernels.items():
        row = _row(target, kernel)
        slope = exponent(_NUMBERS, row, _LARGE)
        table[f"{name}: n^{slope:.2f}"] = row
        cells = "".join(f"{seconds:>11.3g}" for seconds in row)
        print(f"{name:<28}{cells}{slope:>11.2f}", flush=True)
    figure = curves(
        {name: (np.array(_NUMBERS), row[None]) for name, row in table.items()},
        "seconds for 1 000 steps",
        x_label="particles",
        log_x=True,
        log_y=True,
    )
    show("kernel-cost", figure)


def _row(target: DoubleWell, kernel: AbstractKernel) -> np.ndarray:
    sampler = SVGD(kernel, optax.sgd(1e-4))

    @jax.jit
    def steps(x, num):
        def step(i, state):
            return sampler.step(jr.key(0), state, target.log_density)[0]

        return jax.lax.fori_loop(0, num, step, sampler.init(x)).particles

    row: list[float] = []
    for num in _NUMBERS:
        if row and not row[-1] / 1_000 * 10 < _TOO_LONG:
            row.append(float("nan"))
            continue
        x = target.start(jr.key(1), num)
        compiled = steps.lower(x, jnp.asarray(1)).compile()
        once = seconds(functools.partial(_wait, compiled, x, 1))
        repeats = int(np.clip(_SECONDS / once, 1, 1_000))
        total = seconds(functools.partial(_wait, compiled, x, repeats))
        row.append(1_000 * total / repeats)
    return np.array(row)


def _wait(compiled: Callable, x: jax.Array, num: int) -> None:
    jax.block_until_ready(compiled(x, jnp.asarray(num)))
