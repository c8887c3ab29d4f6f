"""Settings as JSON, and as options of the command line."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, TypeVar

import cattrs

Settings = TypeVar("Settings")


def settings_to_json(settings: Any) -> dict[str, Any]:
    """Return a dataclass of numbers, strings, tuples and such dataclasses as JSON.

    Raises:
        ValueError: If a number is not finite, which JSON cannot hold.
    """
    try:
        return json.loads(json.dumps(dataclasses.asdict(settings), allow_nan=False))
    except ValueError:
        raise ValueError(
            f"Every number of a {type(settings).__name__} must be finite, but got "
            f"{settings}."
        ) from None


def settings_from_json(kind: type[Settings], values: Any) -> Settings:
    """Return settings of a dataclass with the stored values.

    Raises:
        ValueError: If a field is missing, unknown, of another type or out of range.
    """
    converter = cattrs.Converter(forbid_extra_keys=True)
    try:
        settings = converter.structure(values, kind)
    except Exception as error:  # cattrs collects errors of any type in groups
        reasons = "; ".join(cattrs.transform_error(error, format_exception=_reason))
        raise ValueError(f"invalid {kind.__name__}: {reasons}") from None
    stored = settings_to_json(settings)
    # JSON tells True from 1, which Python does not.
    text = lambda value: json.dumps(value, sort_keys=True)
    if text(stored) != text(values):  # a field is missing, or a value was converted
        names = [
            name for name in stored if text(values.get(name)) != text(stored[name])
        ]
        raise ValueError(
            f"invalid {kind.__name__}: {', '.join(names)} missing or of another type"
        )
    return settings


def _reason(error: BaseException, kind: Any) -> str:
    """Return what is wrong: of an invalid value the message of the dataclass."""
    if type(error) is ValueError:
        return str(error)
    return cattrs.v.format_exception(error, kind)


def options_of(
    values: Mapping[str, Any], defaults: Mapping[str, Any], prefix: str = ""
) -> list[str]:
    """Return the options of the command line that set values other than the defaults.

    Args:
        values: The settings, as JSON.
        defaults: Those that need no option.
        prefix: What the names of nested settings begin with.
    """
    words: list[str] = []
    for name, value in values.items():
        option = f"{prefix}{name.replace('_', '-')}"
        if name in defaults and value == defaults[name]:
            continue
        if isinstance(value, dict):
            words += options_of(value, defaults.get(name) or {}, f"{option}.")
        elif isinstance(value, bool):
            before, dot, last = option.rpartition(".")
            words.append(f"--{option}" if value else f"--{before}{dot}no-{last}")
        elif isinstance(value, list):
            words += [f"--{option}", *map(str, value)]
        else:
            words += [f"--{option}", str(value)]
    return words
