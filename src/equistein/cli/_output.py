"""What a command prints: lines while it works, and its answer."""

import json
import math
import sys
from typing import Any

from equistein._progress import print_line, show_progress


class _Output:
    """How this process prints, and the answer as far as it is known."""

    quiet: bool = False
    json: bool = False
    known: dict[str, Any] = {}
    warnings: list[str] = []


def set_output(*, quiet: bool, json: bool) -> None:
    """Choose whether lines and bars are left out, and whether answers are JSON."""
    _Output.quiet, _Output.json, _Output.known = quiet, json, {}
    _Output.warnings = []
    show_progress(not quiet)


def say(line: str) -> None:
    """Print a line while a command works; beside JSON on the standard error."""
    if not _Output.quiet:
        print_line(line, sys.stderr if _Output.json else sys.stdout)


def answer(text: str, **values: Any) -> None:
    """Print what was asked for, or keep it for the one JSON object at the end."""
    _Output.known |= values
    if not _Output.json:
        print(text, flush=True)


def warn(text: str) -> None:
    """Print what the results should be doubted for on the standard error, once."""
    if text not in _Output.warnings:
        _Output.warnings.append(text)
        _Output.known["warnings"] = _Output.warnings
        print_line(f"equistein: warning: {text}", sys.stderr)


def fail(reason: str) -> None:
    """Print why a command ends early, on the standard error."""
    _Output.known["error"] = reason
    print(f"equistein: {reason}", file=sys.stderr)


def close(status: int) -> None:
    """Print the JSON object, if it was asked for: the answers and the exit status."""
    if _Output.json:
        told = finite({"status": status, **_Output.known})
        print(json.dumps(told, indent=1, default=str))


def finite(value: Any) -> Any:
    """Return JSON with null for the numbers that are not finite."""
    if isinstance(value, dict):
        return {str(name): finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
