"""Files: written whole or not at all, and known again."""

import hashlib
import os
import pathlib


def write_whole(path: pathlib.Path, content: bytes) -> None:
    """Write a file, and its folder, under a temporary name, and rename it into place.

    Args:
        path: The file; one that is there is replaced.
        content: What it will hold.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def digest(path: pathlib.Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of a folder's files.

    Args:
        path: The file or the folder.
    """
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    found = hashlib.sha256()
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        line = f"{file.relative_to(path).as_posix()} {digest(file)}\n"
        found.update(line.encode())
    return found.hexdigest()
