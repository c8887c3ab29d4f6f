"""The input gradient of a steerable CNN, beside escnn and XLA's own convolution."""

import importlib
import warnings
from collections.abc import Callable
from typing import Any

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
from equistein.networks import SteerableCNN

_FIELDS = (4, 8, 8, 8, 8, 8, 16, 16)
_POOL_AFTER = (1, 2)
_SIDE = 28
_NUM = 64
_CALLS = 5


def images() -> None:
    """Print the milliseconds of the gradients of 64 images in an 8-layer C4 network.

    What a sampler needs of a step: the gradient in the pixels. Inside a compiled loop,
    as in training, XLA's own convolution runs on one core of a CPU.
    """
    pixels = jr.normal(jr.key(0), (_NUM, _SIDE, _SIDE, 1))
    network = SteerableCNN(
        pixels.shape[1:], _FIELDS, sizes=(3,) * 8, pool_after=_POOL_AFTER, out_size=10,
        key=jr.key(1),
    )  # fmt: skip
    ours, theirs = _scores(network), _scores(_WithConvolutions(network))
    contestants = {
        "equistein": repeated(lambda: ours(pixels).block_until_ready(), _CALLS),
        "equistein, in a compiled loop": _looped(network, pixels),
        "XLA convolutions": repeated(
            lambda: theirs(pixels).block_until_ready(), _CALLS
        ),
        "XLA convolutions, in a loop": _looped(_WithConvolutions(network), pixels),
    }
    print(f"\nThe input gradient of a C4-steerable CNN of 8 layers, {_NUM} images of")
    print(f"{_SIDE} x {_SIDE} pixels, {_FIELDS} fields; median of {REPEATS} runs")
    if is_installed("escnn", "escnn"):
        contestants |= _escnn(np.array(pixels))
    print_times(contestants, "equistein, in a compiled loop")


class _WithConvolutions(eqx.Module):
    """The same network by XLA's own convolution.

    Args:
        network: The network.
    """

    network: SteerableCNN

    def __call__(self, image: Array) -> Any:
        maps = image
        for index, layer in enumerate(self.network.convolutions):
            side, channels = layer.size, maps.shape[-1]
            filters = layer.matrix().reshape(side, side, channels, -1)
            maps = jax.lax.conv_general_dilated(
                maps[None], filters, (1, 1), "SAME",
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
            )[0]  # fmt: skip
            maps = jax.nn.silu(maps + jnp.tile(layer.bias, layer.group.order))
            if index + 1 in _POOL_AFTER:
                size = maps.shape[0] // 2
                maps = jnp.mean(maps.reshape(size, 2, size, 2, -1), axis=(1, 3))
        fields = maps.reshape(-1, 4, _FIELDS[-1])
        return self.network.head(jnp.mean(fields, axis=(0, 1)))


def _scores(network: Callable) -> Callable[[Array], Array]:
    return eqx.filter_jit(jax.vmap(jax.grad(lambda x: jnp.sum(network(x)))))


def _looped(network: Callable, images: Array) -> Contestant:
    gradient = jax.vmap(jax.grad(lambda x: jnp.sum(network(x))))
    loop = jax.jit(
        lambda x: jax.lax.fori_loop(0, _CALLS, lambda _, x: x + 1e-3 * gradient(x), x)
    )
    return Contestant(lambda: loop(images).block_until_ready(), _CALLS)


def _escnn(images: np.ndarray) -> dict[str, Contestant]:
    """Return the same widths in escnn.

    Its filters are expanded once and kept, or anew in each call as it does in training;
    ours are expanded in each call.
    """
    torch = importlib.import_module("torch")
    head = torch.nn.Linear(_FIELDS[-1], 10)
    pixels = torch.tensor(images.transpose(0, 3, 1, 2)).requires_grad_()

    def calls(training: bool) -> Contestant:
        wrap, body = _escnn_layers()
        body.train(training)

        def gradient() -> None:
            maps = body(wrap(pixels)).tensor
            torch.autograd.grad(head(maps.mean(dim=(2, 3))).sum(), pixels)

        return repeated(gradient, _CALLS)

    return {
        "escnn, filters kept": calls(False), "escnn, as in training": calls(True),
    }  # fmt: skip


def _escnn_layers() -> tuple[Callable, Any]:
    """Return what makes pixels an input, and the layers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gspaces = importlib.import_module("escnn.gspaces")
        nn = importlib.import_module("escnn.nn")
        space = gspaces.rot2dOnR2(4)
        before = entering = nn.FieldType(space, [space.trivial_repr])
        layers = []
        for index, fields in enumerate(_FIELDS):
            after = nn.FieldType(space, fields * [space.regular_repr])
            convolution = nn.R2Conv(before, after, kernel_size=3, padding=1)
            layers += [convolution, nn.ELU(after)]
            if index + 1 in _POOL_AFTER:
                layers.append(nn.PointwiseAvgPool2D(after, 2))
            before = after
        body = nn.SequentialModule(*layers, nn.GroupPooling(before))
    return lambda pixels: nn.GeometricTensor(pixels, entering), body
