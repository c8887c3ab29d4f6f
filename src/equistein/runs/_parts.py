"""Which parts of a run are done."""

from collections.abc import Sequence

from equistein.runs._folder import RunFolder

_FILE = "parts.json"


def write_parts(folder: RunFolder, parts: Sequence[str], done: Sequence[str]) -> None:
    """Write which parts a run has, and which of them are done."""
    folder.write_json(_FILE, {"parts": list(parts), "done": list(done)})


def unfinished(folder: RunFolder) -> str:
    """Return what the report says of a run that was interrupted, or nothing.

    Raises:
        UserError: If the file that tells is damaged.
    """
    if not (folder.path / _FILE).is_file():  # as of runs of before
        return ""
    told = folder.read_json(_FILE)
    num, num_done = (len(told.get(name) or ()) for name in ("parts", "done"))
    if num_done >= num:
        return ""
    verb = "is" if num_done == 1 else "are"
    return (
        f"Interrupted: {num_done} of {num} parts {verb} done; `equistein resume "
        f"{folder.path}` goes on."
    )
