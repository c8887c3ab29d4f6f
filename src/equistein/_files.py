"""Files: written whole or not at all, known again, folders held by one process."""

import contextlib
import hashlib
import os
import pathlib
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from typing import BinaryIO

from equistein._errors import UserError

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None

PART = ".part"
"""How the names of files end that are not whole yet."""

LOCK = ".lock"
_PATIENCE = 3  # seconds in which a process that was killed lets go
_BEING_WRITTEN: set[pathlib.Path] = set()


def write_whole(path: pathlib.Path, content: bytes) -> None:
    """Write a file under a temporary name of its own, and rename it into place.

    Args:
        path: The file, in a folder that is there; one that is there is replaced.
        content: What it will hold.

    Raises:
        OSError: If it cannot be written.
    """
    with replacing(path) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path: pathlib.Path) -> Iterator[BinaryIO]:
    """Give a file to write that is renamed to `path` at the end, or removed.

    Raises:
        OSError: If it cannot be written.
    """
    temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}{PART}")
    _BEING_WRITTEN.add(temporary)
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except FileNotFoundError as error:
        if path.parent.is_dir():
            raise
        raise FileNotFoundError(
            f"Cannot write {path}: its folder is not there, or was moved or deleted "
            "meanwhile."
        ) from error
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    finally:
        _BEING_WRITTEN.discard(temporary)


@contextlib.contextmanager
def unfinished(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Give a path for a file or folder that others write, and remove what is left."""
    _BEING_WRITTEN.add(path)
    try:
        yield path
    finally:
        _remove(path)
        _BEING_WRITTEN.discard(path)


def remove_unfinished() -> None:
    """Remove the files that this process has begun to write, as it ends at once."""
    for path in tuple(_BEING_WRITTEN):
        _remove(path)


def _remove(path: pathlib.Path) -> None:
    """Remove a file, or a folder with its files, as far as that can be done."""
    with contextlib.suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


class FolderLock:
    """Keeps other processes of the machine, and of shared disks, out of a folder.

    It ends with the process, however that ends. Where the system or the disk has no
    locks, as on Windows, it keeps nobody out.
    """

    def __init__(self, folder: pathlib.Path):
        """Take the lock.

        Raises:
            UserError: If another process has it, and keeps it for three seconds.
            OSError: If the folder cannot be written.
        """
        self._file = open(folder / LOCK, "a+", encoding="utf-8")
        until = time.monotonic() + _PATIENCE
        while fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    holder = self._holder()
                    self._file.close()
                    raise UserError(
                        f"Another process{holder} works in {folder}: wait for its end, "
                        "or stop it first."
                    ) from None
                time.sleep(0.1)
            except OSError:  # this disk has no locks
                break
        self._file.truncate(0)
        self._file.write(f"{os.getpid()} on {socket.gethostname()}")
        self._file.flush()

    def _holder(self) -> str:
        self._file.seek(0)
        told = self._file.read(200)
        return f", {told}," if told.isprintable() and told else ""

    def release(self) -> None:
        """Let others in."""
        self._file.close()

    def __del__(self):
        self.release()


def digest(path: pathlib.Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of a folder's files.

    Args:
        path: The file or the folder.
    """
    if path.is_file():
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    found = hashlib.sha256()
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        line = f"{file.relative_to(path).as_posix()} {digest(file)}\n"
        found.update(line.encode("utf-8", "surrogateescape"))
    return found.hexdigest()
