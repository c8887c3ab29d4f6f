"""A tree of modules in a file: a readable header, and arrays."""

import hashlib
import importlib.metadata
import inspect
import io
import json
import math
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from equistein._files import write_whole

MAGIC = b"equistein tree"
VERSION = 4


def _changed(header: Any, name: str, change: Callable[[dict], dict]) -> Any:
    """Return a header with the fields of all modules of one class changed."""
    if isinstance(header, list):
        return [_changed(part, name, change) for part in header]
    if not isinstance(header, dict):
        return header
    header = {key: _changed(part, name, change) for key, part in header.items()}
    if header.get("class") == f"equistein.{name}":
        header["fields"] = change(header["fields"])
    return header


def _with_subspace(fields: dict) -> dict:
    """Return a normal density's fields, of version 1, where it lives on a group's."""
    return {"subspace" if key == "group" else key: fields[key] for key in fields}


MIGRATIONS: dict[int, Callable[[dict], dict]] = {
    1: lambda header: _changed(header, "Normal", _with_subspace),
    2: lambda header: _changed(
        header, "ReverseDiffusion", lambda fields: fields | {"ending": "mean"}
    ),
    3: lambda header: _changed(
        header, "DiffusionSteps", lambda fields: fields | {"temperature": 1.0}
    ),
}
"""For each old version the function that makes its header one of the next version."""

# What equinox.nn.MLP has for its last activation by default: a function with no name.
_NO_ACTIVATION = inspect.signature(eqx.nn.MLP).parameters["final_activation"].default


class ModelFileError(ValueError):
    """A file holds no model, is damaged, or needs classes that were not given."""


def save_tree(path: pathlib.Path, tree: Any) -> None:
    """Write a tree into a file.

    The file begins with a line that tells the version, the length of the header and
    the checksum of all that follows. The header is JSON: for each module its class's
    name and its fields, for each array its number. It never names code to import.

    Raises:
        ValueError: If the tree holds anything but modules, tuples, lists, dictionaries,
            numbers, texts, arrays and named functions, such as a lambda.
    """
    arrays: list[np.ndarray] = []
    description = _Encoder(arrays).encode(tree, type(tree).__name__)
    payload = io.BytesIO()
    named: dict[str, Any] = {str(i): array for i, array in enumerate(arrays)}
    np.savez(payload, allow_pickle=False, **named)
    content = payload.getvalue()
    header = json.dumps(
        {"equistein": importlib.metadata.version("equistein"), "tree": description},
        indent=1,
    ).encode()
    rest = header + b"\n" + content
    first = f" {VERSION} {len(header)} {hashlib.sha256(rest).hexdigest()}\n"
    write_whole(path, MAGIC + first.encode() + rest)


def load_tree(path: pathlib.Path, known: Iterable[Any]) -> Any:
    """Return the tree in a file, which may be made of known classes and functions.

    Raises:
        ModelFileError: If the file is none, is damaged, or needs other classes.
    """
    version, header, content = _read(path)
    names = {name_of(each): each for each in known}
    try:
        found = json.loads(header)
        for old in range(version, VERSION):
            found = MIGRATIONS[old](found)
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = [stored[str(i)] for i in range(len(stored.files))]
        return _Decoder(names, arrays).decode(found["tree"])
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except Exception as error:  # whatever a file that others wrote may hold
        raise ModelFileError(f"{path} is damaged: {error!r}.") from None


def name_of(part: Any) -> str:
    """Return the name by which a file tells a class or a function.

    Those of a user have no package before it, so that their module may move.
    """
    package = str(getattr(part, "__module__", "")).partition(".")[0]
    libraries = ("equistein", "equinox", "jax", "optax", "jaxtyping")
    package = "jax" if package == "jaxlib" else package
    return f"{package}.{part.__name__}" if package in libraries else part.__name__


def _read(path: pathlib.Path) -> tuple[int, bytes, bytes]:
    """Return the version, the header and the arrays' bytes, which were checked."""
    with open(path, "rb") as file:
        first, rest = file.readline(1_000), file.read()
    version = re.match(MAGIC + rb" (\d{1,9})[ \n]", first)
    if version is not None and int(version[1]) > VERSION:
        raise ModelFileError(
            f"{path} was written by a later version of equistein: update equistein."
        )
    sizes = re.fullmatch(MAGIC + rb" \d+ (\d{1,9}) ([0-9a-f]{64})\n", first)
    if version is None or sizes is None:
        raise ModelFileError(
            f"{path} is no model that this version of equistein wrote. One of before "
            "has to be fitted anew, or read with the version in its environment.json."
        )
    if hashlib.sha256(rest).hexdigest() != sizes[2].decode():
        raise ModelFileError(
            f"{path} is damaged: its content does not match its checksum."
        )
    length = int(sizes[1])
    return int(version[1]), rest[:length], rest[length + 1 :]


class _Encoder:
    """Turns a tree into JSON, and collects its arrays."""

    def __init__(self, arrays: list[np.ndarray]):
        self.arrays = arrays

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
            return {"class": name_of(type(part)), "fields": fields}
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
            return {"class": name_of(type(part)), "fields": self._dict(fields, where)}
        if part is _NO_ACTIVATION:
            return {"function": "equinox.no_activation"}
        qualified = getattr(part, "__qualname__", "<locals>")
        if "<" in qualified:
            raise ValueError(
                f"{where} is {part!r}, which no file can hold: make it a module or a "
                "function at the top of a file, and give it to `es.load` in `classes`."
            )
        return {"function": name_of(part)}

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
        expected = {field.name for field in cls.__dataclass_fields__.values()}
        if set(fields) != expected:
            odd = ", ".join(sorted(set(fields) ^ expected))
            raise ModelFileError(
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
            raise ModelFileError(
                f"it is made of {name!r}, which equistein does not know: give it to "
                f"`es.load(path, classes=[{name.rpartition('.')[2]}])`."
            )
        return self.names[name]
