"""SVGD beside a hand-written loop and BlackJAX."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array

from benchmarks._timing import Contestant, is_installed, print_times, REPEATS, seconds
from equistein.groups import Cyclic
from equistein.kernels import Equivariant, RBF
from equistein.samplers import run, SVGD
from equistein.targets import RotatedGaussians

_BANDWIDTH = 0.2
_STEP = 0.02
_NUM_STEPS = 25_000


def many_steps() -> None:
    """Print the seconds of many steps of few particles."""
    target = RotatedGaussians(Cyclic(4))
    start = jnp.sqrt(2.0) * jr.normal(jr.key(0), (50, 2))
    equivariant = Equivariant(RBF(_BANDWIDTH), Cyclic(4))
    print(f"\n{_NUM_STEPS} steps, 50 particles, d = 2, four Gaussians; median of")
    print(f"{REPEATS} interleaved runs")
    runs = {
        "hand-written fori_loop": _hand_written(target, start),
        "equistein, RBF": _ours(RBF(_BANDWIDTH), target, start),
        "equistein, RBF(Median())": _ours(RBF(), target, start),
        "equistein, Equivariant C4": _ours(equivariant, target, start),
    }
    if is_installed("blackjax", "BlackJAX"):
        runs["BlackJAX in fori_loop"] = _blackjax_loop(target, start)
        runs["BlackJAX as documented"] = _blackjax_steps(target, start)
    contestants = {name: Contestant(run) for name, run in runs.items()}
    print_times(contestants, "hand-written fori_loop", "s")
    print("\nFive runs of them, with keys and starts of their own")
    starts = jnp.sqrt(2.0) * jr.normal(jr.key(1), (5, 50, 2))
    for kernel in (RBF(_BANDWIDTH), equivariant, RBF()):
        together = _ours(kernel, target, starts, jr.split(jr.key(0), 5))
        each = [_ours(kernel, target, one) for one in starts]
        contestants = {
            "one after another": Contestant(lambda each=each: [run() for run in each]),
            "side by side": Contestant(together),
        }
        print(f"\n{type(kernel).__name__}, bandwidth {kernel.bandwidth}")
        print_times(contestants, "one after another", "s")


def one_update() -> None:
    """Print the milliseconds and the memory of one update of many particles."""
    target = RotatedGaussians(Cyclic(4))
    vanilla = SVGD(RBF(_BANDWIDTH), optax.sgd(_STEP))
    equivariant = SVGD(Equivariant(RBF(_BANDWIDTH), Cyclic(4)), optax.sgd(_STEP))
    updates: dict[str, Callable] = {
        "dense, by hand": lambda x: _dense_update(target, x),
        "equistein, RBF": lambda x: _step(vanilla, target, x),
        "equistein, Equivariant C4": lambda x: _step(equivariant, target, x),
    }
    print("\nOne SVGD update, d = 2, with the extra memory as compiled; median of")
    print(f"{REPEATS} interleaved runs")
    if is_installed("blackjax", "BlackJAX"):
        updates["BlackJAX"] = _blackjax_update(target)
    for num in (1_000, 4_000, 16_000):
        x = target.sample(jr.key(1), num)
        slow = {"BlackJAX": 1 if num > 4_000 else 3}
        print(f"\nn = {num}")
        contestants = {
            name: _compiled(update, x, slow.get(name, REPEATS))
            for name, update in updates.items()
        }
        print_times(contestants, "dense, by hand")


def _compiled(update: Callable, x: Array, repeats: int) -> Contestant:
    """Return an update compiled for these particles; the note tells what it took."""
    compiled: list[Any] = []
    took = seconds(lambda: compiled.append(jax.jit(update).lower(x).compile()))
    analysis = compiled[0].memory_analysis()
    memory = analysis.temp_size_in_bytes / 2**20 if analysis else float("nan")
    return Contestant(
        lambda: jax.block_until_ready(compiled[0](x)), repeats=repeats,
        note=f"{memory:.1f} MiB, compiled in {took:.1f} s",
    )  # fmt: skip


def _ours(
    kernel, target: RotatedGaussians, start: Array, keys: Any = None
) -> Callable[[], Any]:
    sampler = SVGD(kernel, optax.sgd(_STEP))
    keys = jr.key(0) if keys is None else keys

    def contestant():
        samples = run(
            keys, sampler, target.log_density, start, num_steps=_NUM_STEPS,
            check=False,
        )  # fmt: skip
        return jax.block_until_ready(samples.particles)

    return contestant


def _step(sampler: Any, target: RotatedGaussians, x: Array) -> Array:
    state, _ = sampler.step(jr.key(0), sampler.init(x), target.log_density)
    return state.particles


def _dense_update(target: RotatedGaussians, x: Array) -> Array:
    """One update as one would write it by hand: one matmul for all three sums."""
    scores = jax.vmap(jax.grad(target.log_density))(x)
    x = x - jnp.mean(x, axis=0, keepdims=True)
    norms = jnp.sum(x**2, axis=1)
    squared = norms[:, None] + norms[None, :] - 2 * x @ x.T
    gram = jnp.exp(-0.5 * squared / _BANDWIDTH**2)
    ones = jnp.full((len(x), 1), 1 / _BANDWIDTH**2)
    sums = gram @ jnp.concatenate([scores - x / _BANDWIDTH**2, ones], axis=1)
    return _STEP * (sums[:, :-1] + sums[:, -1:] * x) / len(x)


def _hand_written(target: RotatedGaussians, start: Array) -> Callable[[], Any]:
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


def _blackjax_state(algorithm: Any, x: Array) -> Any:
    # Its length scale is that of exp(-|x - y|^2 / l).
    return algorithm.init(x, {"length_scale": 2 * _BANDWIDTH**2})


def _blackjax_loop(target: RotatedGaussians, start: Array) -> Callable[[], Any]:
    @eqx.filter_jit
    def loop(target, x):
        algorithm = _blackjax(target)
        state = _blackjax_state(algorithm, x)
        return jax.lax.fori_loop(
            0, _NUM_STEPS, lambda _, state: algorithm.step(state), state
        )

    return lambda: jax.block_until_ready(loop(target, start))


def _blackjax_steps(target: RotatedGaussians, start: Array) -> Callable[[], Any]:
    algorithm = _blackjax(target)
    step = jax.jit(algorithm.step)

    def contestant():
        state = _blackjax_state(algorithm, start)
        for _ in range(_NUM_STEPS):
            state = step(state)
        return jax.block_until_ready(state.particles)

    return contestant


def _blackjax_update(target: RotatedGaussians) -> Callable[[Array], Array]:
    algorithm = _blackjax(target)
    return lambda x: algorithm.step(_blackjax_state(algorithm, x)).particles
