"""How time and memory grow with the size of the work, one axis at a time.

`python -m benchmarks._growth NUM` times NUM virtual devices in a process of their own.
"""

import functools
import json
import os
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
_DEVICES = (1, 2, 4, 8)
_AT_LEAST = 0.2  # seconds of a measurement


def growth() -> None:
    """Print milliseconds, MiB and evaluations a second, with exponents of the time."""
    print("One step as one axis grows; MiB beside the particles; the exponent is of")
    print("the last three sizes. SVGD has n^2 pairs, a graph network those of atoms")
    # What makes a step, the sizes, and its evaluations, m of (m, p) times size^p.
    axes: dict[str, tuple[Callable[[int], Compiled], Sequence[int], tuple[int, int]]]
    axes = {
        "particles, SVGD, 2 numbers each": (
            _svgd, (1_000, 4_000, 16_000, 64_000), (1, 1)
        ),
        "numbers of a particle, SVGD, 1 000": (_wide, (2, 16, 128, 784), (1_000, 0)),
        "temperatures, MALA, 256 chains": (_tempering, (4, 8, 16, 32), (_NUM, 1)),
        "parts whose labels permute, 256": (_labels, (2, 3, 4, 5, 6), (_NUM, 0)),
        "atoms of a network, 16 clouds": (_atoms, (10, 25, 50, 100, 200), (16, 0)),
    }  # fmt: skip
    print(
        f"{'':<38}{'size':>8}{'ms':>10}{'MiB':>9}{'evaluations/s':>15}{'exponent':>10}"
    )
    for name, (make, sizes, (factor, degree)) in axes.items():
        rows = [_measured(make(size)) for size in sizes]
        times = np.array([time for time, _ in rows])
        power = exponent(sizes, times, sizes[-3])
        for size, (time, memory) in zip(sizes, rows, strict=True):
            last = f"{power:>10.2f}" if size == sizes[-1] else ""
            print(
                f"{name:<38}{size:>8}{1e3 * time:>10.3g}{memory / 2**20:>9.1f}"
                f"{factor * size**degree / time:>15.3g}{last}",
                flush=True,
            )
    for num in _DEVICES:
        time = _on_devices(num)
        print(
            f"{'virtual devices, SVGD, 4 000':<38}{num:>8}{1e3 * time:>10.3g}"
            f"{'':>9}{4_000 / time:>15.3g}",
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


def _wide(dim: int) -> Compiled:
    return _svgd(1_000, dim)


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


def _on_devices(num: int) -> float:
    """Return the seconds of a step of SVGD that so many devices share."""
    flags = f"--xla_force_host_platform_device_count={num}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks._growth", str(num)],
        env=os.environ | {"XLA_FLAGS": flags},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def _timed_devices(num: int) -> float:
    sampler = es.SVGD(es.kernels.RBF(0.5), optax.sgd(0.1))
    mesh = es.device_mesh(num) if num > 1 else None
    x, num_steps = jr.normal(jr.key(0), (4_000, 2)), 50
    call = functools.partial(
        es.run, jr.key(1), sampler, _normal, x, num_steps=num_steps, mesh=mesh
    )
    run = lambda: jax.block_until_ready(call().particles)
    run()
    return min(seconds(run) for _ in range(_REPEATS)) / num_steps


if __name__ == "__main__":
    print(json.dumps(_timed_devices(int(sys.argv[1]))))
