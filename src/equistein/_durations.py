"""Lengths of time, in words."""


def in_words(seconds: float) -> str:
    """Return a time as one would say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
