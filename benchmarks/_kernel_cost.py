"""What a step of SVGD costs with each kernel, against the number of particles."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

from benchmarks._page import show
from benchmarks._timing import (
    Contestant,
    exponent,
    interleaved,
    seconds,
)
from benchmarks._updates import update_of
from equistein.features import PairHistogram, Periodic
from equistein.groups import (
    AbstractGroup,
    Cyclic,
    Dihedral,
    ImageRotations,
    Orthogonal,
    Permutations,
    PointCloud,
    SignedPermutations,
    Signs,
    SpecialOrthogonal,
    TorusTranslations,
)
from equistein.kernels import (
    AbstractKernel,
    Equivariant,
    Gradient,
    Moments,
    PeriodicRBF,
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
_PERIODS = (1.0,) * 4
_NUM = 1_000  # particles, beside those of each group
_GROUPS: dict[str, tuple[AbstractGroup, tuple[int, ...]]] = {
    "C4 of points": (Cyclic(4), (2,)),
    "D5 of points": (Dihedral(5), (2,)),
    "SO(2) of points": (SpecialOrthogonal(2), (2,)),
    "O(2) of points": (Orthogonal(2), (2,)),
    "SO(3) of points": (SpecialOrthogonal(3), (3,)),
    "O(3) of points": (Orthogonal(3), (3,)),
    "4 like particles in the plane": (PointCloud((0,) * 4, 2), (4, 2)),
    "3 particles in space, 2 alike": (PointCloud((0, 0, 1), 3), (3, 3)),
    "labels of 3 parts": (Permutations(3), (3, 2)),
    "signs of 4 numbers": (Signs(4), (4,)),
    "signed labels of 3 parts": (SignedPermutations(3), (3, 2)),
    "4 phases together": (TorusTranslations(_PERIODS), (4,)),
    "C4 of images, 8 x 8": (ImageRotations(), (8, 8)),
}


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
    _averages()


def _averages() -> None:
    """Print what a step costs with the average over each group, and without it."""
    print(
        f"\nOne step of SVGD of {_NUM} particles with Equivariant(RBF, group), beside"
    )
    print("RBF alone; compiling apart; MiB beside the particles")
    print(
        f"{'':<32}{'RBF, ms':>10}{'ms':>10}{'ratio':>8}{'MiB':>8}{'compiling, s':>14}",
        flush=True,
    )
    for name, (group, shape) in _GROUPS.items():
        x = jr.normal(jr.key(2), (_NUM, *shape))
        base = RBF(1.0)
        if isinstance(group, TorusTranslations):
            base = PeriodicRBF(1.0, periodic=Periodic(_PERIODS))
        made = {
            which: update_of(kernel)(x)
            for which, kernel in (("base", base), ("mean", Equivariant(base, group)))
        }
        times = interleaved({w: Contestant(m.run, repeats=3) for w, m in made.items()})
        base_time, time = times["base"].median, times["mean"].median
        print(
            f"{name:<32}{1e3 * base_time:>10.3g}{1e3 * time:>10.3g}"
            f"{time / base_time:>8.1f}{made['mean'].memory / 2**20:>8.1f}"
            f"{made['mean'].compiling:>14.2f}",
            flush=True,
        )


def _row(target: DoubleWell, kernel: AbstractKernel) -> np.ndarray:
    sampler = SVGD(kernel, optax.sgd(1e-4))

    @jax.jit
    def steps(x, num):
        def step(i, state):
            return sampler.step(jr.key(0), state, target.log_density)[0]

        return jax.lax.fori_loop(
            0, num, step, sampler.init(x, target.log_density)
        ).particles

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
