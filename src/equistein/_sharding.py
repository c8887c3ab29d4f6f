"""Work on rows, split over the devices of a mesh."""

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, PyTree

AXIS = "particles"

Rows = TypeVar("Rows", bound=PyTree)


def device_mesh(num_devices: int | None = None) -> Mesh:
    """Return a mesh of devices for `mesh` of `es.run` and `es.fit`.

    Of the first `num_devices`; by default of all, of all processes.
    """
    found = jax.devices()
    number = len(found) if num_devices is None else num_devices
    if not isinstance(number, int) or not 0 < number <= len(found):
        raise ValueError(
            f"`num_devices` must be from 1 to {len(found)}, the devices that JAX finds "
            f"({found[0].platform}), but got {num_devices!r}. Devices to try it out on "
            "one processor: XLA_FLAGS=--xla_force_host_platform_device_count=8."
        )
    return Mesh(np.asarray(found[:number]), (AXIS,))


def check_mesh(owner: str, mesh: Any) -> Mesh:
    """Return a mesh to split rows over; raise `ValueError` unless it has their axis."""
    if not isinstance(mesh, Mesh) or AXIS not in mesh.axis_names:
        axes = tuple(mesh.axis_names) if isinstance(mesh, Mesh) else mesh
        raise ValueError(
            f"`{owner}` needs `mesh`, a jax.sharding.Mesh with an axis {AXIS!r} such "
            f"as es.device_mesh(), but got {axes!r}."
        )
    # With automatic axes: the compiler shards the rest.
    return Mesh(mesh.devices, mesh.axis_names)


def replicate(tree: PyTree, mesh: Mesh) -> PyTree:
    """Return a tree whose arrays, equal in all processes, are on all devices."""
    place = NamedSharding(mesh, PartitionSpec())

    def put(leaf):
        if not eqx.is_array(leaf):
            return leaf
        if isinstance(leaf.sharding, NamedSharding) and leaf.sharding.mesh == mesh:
            return leaf
        if place.is_fully_addressable:
            return jax.device_put(leaf, place)
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jr.wrap_key_data(put(jr.key_data(leaf)), impl=jr.key_impl(leaf))
        values = np.asarray(leaf)
        return jax.make_array_from_callback(leaf.shape, place, values.__getitem__)

    return jax.tree.map(put, tree)


def fetch(tree: PyTree) -> PyTree:
    """Return a tree that this process can read: what is on others is gathered."""
    away = lambda leaf: isinstance(leaf, jax.Array) and not leaf.is_fully_addressable

    def fetch_leaf(leaf):
        if not away(leaf):
            return leaf
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            data = fetch_leaf(jr.key_data(leaf))
            return jr.wrap_key_data(data, impl=jr.key_impl(leaf))
        if not leaf.is_fully_replicated:
            whole = NamedSharding(leaf.sharding.mesh, PartitionSpec())  # type: ignore
            leaf = jax.jit(lambda x: x, out_shardings=whole)(leaf)
        return jnp.asarray(np.asarray(leaf))

    return jax.tree.map(fetch_leaf, tree)


def answer_of_first_process(answer: bool) -> bool:
    """Return the first process's answer, in all processes."""
    from jax.experimental import multihost_utils

    return bool(multihost_utils.broadcast_one_to_all(np.asarray(answer)))


def check_agreed(owner: str, tree: PyTree, *settings: Any) -> None:
    """Raise `ValueError`, in all processes, unless all were given the same."""
    if jax.process_count() == 1:
        return
    known = [jax.__version__, jax.config.read("jax_enable_x64"), *settings]
    content = [repr(known).encode()]
    for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array_like)):
        if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
            continue  # one array of all processes
        is_key = eqx.is_array(leaf) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        values = np.asarray(jr.key_data(leaf) if is_key else leaf)
        content += [repr((values.shape, values.dtype)).encode(), values.tobytes()]
    from jax.experimental import multihost_utils

    own = np.frombuffer(hashlib.sha256(b"".join(content)).digest(), np.uint8)
    every = np.asarray(multihost_utils.process_allgather(own.astype(np.int32)))
    different = [i for i, other in enumerate(every) if np.any(other != every[0])]
    if different:
        raise ValueError(
            f"Processes {', '.join(map(str, different))} were given another {owner} "
            "than process 0: its arguments, the version of JAX and its precision must "
            "be the same in all."
        )


def shard_rows(tree: PyTree, mesh: Mesh, num: int | None = None) -> PyTree:
    """Return a tree whose arrays of rows are split over the devices.

    Rows are arrays of length `num`, of which the last device may have fewer; by default
    any that the devices share equally.
    """
    rows = NamedSharding(mesh, PartitionSpec(AXIS))

    def split(leaf):
        if not eqx.is_array(leaf) or leaf.ndim == 0:
            return leaf
        shared = len(leaf) % mesh.shape[AXIS] == 0 if num is None else len(leaf) == num
        return jax.lax.with_sharding_constraint(leaf, rows) if shared else leaf

    return jax.tree.map(split, tree)


def split_over_devices(
    mesh: Mesh | None,
    function: Callable[..., Rows],
    rows: Float[Array, "row *shape"],
    *whole: PyTree,
) -> Rows:
    """Return `function(rows, *whole)`, each device computing it for its rows.

    The rows are padded to a multiple of the devices; the results, a tree of arrays with
    as many rows, are gathered once. Without a mesh nothing is split.
    """
    if mesh is None:
        return function(rows, *whole)
    arrays, static = eqx.partition(whole, eqx.is_array)
    like = eqx.filter_eval_shape(function, rows, *whole)
    leaves, structure = jax.tree.flatten(like)
    num, devices = len(rows), mesh.shape[AXIS]
    padded = rows[np.arange(-(-num // devices) * devices) % num]

    def of_device(rows, arrays):
        found = jax.tree.leaves(function(rows, *eqx.combine(arrays, static)))
        columns = [leaf.reshape(len(rows), -1) for leaf in found]
        return jax.lax.all_gather(jnp.concatenate(columns, axis=1), AXIS, tiled=True)

    gathered = jax.shard_map(
        of_device, mesh=mesh, in_specs=(PartitionSpec(AXIS), PartitionSpec()),
        out_specs=PartitionSpec(), check_vma=False,
    )(padded, arrays)[:num]  # fmt: skip
    ends = np.cumsum([leaf.size // num for leaf in leaves])[:-1]
    parts = jnp.split(gathered, ends, axis=1)
    found = [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(structure, found)
