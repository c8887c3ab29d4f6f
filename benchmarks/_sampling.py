"""SVGD beside a hand-written loop and BlackJAX."""

import importlib
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array

from benchmarks._timing import Contestant, is_installed, print_times, REPEATS
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
    if is_installed("torch", "PyTorch"):
        runs["PyTorch loop, by hand"] = _torch_loop(start)
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


def _torch_loop(start: Array) -> Callable[[], Any]:
    """The same steps as one would write them in PyTorch, with the score by hand."""
    torch = importlib.import_module("torch")

    turns = np.arange(4) * np.pi / 2
    rotations = np.array(
        [[np.cos(turns), -np.sin(turns)], [np.sin(turns), np.cos(turns)]]
    )
    whiten = np.diag(1 / np.sqrt([1.0, 0.2]))  # as the target's defaults
    # Each turn of a point, whitened, is one row of `maps` times the point, less `mean`.
    maps = torch.tensor(
        np.einsum("ij,jkt->tik", whiten, rotations), dtype=torch.float32
    )
    mean = torch.tensor(whiten @ np.array([3.0, 0.0]), dtype=torch.float32)
    rows = torch.tensor(np.array(start))

    def loop():
        x = rows
        with torch.no_grad():
            for _ in range(_NUM_STEPS):
                gaps = torch.einsum("tij,nj->nti", maps, x) - mean
                weights = torch.softmax(-0.5 * (gaps**2).sum(-1), dim=1)
                scores = -torch.einsum("nt,nti,tij->nj", weights, gaps, maps)
                squared = torch.cdist(x, x) ** 2
                gram = torch.exp(-0.5 * squared / _BANDWIDTH**2)
                spread = gram.sum(1, keepdim=True) * x - gram @ x
                x = x + _STEP * (gram @ scores + spread / _BANDWIDTH**2) / len(x)
        return x

    return loop
