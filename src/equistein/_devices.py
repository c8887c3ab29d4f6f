"""Work on rows, split over the devices of a mesh."""

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, PyTree

AXIS = "particles"

Rows = TypeVar("Rows", bound=PyTree)


def device_mesh(num_devices: int | None = None) -> Mesh:
    """Return a mesh of devices for `mesh` of `es.run` and `es.fit`.

    Args:
        num_devices: How many, the first ones; by default all, of all processes.

    Raises:
        ValueError: If there are fewer.
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


def checked_mesh(owner: str, mesh: Any) -> Mesh:
    """Return a mesh to split rows over.

    Raises:
        ValueError: If it is none, or has no axis for rows.
    """
    if not isinstance(mesh, Mesh) or AXIS not in mesh.axis_names:
        axes = tuple(mesh.axis_names) if isinstance(mesh, Mesh) else mesh
        raise ValueError(
            f"`{owner}` needs `mesh`, a jax.sharding.Mesh with an axis {AXIS!r} such "
            f"as es.device_mesh(), but got {axes!r}."
        )
    return Mesh(mesh.devices, mesh.axis_names)  # sharding by the compiler elsewhere


def on_all(tree: PyTree, mesh: Mesh) -> PyTree:
    """Return a tree whose arrays are whole on each device."""
    arrays, static = eqx.partition(tree, eqx.is_array)
    return eqx.combine(
        jax.device_put(arrays, NamedSharding(mesh, PartitionSpec())), static
    )


def kept_split(tree: PyTree, mesh: Mesh, num: int | None = None) -> PyTree:
    """Return a tree whose arrays of rows are split over the devices.

    Args:
        tree: The tree.
        mesh: The devices.
        num: The number of the rows; by default any that the devices can share.
    """
    rows = NamedSharding(mesh, PartitionSpec(AXIS))

    def split(leaf):
        if not eqx.is_array(leaf) or leaf.ndim == 0:
            return leaf
        shared = len(leaf) % mesh.shape[AXIS] == 0 if num is None else len(leaf) == num
        return jax.lax.with_sharding_constraint(leaf, rows) if shared else leaf

    return jax.tree.map(split, tree)


def split_rows(
    mesh: Mesh | None,
    function: Callable[..., Rows],
    rows: Float[Array, "row *shape"],
    *whole: PyTree,
) -> Rows:
    """Return `function(rows, *whole)`, each device computing it for its rows.

    The rows are padded to a multiple of the devices; what the devices found is gathered
    once, so that all of it is on each.

    Args:
        mesh: The devices; None computes all rows where they are.
        function: From some rows and what is whole, a tree of arrays with as many rows.
        rows: The rows.
        whole: What each device has.
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
