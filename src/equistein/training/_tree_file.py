"""Trees of modules in files: JSON that names classes, and arrays."""

import dataclasses
import importlib.metadata
import inspect
import io
import math
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from equistein._gate import gate
from equistein._limits import LimitError
from equistein._serialization import (
    FileFormatError,
    load_arrays,
    pack_arrays,
    save_arrays,
    unpack_arrays,
)

_KIND = "model"
LIBRARY_PARTS = (
    eqx.nn.Linear, eqx.nn.MLP, eqx.nn.Conv, eqx.nn.Conv2d, eqx.nn.LayerNorm,
    eqx.Partial, optax.EmptyState, optax.GradientTransformation, jax.nn.silu,
    jax.nn.relu, jax.nn.gelu, jax.nn.tanh, jax.nn.sigmoid, jax.nn.softplus, jax.nn.elu,
    jax.numpy.tanh, jax.numpy.sin,
)  # fmt: skip
"""Classes and functions of other libraries that a tree may be made of."""

# What equinox.nn.MLP has for its last activation by default: a function with no name.
_NO_ACTIVATION = inspect.signature(eqx.nn.MLP).parameters["final_activation"].default


def save_tree(path: pathlib.Path, tree: Any) -> None:
    """Write a tree into a file, whose folder is made if the one above it exists.

    The header describes each module by the name of its class and its fields, each array
    by its number. It never names code to import.

    Raises:
        OSError: If it cannot be written.
        ValueError: If the tree holds anything but modules, tuples, lists, dictionaries,
            numbers, strings, arrays and named functions, such as a lambda.
    """
    header, encoder = _encoded(tree)
    path.parent.mkdir(exist_ok=True)
    save_arrays(path, _KIND, header, encoder.named_arrays())


@gate
def load_tree(path: pathlib.Path, known: Iterable[Any]) -> Any:
    """Return the tree in a file, which may be made of known classes and functions.

    Raises:
        FileFormatError: If the file is no model, is damaged, larger than memory may
            hold, or needs other classes.
    """
    try:
        return _decoded(*load_arrays(path, _KIND), known, str(path))
    except LimitError as error:
        raise FileFormatError(str(error)) from None


def pack_tree(tree: Any) -> tuple[bytes, dict[str, Any]]:
    """Return a tree as the content of a file, and the code it is made of by name."""
    header, encoder = _encoded(tree)
    return pack_arrays(_KIND, header, encoder.named_arrays()), encoder.code


def unpack_tree(content: bytes, known: Iterable[Any], name: str) -> Any:
    """Return the tree that `pack_tree` was given."""
    return _decoded(*unpack_arrays(io.BytesIO(content), _KIND, name), known, name)


def _encoded(tree: Any) -> tuple[dict[str, Any], "_Encoder"]:
    encoder = _Encoder([])
    version = importlib.metadata.version("equistein")
    description = encoder.encode(tree, type(tree).__name__)
    return {"equistein": version, "tree": description}, encoder


def _decoded(
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    known: Iterable[Any],
    name: str,
) -> Any:
    try:
        rows = [arrays[str(i)] for i in range(len(arrays))]
        return _Decoder({_name_of(k): k for k in known}, rows).decode(header["tree"])
    except FileFormatError as error:
        raise FileFormatError(f"{name}: {error}") from None
    except Exception as error:  # whatever a file that others wrote may hold
        raise FileFormatError(f"{name} is damaged: {error!r}.") from None


def _name_of(part: Any) -> str:
    """Return the name of a class or a function in a file.

    Custom ones have no package in it, so that their module may move.
    """
    package = str(getattr(part, "__module__", "")).partition(".")[0]
    libraries = ("equistein", "equinox", "jax", "optax", "jaxtyping")
    package = "jax" if package == "jaxlib" else package
    return f"{package}.{part.__name__}" if package in libraries else part.__name__


