"""`equistein bench`: the samplers beside a hand-written loop and BlackJAX."""

import importlib.util
import pathlib
import platform
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

from equistein._types import Particles
from equistein.cli._bench_cost import bench_cost
from equistein.cli._bench_images import bench_images
from equistein.cli._bench_molecules import bench_molecules
from equistein.cli._bench_training import bench_training
from equistein.cli._timing import interleaved, REPEATS
from equistein.groups import Cyclic
from equistein.kernels import Equivariant, RBF
from equistein.samplers import run, SVGD
from equistein.targets import RotatedGaussians

_BANDWIDTH = 0.2
_STEP = 0.02
_NUM_STEPS = 25_000


def bench() -> int:
    """Print tables: steps, one step of many, training, molecules, and kernels."""
    target = RotatedGaussians(Cyclic(4))
    peers = importlib.util.find_spec("blackjax") is not None
    print(f"JAX {jax.__version__} on {jax.devices()[0]}, {platform.processor()}")
    if not peers:
        print("BlackJAX is not installed, so it is left out: pip install blackjax")
    _many_steps(target, peers)
    _one_update(target, peers)
    bench_training()
    bench_molecules()
    bench_images()
    bench_cost(pathlib.Path("runs"))
    return 0


def _many_steps(target: RotatedGaussians, peers: bool) -> None:
    start = jnp.sqrt(2.0) * jr.normal(jr.key(0), (50, 2))
    contestants: dict[str, Callable[[], Any]] = {
        "hand-written fori_loop": _hand_written(target, start),
        "equistein, RBF": _ours(RBF(_BANDWIDTH), target, start),
        "equistein, RBF(Median())": _ours(RBF(), target, start),
        "equistein, Equivariant C4": _ours(
            Equivariant(RBF(_BANDWIDTH), Cyclic(4)), target, start
        ),
    }
    if peers:
        contestants["BlackJAX in fori_loop"] = _blackjax_loop(target, start)
        contestants["BlackJAX as documented"] = _blackjax_steps(target, start)
    print(f"\n{_NUM_STEPS} steps, 50 particles, d = 2, four Gaussians; median of")
    print(f"{REPEATS} interleaved runs, seconds")
    compile_times, times = interleaved(contestants)
    base = np.median(times["hand-written fori_loop"])
    print(f"{'':<28}{'median':>9}{'min':>9}{'max':>9}{'ratio':>8}{'first call':>12}")
    for name, seconds in times.items():
        middle = float(np.median(seconds))
        print(
            f"{name:<28}{middle:>9.3f}{min(seconds):>9.3f}{max(seconds):>9.3f}"
            f"{middle / base:>8.2f}{compile_times[name]:>12.2f}"
        )


def _one_update(target: RotatedGaussians, peers: bool) -> None:
    print("\nOne SVGD update, d = 2: milliseconds (extra memory in MiB, as compiled)")
    print("The first call, compilation included, in brackets in seconds")
    vanilla = SVGD(RBF(_BANDWIDTH), optax.sgd(_STEP))
    equivariant = SVGD(Equivariant(RBF(_BANDWIDTH), Cyclic(4)), optax.sgd(_STEP))
    for num in (1_000, 4_000, 16_000):
        x = target.sample(jr.key(1), num)
        rows: dict[str, tuple[Callable, int]] = {
            "dense, by hand": (lambda x: _dense_update(target, x), REPEATS),
            "equistein, RBF": (lambda x: _step(vanilla, target, x), REPEATS),
            "equistein, Equivariant C4": (
                lambda x: _step(equivariant, target, x),
                REPEATS,
            ),
        }
        if peers:
            rows["BlackJAX"] = (_blackjax_update(target), 1 if num > 4_000 else 3)
        print(f"\nn = {num}")
        for name, (update, repeats) in rows.items():
            began = time.perf_counter()
            compiled = jax.jit(update).lower(x).compile()
            jax.block_until_ready(compiled(x))
            first = time.perf_counter() - began
            seconds = []
            for _ in range(repeats):
                began = time.perf_counter()
                jax.block_until_ready(compiled(x))
                seconds.append(time.perf_counter() - began)
            analysis = compiled.memory_analysis()
            memory = analysis.temp_size_in_bytes / 2**20 if analysis else float("nan")
            print(
                f"  {name:<26}{1e3 * np.median(seconds):>10.1f} ms"
                f"{memory:>10.1f} MiB   [{first:.1f} s]",
                flush=True,
            )


def _ours(kernel, target: RotatedGaussians, start: Particles) -> Callable[[], Any]:
    sampler = SVGD(kernel, optax.sgd(_STEP))

    def contestant():
        samples = run(
            jr.key(0), sampler, target.log_density, start, num_steps=_NUM_STEPS,
            check=False,
        )  # fmt: skip
        return jax.block_until_ready(samples.particles)

    return contestant


def _step(sampler: Any, target: RotatedGaussians, x: Particles) -> Particles:
    state, _ = sampler.step(jr.key(0), sampler.init(x), target.log_density)
    return state.particles


def _dense_update(target: RotatedGaussians, x: Particles) -> Particles:
    """One update as one would write it by hand: one matmul for all three sums."""
    scores = jax.vmap(jax.grad(target.log_density))(x)
    x = x - jnp.mean(x, axis=0, keepdims=True)
    norms = jnp.sum(x**2, axis=1)
    squared = norms[:, None] + norms[None, :] - 2 * x @ x.T
    gram = jnp.exp(-0.5 * squared / _BANDWIDTH**2)
    ones = jnp.full((len(x), 1), 1 / _BANDWIDTH**2)
    sums = gram @ jnp.concatenate([scores - x / _BANDWIDTH**2, ones], axis=1)
    return _STEP * (sums[:, :-1] + sums[:, -1:] * x) / len(x)


def _hand_written(target: RotatedGaussians, start: Particles) -> Callable[[], Any]:
    @eqx.filter_jit
    def loop(target, x):
        return jax.lax.fori_loop(
            0, _NUM_STEPS, lambda _, x: x + _dense_update(target, x), x
        )

    return lambda: jax.block_until_ready(loop(target, start))


def _blackjax(target: RotatedGaussians) -> Any:
    import blackjax

    return blackjax.svgd(
        jax.grad(target.log_density),
        optax.sgd(_STEP),
        update_kernel_parameters=lambda state: state,  # a fixed bandwidth, as ours
    )


def _blackjax_state(algorithm: Any, x: Particles) -> Any:
    # Its length scale is that of exp(-|x - y|^2 / l).
    return algorithm.init(x, {"length_scale": 2 * _BANDWIDTH**2})


def _blackjax_loop(target: RotatedGaussians, start: Particles) -> Callable[[], Any]:
    @eqx.filter_jit
    def loop(target, x):
        algorithm = _blackjax(target)
        state = _blackjax_state(algorithm, x)
        return jax.lax.fori_loop(
            0, _NUM_STEPS, lambda _, state: algorithm.step(state), state
        )

    return lambda: jax.block_until_ready(loop(target, start))


def _blackjax_steps(target: RotatedGaussians, start: Particles) -> Callable[[], Any]:
    algorithm = _blackjax(target)
    step = jax.jit(algorithm.step)

    def contestant():
        state = _blackjax_state(algorithm, start)
        for _ in range(_NUM_STEPS):
            state = step(state)
        return jax.block_until_ready(state.particles)

    return contestant


def _blackjax_update(target: RotatedGaussians) -> Callable[[Particles], Particles]:
    algorithm = _blackjax(target)
    return lambda x: algorithm.step(_blackjax_state(algorithm, x)).particles
