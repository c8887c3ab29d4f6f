"""The second line of a frame of an extended .xyz file."""

import math
import re

_ENTRY = re.compile(
    r"""(?<!\S) ([A-Za-z]\w*) \s*=\s* ("[^"]*" | '[^']*' | \{[^}]*\} | \[[^\]]*\] | \S+)
    """,
    re.VERBOSE,
)
_FORCES = ("forces", "force")
_NONE = {"f", "false", "no", "none"}


def columns_of(comment: str) -> tuple[int, int, int | None] | None:
    """Return the columns of the element, of x and of the force along x, if any.

    None where the comment names no columns.

    Only a value with a colon is a list of columns; `Properties=none` is prose.

    Raises:
        ValueError: If the list is damaged, or lacks the element or the position.
    """
    value = _entries(comment).get("properties", "")
    if ":" not in value:
        return None
    fields = value.split(":")
    if len(fields) % 3 or not all(re.fullmatch("[0-9]{1,3}", f) for f in fields[2::3]):
        raise ValueError(f"cannot read the columns {value[:60]!r}.")
    first, widths, column = {}, {}, 0
    for name, width in zip(fields[::3], map(int, fields[2::3]), strict=True):
        first[name], widths[name] = column, width
        column += width
    if widths.get("species") != 1 or widths.get("pos") != 3:
        raise ValueError(
            "the properties need `species` of one column and `pos` of three, but are "
            f"{value[:60]!r}."
        )
    force = next((first[n] for n in _FORCES if widths.get(n) == 3), None)
    return first["species"], first["pos"], force


def energy_of(comment: str) -> float | None:
    """Return the energy that a comment tells, in the file's unit, usually eV.

    Raises:
        ValueError: If it is no finite number.
    """
    word = _entries(comment).get("energy")
    if word is None:
        return None
    try:
        energy = float(word)
    except ValueError:
        energy = math.nan
    if not math.isfinite(energy):
        raise ValueError(f"the energy {word[:40]!r} is no finite number.")
    return energy


def is_periodic(comment: str) -> bool:
    """Return whether `pbc` has a true entry, or is left out beside a `Lattice`."""
    entries = _entries(comment)
    value = entries.get("pbc", entries.get("lattice", "none"))
    words = value.replace(",", " ").lower().split()
    return any(word not in _NONE and word.strip("+-0.") for word in words)


def _entries(comment: str) -> dict[str, str]:
    """Return the values of the pairs key=value, without quotes, by lower-case key."""
    return {
        found.group(1).lower(): found.group(2).strip("\"'{}[]")
        for found in reversed(list(_ENTRY.finditer(comment)))
    }
