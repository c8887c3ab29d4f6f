"""One score of molecules with a graph network, beside plain JAX and PyTorch."""

import importlib

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array

from benchmarks._timing import (
    Contestant,
    is_installed,
    print_times,
    repeated,
    REPEATS,
)
from equistein.networks import EGNN

_CHARGES = (6, 6, 6, 6, 6, 8, 1, 1, 1, 1, 1, 1, 1, 1)
_NUM = 64
_WIDTH = 64
_DEPTH = 4
_CALLS = 10


def molecules() -> None:
    """Print the milliseconds of one score of 64 molecules of 14 atoms.

    The peers compute the formulas of the EGNN reference code: a message for each
    ordered pair, from both atoms and the squared distance, with attention.
    """
    clouds = 1.4 * jr.normal(jr.key(0), (_NUM, len(_CHARGES), 3))
    contestants = {
        "equistein, EGNN": _ours(clouds),
        "plain JAX, EGNN reference": _plain(clouds),
    }
    print(f"\nOne score of {_NUM} molecules of {len(_CHARGES)} atoms with a graph")
    print(f"network of {_DEPTH} layers of {_WIDTH} units; median of {REPEATS} runs")
    if is_installed("torch", "PyTorch"):
        contestants["PyTorch, EGNN reference"] = _torch(np.array(clouds))
    print_times(contestants, "equistein, EGNN")


def _ours(clouds: Array) -> Contestant:
    network = EGNN(
        _CHARGES, atomic_numbers=_CHARGES, width=_WIDTH, depth=_DEPTH, key=jr.key(1)
    )
    score = eqx.filter_jit(lambda network, x: jax.vmap(jax.grad(network))(x))
    return repeated(lambda: score(network, clouds).block_until_ready(), _CALLS)


def _plain(clouds: Array) -> Contestant:
    """Return the reference formulas on a list of edges, as they are usually written."""
    receivers, senders = _edges()
    weights = [
        [jnp.asarray(w) for w in layer] for layer in _weights(np.random.default_rng(0))
    ]
    silu = jax.nn.silu

    def value(x):
        hidden = jnp.asarray(_one_hot()) @ weights[0][0]
        gaps = x[receivers] - x[senders]
        squared = jnp.sum(gaps**2, axis=1, keepdims=True)
        for first, second, attention, update, out in weights[1:]:
            pairs = [hidden[receivers], hidden[senders], squared]
            message = silu(silu(jnp.concatenate(pairs, axis=1) @ first) @ second)
            message = message * jax.nn.sigmoid(message @ attention)
            sums = jax.ops.segment_sum(message, receivers, len(_CHARGES))
            both = jnp.concatenate([hidden, sums], axis=1)
            hidden = hidden + silu(both @ update) @ out
        return jnp.sum(hidden)

    score = jax.jit(jax.vmap(jax.grad(value)))
    return repeated(lambda: score(clouds).block_until_ready(), _CALLS)


def _torch(clouds: np.ndarray) -> Contestant:
    torch = importlib.import_module("torch")
    receivers, senders = _edges()
    shifts = len(_CHARGES) * np.arange(_NUM)[:, None]
    receivers, senders = (
        torch.tensor((shifts + index[None]).ravel()) for index in (receivers, senders)
    )
    weights = [
        [torch.tensor(w) for w in layer] for layer in _weights(np.random.default_rng(0))
    ]
    silu = torch.nn.functional.silu
    one_hot = torch.tensor(np.tile(_one_hot(), (_NUM, 1)))
    points = clouds.reshape(-1, 3)

    def score():
        x = torch.tensor(points, requires_grad=True)
        hidden = one_hot @ weights[0][0]
        squared = ((x[receivers] - x[senders]) ** 2).sum(1, keepdim=True)
        for first, second, attention, update, out in weights[1:]:
            pairs = torch.cat([hidden[receivers], hidden[senders], squared], dim=1)
            message = silu(silu(pairs @ first) @ second)
            message = message * torch.sigmoid(message @ attention)
            sums = torch.zeros_like(hidden).index_add_(0, receivers, message)
            hidden = hidden + silu(torch.cat([hidden, sums], dim=1) @ update) @ out
        return torch.autograd.grad(hidden.sum(), x)[0]

    return repeated(score, _CALLS)


def _edges() -> tuple[np.ndarray, np.ndarray]:
    """Return both ends of all ordered pairs of atoms."""
    num = len(_CHARGES)
    first, second = np.divmod(np.arange(num * num), num)
    apart = first != second
    return first[apart], second[apart]


def _one_hot() -> np.ndarray:
    kinds = sorted(set(_CHARGES))
    return np.eye(len(kinds), dtype=np.float32)[[kinds.index(z) for z in _CHARGES]]


def _weights(rng: np.random.Generator) -> list[list[np.ndarray]]:
    """Return the weights of the embedding and of each layer."""

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (rng.normal(size=(rows, columns)) / rows**0.5).astype(np.float32)

    width = _WIDTH
    layers = [
        [
            matrix(2 * width + 1, width), matrix(width, width), matrix(width, 1),
            matrix(2 * width, width), matrix(width, width),
        ]
        for _ in range(_DEPTH)
    ]  # fmt: skip
    return [[matrix(len(set(_CHARGES)), width)], *layers]