class _Encoder:
    """Turns a tree into JSON, and collects its arrays, and its code by name."""

    def __init__(self, arrays: list[np.ndarray]):
        self.arrays = arrays
        self.code: dict[str, Any] = {}

    def named_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays by their numbers."""
        return {str(i): array for i, array in enumerate(self.arrays)}

    def encode(self, part: Any, where: str) -> Any:
        if part is None or isinstance(part, bool | int | str):
            return part
        if isinstance(part, float):
            return part if math.isfinite(part) else {"float": str(part)}
        if isinstance(part, jax.Array | np.ndarray | np.generic):
            self.arrays.append(np.asarray(part))
            kind = "array" if isinstance(part, jax.Array) else "numpy"
            return {kind: len(self.arrays) - 1, "shape": list(np.shape(part))}
        names = getattr(part, "_fields", None)
        if isinstance(part, tuple) and names is not None:  # a named one
            fields = self._dict(dict(zip(names, part, strict=True)), where)
            return {"class": self._name(type(part)), "fields": fields}
        if isinstance(part, list | tuple):
            items = [self.encode(x, f"{where}[{i}]") for i, x in enumerate(part)]
            return {"list" if isinstance(part, list) else "tuple": items}
        if isinstance(part, dict):
            return {"dict": self._dict(part, where)}
        return self._code(part, where)

    def _code(self, part: Any, where: str) -> Any:
        """Return a module, a method of one, or a function by name."""
        owner = getattr(part, "__self__", None)
        if isinstance(owner, eqx.Module):
            return {"method": part.__name__, "of": self.encode(owner, where)}
        if isinstance(part, eqx.Module | jax.tree_util.Partial):
            fields = vars(part) if isinstance(part, eqx.Module) else {
                "func": part.func, "args": part.args, "keywords": part.keywords,
            }  # fmt: skip
            return {
                "class": self._name(type(part)),
                "fields": self._dict(fields, where),
            }
        if part is _NO_ACTIVATION:
            return {"function": "equinox.no_activation"}
        qualified = getattr(part, "__qualname__", "<locals>")
        if "<" in qualified:
            raise ValueError(
                f"{where} is {part!r}, which no file can hold: make it a module or a "
                "function at the top of a file, and give it to `es.load` in `classes`."
            )
        return {"function": self._name(part)}

    def _name(self, part: Any) -> str:
        """Return the name of a class or a function, and remember which it is."""
        self.code[_name_of(part)] = part
        return _name_of(part)

    def _dict(self, items: Mapping[str, Any], where: str) -> dict:
        return {str(k): self.encode(v, f"{where}.{k}") for k, v in items.items()}


class _Decoder:
    """Turns JSON into a tree again."""

    def __init__(self, names: Mapping[str, Any], arrays: list[np.ndarray]):
        self.names = names
        self.arrays = arrays

    def decode(self, node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        if "float" in node:
            return float(node["float"])
        if "array" in node:
            return jnp.asarray(self.arrays[node["array"]])
        if "numpy" in node:
            return self.arrays[node["numpy"]]
        for kind, build in (("list", list), ("tuple", tuple)):
            if kind in node:
                return build(self.decode(item) for item in node[kind])
        if "dict" in node:
            return {name: self.decode(item) for name, item in node["dict"].items()}
        if "method" in node:
            return getattr(self.decode(node["of"]), str(node["method"]))
        if "function" in node:
            return self._known(node["function"])
        return self._module(node)

    def _module(self, node: dict) -> Any:
        cls = self._known(node["class"])
        fields = {name: self.decode(item) for name, item in node["fields"].items()}
        if issubclass(cls, jax.tree_util.Partial):
            return cls(fields["func"], *fields["args"], **fields["keywords"])
        if issubclass(cls, tuple):
            return cls(**fields)
        expected = {field.name for field in dataclasses.fields(cls)}
        if set(fields) != expected:
            odd = ", ".join(sorted(set(fields) ^ expected))
            raise FileFormatError(
                f"its {node['class']} has other fields than this version's ({odd}): "
                "read it with the version that wrote it."
            )
        made = object.__new__(cls)
        for name, value in fields.items():
            object.__setattr__(made, name, value)
        return made

    def _known(self, name: str) -> Any:
        if name == "equinox.no_activation":
            return _NO_ACTIVATION
        if name not in self.names:
            raise FileFormatError(
                f"it is made of {name!r}, which equistein does not know: give it to "
                f"`es.load(path, classes=[{name.rpartition('.')[2]}])`."
            )
        return self.names[name]
