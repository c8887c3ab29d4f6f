"""Trees of modules in files: JSON that names classes, and arrays."""

import dataclasses
import importlib.metadata
import inspect
import math
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from equistein._check_arguments import check_arguments
from equistein._limits import LimitError
from equistein._serialization import FileFormatError, load_arrays, save_arrays

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

    The header has each module's class by name, its fields, and arrays by number.
    """
    encoder = _Encoder(tree)
    path.parent.mkdir(exist_ok=True)
    save_arrays(path, _KIND, encoder.header, encoder.arrays)


@check_arguments
def load_tree(path: pathlib.Path, known: Iterable[Any]) -> Any:
    """Return the tree in a file, which may be made of known classes and functions."""
    try:
        return _decode_tree(*load_arrays(path, _KIND), known, str(path))
    except LimitError as error:
        raise FileFormatError(str(error)) from None


def pack_tree(tree: Any) -> tuple[Any, ...]:
    """Return a tree in parts that `pickle` takes, the arguments of `unpack_tree`.

    Functions of other libraries are named, as not all of them can be pickled.
    """
    encoder = _Encoder(tree)
    own = [part for part in encoder.code.values() if part not in LIBRARY_PARTS]
    return encoder.header, encoder.arrays, own


def unpack_tree(
    header: dict[str, Any], arrays: dict[str, np.ndarray], own: list[Any]
) -> Any:
    """Return the tree that `pack_tree` was given."""
    return _decode_tree(header, arrays, (*own, *LIBRARY_PARTS), "what was pickled")


def _decode_tree(
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    known: Iterable[Any],
    name: str,
) -> Any:
    try:
        names = {_name_of(part): part for part in known}
        return _Decoder(names, arrays).decode(header["tree"])
    except FileFormatError as error:
        raise FileFormatError(f"{name}: {error}") from None
    except Exception as error:  # whatever a file that others wrote may hold
        raise FileFormatError(f"{name} is damaged: {error!r}.") from None


def _name_of(part: Any) -> str:
    """Return the name of a class or a function in a file."""
    # Custom ones have no package in it, so that their module may move.
    package = str(getattr(part, "__module__", "")).partition(".")[0]
    package = "jax" if package == "jaxlib" else package
    own = package in ("equistein", "equinox", "jax", "optax", "jaxtyping")
    return f"{package}.{part.__name__}" if own else part.__name__


class _Encoder:
    """Turns a tree into JSON, and collects its arrays, and its code by name."""

    def __init__(self, tree: Any):
        self.arrays: dict[str, np.ndarray] = {}
        self.code: dict[str, Any] = {}
        version = importlib.metadata.version("equistein")
        encoded = self._encode(tree, type(tree).__name__)
        self.header = {"equistein": version, "tree": encoded}

    def _encode(self, part: Any, where: str) -> Any:
        if part is None or isinstance(part, bool | int | str):
            return part
        if isinstance(part, float):
            return part if math.isfinite(part) else {"float": str(part)}
        if isinstance(part, jax.Array | np.ndarray | np.generic):
            kind = "array" if isinstance(part, jax.Array) else "numpy"
            node = {kind: len(self.arrays), "shape": list(np.shape(part))}
            self.arrays[str(len(self.arrays))] = np.asarray(part)
            return node
        if isinstance(part, tuple) and hasattr(part, "_fields"):  # a named one
            return self._module(part, part._asdict(), where)  # type: ignore
        if isinstance(part, list | tuple):
            items = [self._encode(x, f"{where}[{i}]") for i, x in enumerate(part)]
            return {"list" if isinstance(part, list) else "tuple": items}
        if isinstance(part, dict):
            return {"dict": self._dict(part, where)}
        if isinstance(getattr(part, "__self__", None), eqx.Module):
            owner = self._encode(part.__self__, where)
            return {"method": part.__name__, "of": owner}
        if isinstance(part, eqx.Module):
            names = [field.name for field in dataclasses.fields(part)]
            return self._module(part, {n: getattr(part, n) for n in names}, where)
        if isinstance(part, jax.tree_util.Partial):
            names = ("func", "args", "keywords")
            return self._module(part, {n: getattr(part, n) for n in names}, where)
        if part is _NO_ACTIVATION:
            return {"function": "equinox.no_activation"}
        if "<" in getattr(part, "__qualname__", "<locals>"):
            raise ValueError(
                f"{where} is {part!r}, which no file can hold: make it a module or a "
                "function at the top of a file, and give it to `es.load` in `classes`."
            )
        return {"function": self._name(part)}

    def _module(self, part: Any, fields: Mapping[str, Any], where: str) -> dict:
        return {"class": self._name(type(part)), "fields": self._dict(fields, where)}

    def _name(self, part: Any) -> str:
        self.code[_name_of(part)] = part
        return _name_of(part)

    def _dict(self, items: Mapping[str, Any], where: str) -> dict:
        return {str(k): self._encode(v, f"{where}.{k}") for k, v in items.items()}


class _Decoder:
    """Turns JSON into a tree again."""

    def __init__(self, names: Mapping[str, Any], arrays: Mapping[str, np.ndarray]):
        self.names, self.arrays = names, arrays

    def decode(self, node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        if "float" in node:
            return float(node["float"])
        if "array" in node:
            return jnp.asarray(self.arrays[str(node["array"])])
        if "numpy" in node:
            return self.arrays[str(node["numpy"])]
        for kind, build in (("list", list), ("tuple", tuple)):
            if kind in node:
                return build(map(self.decode, node[kind]))
        if "dict" in node:
            return self._dict(node["dict"])
        if "method" in node:
            return getattr(self.decode(node["of"]), str(node["method"]))
        if "function" in node:
            return self._known_part(node["function"])
        return self._module(self._known_part(node["class"]), self._dict(node["fields"]))

    def _dict(self, items: dict) -> dict:
        return {name: self.decode(item) for name, item in items.items()}

    def _module(self, cls: Any, fields: dict) -> Any:
        if issubclass(cls, jax.tree_util.Partial):
            return cls(fields["func"], *fields["args"], **fields["keywords"])
        if issubclass(cls, tuple):
            return cls(**fields)
        odd = set(fields) ^ {field.name for field in dataclasses.fields(cls)}
        if odd:
            raise FileFormatError(
                f"its {_name_of(cls)} has other fields than this version's "
                f"({', '.join(sorted(odd))}): read it with the version that wrote it."
            )
        made = object.__new__(cls)
        for name, value in fields.items():
            object.__setattr__(made, name, value)
        return made

    def _known_part(self, name: str) -> Any:
        if name == "equinox.no_activation":
            return _NO_ACTIVATION
        if name not in self.names:
            raise FileFormatError(
                f"it is made of {name!r}, which equistein does not know: give it to "
                f"`es.load(path, classes=[{name.rpartition('.')[2]}])`."
            )
        return self.names[name]
