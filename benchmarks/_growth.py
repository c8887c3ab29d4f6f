"""How time and memory grow with the size of the work, one axis at a time.

`python -m benchmarks._growth frames|devices NUM` measures one in a new process.
"""

import functools
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array

import equistein as es
from benchmarks._timing import Compiled, compiled, exponent, seconds

_REPEATS = 3
_NUM = 256  # particles, where another axis grows
_AT_LEAST = 0.2  # seconds of a measurement


def growth(num_sizes: int | None = None) -> None:
    """Print milliseconds, MiB and evaluations a second, with exponents of the time.

    Args:
        num_sizes: How many sizes of each axis, from the smallest on; None is all.
    """
    print("One step as one axis grows; MiB beside the particles; the exponent is of")
    print("the last three sizes. SVGD has n^2 pairs, a graph network those of atoms.")
    print("Frames and devices have processes of their own, with MiB above their start")
    print(
        f"{'':<38}{'size':>8}{'ms':>10}{'MiB':>9}{'evaluations/s':>15}{'exponent':>10}"
    )
    for name, (measure, sizes, (factor, degree)) in _AXES.items():
        sizes = sizes[:num_sizes]
        rows = [measure(size) for size in sizes]
        times = np.array([time for time, _ in rows])
        power = exponent(sizes, times, sizes[-3:][0])
        for size, (time, memory) in zip(sizes, rows, strict=True):
            last = f"{power:>10.2f}" if size == sizes[-1] else ""
            print(
                f"{name:<38}{size:>8}{1e3 * time:>10.3g}{memory / 2**20:>9.1f}"
                f"{factor * size**degree / time:>15.3g}{last}",
                flush=True,
            )


def _measured(program: Compiled) -> tuple[float, float]:
    """Return the median seconds of a call, and its bytes."""
    calls = max(1, int(_AT_LEAST / seconds(program.run)))
    times = [
        seconds(lambda: [program.run() for _ in range(calls)]) / calls
        for _ in range(_REPEATS)
    ]
    return float(np.median(times)), program.memory


def _normal(x: Array) -> Array:
    return -jnp.sum(x**2) / 2


def _step(sampler: es.samplers.AbstractSampler, x: Array) -> Compiled:
    state = sampler.init(x, _normal)
    arrays, static = eqx.partition(state, eqx.is_array)

    def step(arrays):
        state = eqx.combine(arrays, static)
        return eqx.filter(sampler.step(jr.key(1), state, _normal)[0], eqx.is_array)

    return compiled(step, arrays)


def _svgd(num: int, dim: int = 2) -> Compiled:
    kernel = es.kernels.RBF(0.5 * dim**0.5)
    return _step(es.SVGD(kernel, optax.sgd(0.1)), jr.normal(jr.key(0), (num, dim)))


def _tempering(num: int) -> Compiled:
    sampler = es.ParallelTempering(es.MALA(0.1), num_temperatures=num)
    return _step(sampler, jr.normal(jr.key(0), (_NUM, 2)))


def _labels(num: int) -> Compiled:
    kernel = es.kernels.Equivariant(es.kernels.RBF(1.0), es.groups.Permutations(num))
    x = jr.normal(jr.key(0), (_NUM, num, 2))
    return _step(es.SVGD(kernel, optax.sgd(0.1)), x)


def _atoms(num: int) -> Compiled:
    network = es.networks.EGNN([0] * num, dim=3, width=32, depth=2, key=jr.key(0))
    x = num ** (1 / 3) * jr.normal(jr.key(1), (16, num, 3))
    return compiled(jax.vmap(jax.grad(network)), x)


def _in_process(what: str, num: int) -> tuple[float, float]:
    """Return seconds, and the bytes that a new process takes above its start."""
    flags = f"--xla_force_host_platform_device_count={num if what == 'devices' else 1}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks._growth", what, str(num)],
        env=os.environ | {"XLA_FLAGS": flags},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def _svgd_on_devices(num: int) -> tuple[Callable[[], object], int]:
    """Return a run of SVGD that so many devices share, and its steps."""
    sampler = es.SVGD(es.kernels.RBF(0.5), optax.sgd(0.1))
    mesh = es.device_mesh(num) if num > 1 else None
    x, num_steps = jr.normal(jr.key(0), (4_000, 2)), 50
    call = functools.partial(
        es.run, jr.key(1), sampler, _normal, x, num_steps=num_steps, mesh=mesh
    )
    return lambda: jax.block_until_ready(call().particles), num_steps


def _linear_solve(num: int) -> tuple[Callable[[], object], int]:
    """Return a fit of clouds of 13 particles by one solve; and 1."""
    clouds = np.random.default_rng(0).normal(size=(num, 13, 3)).astype(np.float32)
    basis = es.features.PairBasis([0] * 13, clouds[:1_000])
    energy = es.energies.LinearEnergy(basis)
    return lambda: es.fit_linear(0, energy, clouds, progress=False), 1


def _alone(make: Callable[[int], tuple[Callable[[], object], int]], num: int) -> None:
    """Print the seconds of a step, and the bytes, of what else this process is not."""
    run, num_steps = make(num)
    peak = lambda: 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    before = peak()
    run()
    repeats = _REPEATS if num_steps > 1 else 1
    time = min(seconds(run) for _ in range(repeats)) / num_steps
    print(json.dumps([time, peak() - before]))


# What measures a step, the sizes, and its evaluations, m of (m, p) times size^p.
_Axis = tuple[Callable[[int], tuple[float, float]], Sequence[int], tuple[int, int]]
_AXES: dict[str, _Axis] = {
    "particles, SVGD, 2 numbers each": (
        lambda num: _measured(_svgd(num)), (1_000, 4_000, 16_000, 64_000), (1, 1)
    ),
    "numbers of a particle, SVGD, 1 000": (
        lambda dim: _measured(_svgd(1_000, dim)), (2, 16, 128, 784), (1_000, 0)
    ),
    "temperatures, MALA, 256 chains": (
        lambda num: _measured(_tempering(num)), (4, 8, 16, 32), (_NUM, 1)
    ),
    "parts whose labels permute, 256": (
        lambda num: _measured(_labels(num)), (2, 3, 4, 5, 6), (_NUM, 0)
    ),
    "atoms of a network, 16 clouds": (
        lambda num: _measured(_atoms(num)), (10, 25, 50, 100, 200), (16, 0)
    ),
    "frames of a linear solve, 13 particles": (
        lambda num: _in_process("frames", num), (1_000, 10_000, 100_000), (1, 1)
    ),
    "virtual devices, SVGD, 4 000": (
        lambda num: _in_process("devices", num), (1, 2, 4, 8), (4_000, 0)
    ),
}  # fmt: skip

if __name__ == "__main__":
    makers = {"frames": _linear_solve, "devices": _svgd_on_devices}
    _alone(makers[sys.argv[1]], int(sys.argv[2]))
