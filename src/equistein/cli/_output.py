"""What a command prints: lines while it works, its warnings, and its answer."""

import contextlib
import json
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from equistein._progress import show_progress


class _Output:
    """How this process prints, and the answer so far."""

    quiet: bool = False
    json: bool = False
    values: dict[str, Any] = {}


def set_output(*, quiet: bool, json: bool) -> None:
    """Choose whether lines and bars are left out, and whether answers are JSON."""
    _Output.quiet, _Output.json, _Output.values = quiet, json, {}
    show_progress(not quiet)


def say(line: str) -> None:
    """Print a line while a command works; with --json on the standard error."""
    if not _Output.quiet:
        print(line, file=sys.stderr if _Output.json else sys.stdout, flush=True)


def answer(text: str, **values: Any) -> None:
    """Print the answer; with --json its values are printed at the end instead."""
    _Output.values |= values
    if not _Output.json:
        print(text, flush=True)


def fail(reason: str, status: int) -> int:
    """Print why a command ends early, on the standard error; return its status."""
    _Output.values["error"] = reason
    print(f"equistein: {reason}", file=sys.stderr)
    return status


def print_json(status: int) -> None:
    """Print the JSON object, if it was asked for: the answers and the exit status."""
    if _Output.json:
        values = finite({"status": status, **_Output.values})
        print(json.dumps(values, indent=1))


def finite(value: Any) -> Any:
    """Return a value as JSON holds it, with null for numbers that are not finite."""
    text = json.dumps(value, default=str)
    return json.loads(text, parse_constant=lambda word: None)


def write_numbers(folder: Any, numbers: Any, pictures: Any) -> None:
    """Write metrics.json and the pictures of a run folder, and release it."""
    from equistein.runs import write_figures

    folder.write_json("metrics.json", finite(numbers))
    write_figures(folder, pictures)
    folder.release()
    answer(f"Numbers and pictures: {folder.path}", out=folder.path)


@contextlib.contextmanager
def print_sampling_warnings() -> Iterator[None]:
    """Print the warnings of samplers and of data, each once, on the standard error."""
    from equistein.data import DataWarning
    from equistein.samplers import SamplingWarning

    with warnings.catch_warnings():
        warnings.simplefilter("always", SamplingWarning)
        warnings.simplefilter("always", DataWarning)
        show_others = warnings.showwarning

        def show(message: Any, category: type[Warning], *place: Any) -> None:
            if not issubclass(category, SamplingWarning | DataWarning):
                show_others(message, category, *place)
            elif str(message) not in (old := _Output.values.setdefault("warnings", [])):
                old.append(str(message))
                print(f"equistein: warning: {message}", file=sys.stderr)

        warnings.showwarning = show
        yield
