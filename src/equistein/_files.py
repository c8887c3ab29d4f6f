"""Files that are written whole or not at all."""

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
