"""Configurations as JSON, and how those of older versions are read."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

VERSION = 3
"""The version of config.json; one more whenever what it holds changes its meaning."""


_RENAMED = {
    **{
        f"{name}step": f"{name}step_size"
        for name in ("", "annealed_", "radial_", "mala_", "nuts_", "quiet_", "sample_")
    },
    "lengths": "bandwidths",
    "annealed_share": "annealed_fraction",
    "corrected_share": "corrected_fraction",
    "num_starts": "num_seeds",
}


def _from_version_1(described: dict) -> dict:
    """Drop the report's words, which stood beside the settings, and rename fields."""
    now = {name: value for name, value in described.items() if name != "words"}
    config = now.get("config")
    if now.get("command") == "run" and isinstance(config, dict):
        now["config"] = {_RENAMED.get(name, name): config[name] for name in config}
    return now


def _from_version_2(described: dict) -> dict:
    """Rename the step size from which all of BlackJAX's warm-ups begin now."""
    now, config = dict(described), described.get("config")
    if now.get("command") == "run" and isinstance(config, dict):
        names = {"nuts_step_size": "hamiltonian_step_size"}
        now["config"] = {names.get(name, name): config[name] for name in config}
    return now


MIGRATIONS: Mapping[int, Callable[[dict], dict]] = {
    1: _from_version_1,
    2: _from_version_2,
}
"""For each old version the function that makes the next one of it."""


def migrated(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a config.json of any version describes, as this version has it.

    Raises:
        ValueError: If the version is none that this one can read.
    """
    version = described.get("version", 1)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ValueError(f"`version` must be an integer from 1 on, but is {version!r}")
    if version > VERSION:
        raise ValueError(
            f"it is of version {version}, and this equistein reads versions up to "
            f"{VERSION}: install a newer one"
        )
    now = {name: value for name, value in described.items() if name != "version"}
    for old in range(version, VERSION):
        now = MIGRATIONS[old](now)
    return now


def config_to_json(config: Any) -> dict[str, Any]:
    """Return a configuration, a dataclass of numbers, words and tuples, as JSON.

    Raises:
        ValueError: If a number is not finite, for which JSON has no word.
    """
    try:
        return json.loads(json.dumps(dataclasses.asdict(config), allow_nan=False))
    except ValueError:
        raise ValueError(
            f"Every number of a {type(config).__name__} must be finite, but got "
            f"{config}."
        ) from None


def config_from_json(like: Any, values: Any) -> Any:
    """Return a configuration of the type of `like` with the stored values.

    Raises:
        ValueError: If a field is missing, unknown, or of another kind.
    """
    if not isinstance(values, dict):
        raise ValueError(f"{values!r} is no object")
    names = {field.name for field in dataclasses.fields(like)}
    if set(values) != names:
        missing, unknown = names - set(values), set(values) - names
        told = [f"lacks {', '.join(sorted(missing))}"] if missing else []
        told += [f"has {', '.join(sorted(unknown))}"] if unknown else []
        raise ValueError(
            f"for this version of equistein it {' and '.join(told)}: run it anew, or "
            "install the version in its environment.json"
        )
    return type(like)(**{n: _stored(n, getattr(like, n), v) for n, v in values.items()})


def _stored(name: str, default: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(default):
        return config_from_json(default, value)
    value = tuple(value) if isinstance(value, list) else value
    if not _is_like(value, default):
        raise ValueError(
            f"`{name}` is {value!r}, where a value like {default!r} belongs"
        )
    return value


def _is_like(value: Any, default: Any) -> bool:
    """Whether a stored value is of the kind of a default; None stands for anything."""
    if default is None or value is None:
        parts = value if isinstance(value, tuple) else (value,)
        return all(isinstance(part, int | float | str | type(None)) for part in parts)
    if isinstance(default, tuple):
        kind = default[0] if default else 1.0
        return isinstance(value, tuple) and all(_is_like(v, kind) for v in value)
    if isinstance(default, float) and not isinstance(value, bool):
        return isinstance(value, int | float)
    return type(value) is type(default)
