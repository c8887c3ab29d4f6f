"""States whose buffers the next compiled call takes over, on devices with memory."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

State = TypeVar("State", bound=PyTree)


def gives_away(state: PyTree) -> bool:
    """Return whether it pays to let calls take over the buffers of a state.

    It does where devices have a memory of their own, such as a GPU: there only one
    state is, and the last good one waits in the host's. Arrays of several processes
    are left where they are.
    """
    return all(
        leaf.is_fully_addressable
        and all(device.platform != "cpu" for device in leaf.devices())
        for leaf in _arrays(state)
    )


@functools.cache
def giving_away(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, compiled, which takes over the buffers of its first argument.

    The arrays of that argument, a state, are gone afterwards: each must be a buffer of
    its own, such as those of `copied`.
    """

    @eqx.filter_jit(donate="all-except-first")
    def taking(others, state):
        return function(state, *others)

    return lambda state, *others: taking(others, state)


def copied(state: State) -> State:
    """Return a state with buffers of its own."""
    return _of_arrays(jnp.copy, state)


def set_aside(state: State) -> State:
    """Return a copy in the host's memory, which is made while the device goes on."""
    return _of_arrays(lambda leaf: _moved(leaf, "pinned_host"), state)


def brought_back(state: State) -> State:
    """Return a state in the memory of its devices."""
    away = lambda leaf: leaf.sharding.memory_kind == "pinned_host"
    return _of_arrays(
        lambda leaf: _moved(leaf, "device") if away(leaf) else leaf, state
    )


def _moved(leaf: jax.Array, kind: str) -> jax.Array:
    return jax.device_put(leaf, leaf.sharding.with_memory_kind(kind))


def _of_arrays(function: Callable[[jax.Array], jax.Array], state: State) -> State:
    is_array = lambda leaf: isinstance(leaf, jax.Array)
    return jax.tree.map(lambda leaf: function(leaf) if is_array(leaf) else leaf, state)


def _arrays(state: PyTree) -> list[jax.Array]:
    return [leaf for leaf in jax.tree.leaves(state) if isinstance(leaf, jax.Array)]
