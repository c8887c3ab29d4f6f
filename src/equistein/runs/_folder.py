"""The run folder: files written atomically, and read as what nobody vouches for."""

import hashlib
import io
import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from equistein._archive import checked_arrays
from equistein._errors import UserError
from equistein._files import FolderLock, LOCK, PART, write_whole
from equistein._limits import (
    check_bytes,
    in_words,
    JSON_GROWTH,
    LimitError,
    max_bytes,
    VARIABLE,
)
from equistein.runs._config import migrated, VERSION

_MOVABLE = ("data",)  # what may be edited: where data are, whose checksum is kept


class RunFolder:
    """A directory that holds one run, in which one process works at a time."""

    MODEL = "checkpoint/model.eqx"  # where a fit leaves what it learned

    def __init__(self, path: pathlib.Path):
        self.path = path
        self._lock: FolderLock | None = None

    @classmethod
    def create(cls, path: pathlib.Path) -> "RunFolder":
        """Make a new, empty run folder, and hold it.

        Raises:
            UserError: If the folder has something in it, cannot be written, or another
                process works in it.
        """
        folder = cls(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            folder._check_empty()
            folder.hold()
            folder._check_empty()
        except (OSError, ValueError) as error:
            raise UserError(
                f"Cannot write to the output folder {path}: {error}. Choose another "
                "--out."
            ) from None
        return folder

    def _check_empty(self) -> None:
        # What a run killed in the midst of its first file left is no run.
        if any(not file.name.endswith((PART, LOCK)) for file in self.path.iterdir()):
            self.release()
            raise UserError(
                f"The output folder {self.path} is not empty, and nothing in it will "
                f"be overwritten: choose another --out, or `equistein resume "
                f"{self.path}` if it is an unfinished run."
            )

    def hold(self) -> None:
        """Keep other processes out, and remove what killed ones left half written.

        Raises:
            UserError: If another process works in the folder.
            OSError: If it cannot be written.
        """
        if self._lock is None:
            self._lock = FolderLock(self.path)
            for place in (self.path, self.path / "checkpoint", self.path / "figures"):
                for part in place.glob(f".*{PART}"):
                    part.unlink(missing_ok=True)

    def release(self) -> None:
        """Let other processes in."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def remove_if_empty(self) -> None:
        """Remove a new folder that nothing was written to."""
        self.release()
        (self.path / LOCK).unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()

    @classmethod
    def open(cls, path: pathlib.Path) -> "RunFolder":
        """Open a folder that a run made.

        Raises:
            UserError: If it is not one.
        """
        if not (path / "config.json").is_file():
            raise UserError(
                f"{path} is not a run folder: it has no config.json. Give the folder "
                "that `equistein run` or `equistein fit` printed."
            )
        return cls(path)

    def write_config(self, described: Mapping[str, Any]) -> None:
        """Write config.json: what was run, with the version of its format."""
        self.write_json("config.json", {"version": VERSION, **described})

    def read_config(self) -> dict[str, Any]:
        """Return what config.json describes, one of an older version as of this one.

        Raises:
            UserError: If it is missing, damaged, or of a version that is not known.
        """
        try:
            return migrated(self.read_json("config.json"))
        except ValueError as error:
            raise UserError(f"{self.path / 'config.json'}: {error}.") from None

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the object in a JSON file of the run.

        Raises:
            UserError: If the file is missing, damaged, or larger than memory may hold.
        """
        path = self.path / name
        try:
            text = self.read(name, growth=JSON_GROWTH).decode("utf-8")
            value = json.loads(text, parse_constant=_no_number)
        except RecursionError:
            raise UserError(f"Cannot read {path}: its lists nest too deep.") from None
        except (OSError, ValueError) as error:
            raise UserError(f"Cannot read {path}: {error}.") from None
        if not isinstance(value, dict):
            raise UserError(f"{path} should hold a JSON object.")
        return value

    def read(self, name: str, growth: int = 1) -> bytes:
        """Return what a file of the run holds.

        Args:
            name: The file.
            growth: How many times its own size it becomes in memory.

        Raises:
            UserError: If it is larger than memory may hold.
            OSError: If it cannot be read.
        """
        path = self.path / name
        try:
            check_bytes(str(path), growth * path.stat().st_size)
        except LimitError as error:
            raise UserError(str(error)) from None
        return path.read_bytes()

    def read_lines(self, name: str) -> Iterator[str]:
        """Yield the lines of a file of the run, of which each fits into memory.

        Raises:
            UserError: If one does not.
            OSError: If it cannot be read.
        """
        path, longest = self.path / name, max_bytes() // JSON_GROWTH
        with path.open(encoding="utf-8", errors="replace") as lines:
            while line := lines.readline(longest + 1):
                if len(line) > longest:
                    raise UserError(
                        f"{path} has a line of more than {in_words(longest)}. If it is "
                        f"not damaged, set {VARIABLE} to more than {max_bytes()}."
                    )
                yield line

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file, in which every number is finite."""
        self.write(name, json.dumps(value, indent=1, allow_nan=False) + "\n")

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file, whole or not at all.

        Raises:
            OSError: If it cannot be written, or the folder is no longer there.
        """
        if isinstance(content, str):  # names of files need not be UTF-8
            content = content.encode("utf-8", "backslashreplace")
        path = self.path / name
        if self.path.is_dir():
            path.parent.mkdir(exist_ok=True)
        write_whole(path, content)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the settings, which tells what results belong to.

        Raises:
            UserError: If config.json is missing or damaged.
        """
        described = self.read_config()
        bound = {name: described[name] for name in described if name not in _MOVABLE}
        return hashlib.sha256(json.dumps(bound, sort_keys=True).encode()).hexdigest()

    def write_arrays(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Write arrays by name into an .npz file."""
        self.write(name, packed(arrays))

    def read_arrays(self, name: str) -> dict[str, np.ndarray]:
        """Return the arrays of an .npz file.

        Raises:
            UserError: If the file is missing, damaged, or larger than memory may hold.
        """
        path = self.path / name
        try:
            with open(path, "rb") as file:
                return checked_arrays(file, str(path))
        except LimitError as error:
            raise UserError(str(error)) from None
        except Exception as error:  # a damaged file can raise nearly anything
            raise UserError(
                f"Cannot read {path}: {error}. If it is damaged, delete it and resume."
            ) from None


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"it holds {word}, which is no number of JSON")


def packed(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the bytes of an .npz file of arrays."""
    content = io.BytesIO()
    plain: dict[str, Any] = {k: np.asarray(value) for k, value in arrays.items()}
    np.savez(content, allow_pickle=False, **plain)
    return content.getvalue()


def unpacked(content: bytes) -> dict[str, np.ndarray]:
    """Return the arrays that `packed` was given."""
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        return dict(stored)
