"""Several runs at once, shared by the cores of a processor."""

import concurrent.futures
import functools
import operator
import os
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from equistein._types import LogDensity, Point

Part = concurrent.futures.Future[PyTree] | PyTree
"""What a core has of a tree whose arrays have an axis of runs; it may be on its way."""


class Cores:
    """Threads, one a core, each of which moves some of several runs.

    Otherwise all cores share each operation of a step, and wait for each other at each.
    What the threads call must not call Python, which may not expect several of them.

    Where the runs cannot be shared equally the last core repeats some, so that there is
    one program to compile.

    Args:
        runs: The number of runs.
        num: The most cores that share them.
    """

    def __init__(self, runs: int, num: int):
        self._size = -(-runs // num)
        self._num_runs = runs
        make = concurrent.futures.ThreadPoolExecutor
        self._threads = [make(1) for _ in range(-(-runs // self._size))]

    def split(self, tree: PyTree) -> list[PyTree]:
        """Return the part of each core."""
        arrays, rest = eqx.partition(tree, eqx.is_array)
        parts = _split(arrays, len(self._threads), self._size)
        return [eqx.combine(part, rest) for part in parts]

    def begin(
        self, function: Callable[..., PyTree], *lists: Sequence[Part]
    ) -> list[Part]:
        """Begin to call a function of the parts, on each core after what it does."""

        def call(*parts: Part) -> PyTree:
            return jax.block_until_ready(function(*map(_here, parts)))

        return [
            thread.submit(call, *parts)
            for thread, *parts in zip(self._threads, *lists, strict=True)
        ]

    def joined(self, parts: Sequence[Part]) -> PyTree:
        """Wait for all parts, and return the tree of all runs."""
        found = [eqx.partition(_here(part), eqx.is_array) for part in parts]
        arrays = _joined([arrays for arrays, _ in found], self._num_runs)
        return eqx.combine(arrays, found[0][1])

    def close(self) -> None:
        """Wait for what is called, and leave out what is not yet."""
        for thread in self._threads:
            thread.shutdown(cancel_futures=True)


def num_cores() -> int:
    """Return the number of cores that this process may use."""
    every = lambda _: range(os.cpu_count() or 1)
    return len(getattr(os, "sched_getaffinity", every)(0))


def num_shares(runs: int, like: jax.Array) -> int:
    """Return by how many cores runs may be shared, where an array like one of them is.

    By one on a GPU, and where this thread has settings of JAX of its own, such as
    `with jax.enable_x64(True)`, which other threads do not see.
    """
    on_processor = all(device.platform == "cpu" for device in like.devices())
    if not on_processor or runs == 1:
        return 1
    num = min(runs, num_cores())
    if num > 1:
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            if thread.submit(_settings).result() != _settings():
                return 1
    return num


def shared_by_cores(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """Return a function of several runs of which each core has some.

    Args:
        function: A compiled function whose first two arguments have an axis of runs in
            front, and so has what it returns.
    """
    is_compiled = False

    def of_all(first: PyTree, second: PyTree, *others: PyTree) -> PyTree:
        nonlocal is_compiled
        leaf = jax.tree.leaves(eqx.filter(first, eqx.is_array))[0]
        num = num_shares(len(leaf), leaf)
        if num == 1:
            return function(first, second, *others)
        cores = Cores(len(leaf), num)
        parts = cores.split(first), cores.split(second)
        call = lambda *parts: function(*parts, *others)
        if not is_compiled:  # once, and not by each thread
            call(*(part[0] for part in parts))
            is_compiled = True
        try:
            return cores.joined(cores.begin(call, *parts))
        finally:
            cores.close()

    return of_all


@eqx.filter_jit  # looked at once for each kind of density
def calls_python(log_density: LogDensity, point: Point) -> bool:
    """Return whether a density calls code of Python when it is evaluated."""
    return "callback" in str(jax.make_jaxpr(log_density)(point))


def _here(part: Part) -> PyTree:
    is_coming = isinstance(part, concurrent.futures.Future)
    return part.result() if is_coming else part


def _settings() -> dict[str, Any]:
    """Return the settings of JAX in this thread."""
    return dict(jax.config.values)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _split(tree: PyTree, num: int, size: int) -> list[PyTree]:
    last = len(jax.tree.leaves(tree)[0]) - 1
    rows = np.minimum(np.arange(num * size), last).reshape(num, size)
    return [jax.tree.map(operator.itemgetter(some), tree) for some in rows]


@functools.partial(jax.jit, static_argnums=1)
def _joined(parts: list[PyTree], num: int) -> PyTree:
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[:num], *parts)
