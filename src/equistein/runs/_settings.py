"""Settings as JSON."""

import dataclasses
import json
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
    try:
        settings = cattrs.Converter(forbid_extra_keys=True).structure(values, kind)
    except Exception as error:  # cattrs collects errors of any type in groups
        reasons = "; ".join(cattrs.transform_error(error, format_exception=_reason))
        raise ValueError(f"invalid {kind.__name__}: {reasons}") from None
    # Compared as text, for JSON tells True from 1, which Python does not.
    stored, text = settings_to_json(settings), lambda v: json.dumps(v, sort_keys=True)
    wrong = [n for n in stored if n not in values or text(values[n]) != text(stored[n])]
    if wrong:
        raise ValueError(
            f"invalid {kind.__name__}: {', '.join(wrong)} missing or of another type"
        )
    return settings


def _reason(error: BaseException, kind: Any) -> str:
    """Return what is wrong: of an invalid value the message of the dataclass."""
    if type(error) is ValueError:
        return str(error)
    return cattrs.v.format_exception(error, kind)
