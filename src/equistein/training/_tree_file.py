"""A tree of modules in a file: a readable header, and arrays."""

import hashlib
import importlib.metadata
import io
import json
import pathlib
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from equistein._archive import checked_arrays
from equistein._files import write_whole
from equistein._gate import gate
from equistein._limits import check_bytes, JSON_GROWTH, LimitError
from equistein.training._tree_json import Decoder, Encoder, ModelFileError, name_of

MAGIC = b"equistein tree"
VERSION = 5


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
    4: lambda header: _changed(
        header, "SVGD", lambda fields: {"mesh": None, "ring": False} | fields
    ),
}
"""For each old version the function that makes its header one of the next version."""


def save_tree(path: pathlib.Path, tree: Any) -> None:
    """Write a tree into a file, whose folder is made if the one above it is there.

    Raises:
        OSError: If it cannot be written.
        ValueError: As `packed_tree` does.
    """
    content = packed_tree(tree)[0]
    path.parent.mkdir(exist_ok=True)
    write_whole(path, content)


@gate
def load_tree(path: pathlib.Path, known: Iterable[Any]) -> Any:
    """Return the tree in a file, which may be made of known classes and functions.

    Raises:
        ModelFileError: If the file is none, is damaged, larger than memory may hold, or
            needs other classes.
    """
    try:
        check_bytes(str(path), path.stat().st_size)
    except LimitError as error:
        raise ModelFileError(str(error)) from None
    return unpacked_tree(path.read_bytes(), known, str(path))


def packed_tree(tree: Any) -> tuple[bytes, dict[str, Any]]:
    """Return a tree as the content of a file, and the code it is made of by name.

    The content begins with a line that tells the version, the length of the header and
    the checksum of all that follows. The header is JSON: for each module its class's
    name and its fields, for each array its number. It never names code to import.

    Raises:
        ValueError: If the tree holds anything but modules, tuples, lists, dictionaries,
            numbers, texts, arrays and named functions, such as a lambda.
    """
    arrays: list[np.ndarray] = []
    encoder = Encoder(arrays)
    description = encoder.encode(tree, type(tree).__name__)
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
    return MAGIC + first.encode() + rest, encoder.code


def unpacked_tree(content: bytes, known: Iterable[Any], name: str) -> Any:
    """Return the tree that `packed_tree` was given, of known classes and functions.

    Raises:
        ModelFileError: If the file is none, is damaged, or needs other classes.
    """
    version, header, content = _parts(content, name)
    names = {name_of(each): each for each in known}
    try:
        check_bytes(f"The header of {name}", JSON_GROWTH * len(header))
        found = json.loads(header)
        for old in range(version, VERSION):
            found = MIGRATIONS[old](found)
        stored = checked_arrays(io.BytesIO(content), name)
        arrays = [stored[str(i)] for i in range(len(stored))]
        return Decoder(names, arrays).decode(found["tree"])
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {error}") from None
    except LimitError as error:
        raise ModelFileError(str(error)) from None
    except Exception as error:  # whatever a file that others wrote may hold
        raise ModelFileError(f"{name} is damaged: {error!r}.") from None


def _parts(content: bytes, path: str) -> tuple[int, bytes, bytes]:
    """Return the version, the header and the arrays' bytes, which were checked."""
    first = content[:1_000].partition(b"\n")[0] + b"\n"
    rest = content[len(first) :]
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
