"""The options of `equistein fit`: the settings of all networks, each if it is given."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any

import docstring_parser
import tyro

from equistein.models import (
    AbstractSettings,
    ContrastiveSettings,
    DenoisingSettings,
    ImageSettings,
    Problem,
)
from equistein.runs import UserError

SETTINGS: Mapping[str, AbstractSettings] = {
    "features": ContrastiveSettings(),
    "graph": DenoisingSettings(),
    "unet": ImageSettings(),
}
"""The default settings of each network."""


def _fields() -> list[tuple[str, Any, Any]]:
    """Return a field for each setting of any network: None if it is not given."""
    fields: dict[str, tuple[str, Any, Any]] = {}
    for settings in SETTINGS.values():
        for field in dataclasses.fields(settings):
            if field.name not in fields:
                kind = Annotated[
                    field.type | None, tyro.conf.arg(help=_help(field.name))
                ]  # type: ignore
                fields[field.name] = (field.name, kind, dataclasses.field(default=None))
    return list(fields.values())


def _help(name: str) -> str:
    """Return what a setting is, from its class, and its default for each network."""
    text, defaults = "", []
    for network, settings in SETTINGS.items():
        if not hasattr(settings, name):
            continue
        default = getattr(settings, name)
        defaults.append(f"{network} {'automatic' if default is None else default}")
        for cls in type(settings).__mro__:
            parsed = docstring_parser.parse(cls.__doc__ or "").params
            text = text or next(
                (p.description for p in parsed if p.arg_name == name), ""
            )
    return f"{' '.join((text or '').split())} (default: {'; '.join(defaults)})"


FitOptions = dataclasses.make_dataclass("FitOptions", _fields(), frozen=True)


def fit_settings(problem: Problem, options: Any) -> AbstractSettings:
    """Return the settings of a problem's network with the options that were given.

    Raises:
        UserError: If an option is of another network.
        ValueError: If a value is out of range.
    """
    if isinstance(options, AbstractSettings):
        return options
    settings = SETTINGS[str(problem.network)]
    given = {name: v for name, v in vars(options).items() if v is not None}
    other = [name for name in given if not hasattr(settings, name)]
    if other:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in other)
        raise UserError(
            f"{names}: no setting of --network {problem.network}, which this fit takes."
        )
    return dataclasses.replace(settings, **given)
