"""Files that are written whole or not at all."""

import contextlib
import hashlib
import os
import pathlib
import secrets
import shutil
import threading
from collections.abc import Iterator

PART = ".part"
"""How the names of unfinished files end."""

_UNFINISHED: set[pathlib.Path] = set()
_CREATION = threading.RLock()  # a signal may come while its own thread has it


def write_whole(path: pathlib.Path, content: bytes) -> None:
    """Write a file under a temporary name, and rename it into place."""
    temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}{PART}")
    with remove_at_end(temporary):
        with _CREATION, open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)


@contextlib.contextmanager
def remove_at_end(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Remove a temporary file or folder at the end, if it still exists."""
    _UNFINISHED.add(path)
    try:
        yield path
    finally:
        _remove(path)
        _UNFINISHED.discard(path)


def remove_unfinished() -> None:
    """Remove all temporary files of this process, which is about to end at once."""
    _CREATION.acquire(timeout=1)  # for good: no other thread begins a file after this
    for path in tuple(_UNFINISHED):
        _remove(path)


def _remove(path: pathlib.Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def digest(path: pathlib.Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents in a folder."""
    if path.is_file():
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    combined = hashlib.sha256()
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        line = f"{file.relative_to(path).as_posix()} {digest(file)}\n"
        combined.update(line.encode("utf-8", "surrogateescape"))
    return combined.hexdigest()
