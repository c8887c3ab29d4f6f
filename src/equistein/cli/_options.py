"""Options of `equistein fit`: settings of all networks, and several processes."""

import dataclasses
import os
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import docstring_parser
import jax
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

_PATIENCE = 60  # seconds to find each other
_HEARTBEAT = 40  # seconds until a process that is silent counts as lost


def _fields() -> list[tuple[str, Any, Any]]:
    """Return a field for each setting of any network: None if it is not given."""
    kinds = {
        field.name: field.type
        for settings in SETTINGS.values()
        for field in dataclasses.fields(settings)
    }
    return [
        (name, Annotated[kind | None, tyro.conf.arg(help=_help(name))], None)  # type: ignore
        for name, kind in kinds.items()
    ]


def _help(name: str) -> str:
    """Return what a setting is, from its class, and its default for each network."""
    having = {k: getattr(s, name) for k, s in SETTINGS.items() if hasattr(s, name)}
    texts = [
        param.description
        for network in having
        for cls in type(SETTINGS[network]).__mro__
        for param in docstring_parser.parse(cls.__doc__ or "").params
        if param.arg_name == name
    ]
    defaults = (f"{k} {'automatic' if v is None else v}" for k, v in having.items())
    return f"{' '.join(' '.join(texts[:1]).split())} (default: {'; '.join(defaults)})"


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
    chosen = {name: v for name, v in vars(options).items() if v is not None}
    other = [f"--{k.replace('_', '-')}" for k in chosen if not hasattr(settings, k)]
    if other:
        raise UserError(
            f"{', '.join(other)}: no setting of --network {problem.network}, which "
            "this fit takes."
        )
    return dataclasses.replace(settings, **chosen)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Distributed:
    """How several processes, each with its devices, find each other.

    The same command is started for each of them, with the same --out in a folder that
    all of them see; the first one writes it.

    Attributes:
        distributed: This is one of several processes. Those that Slurm, Kubernetes or a
            pod of TPUs began find each other; others need the next three.
        coordinator: The address of the first process, host:port.
        num_processes: The number of processes.
        process_id: The number of this one, from 0.
    """

    distributed: bool = False
    coordinator: str | None = None
    num_processes: int | None = None
    process_id: int | None = None

    def join(self) -> None:
        """Find the other processes, if there are some.

        Raises:
            UserError: If they are not found within a minute.
        """
        if not self.distributed:
            return
        try:
            jax.distributed.initialize(
                self.coordinator, self.num_processes, self.process_id,
                initialization_timeout=_PATIENCE, heartbeat_timeout_seconds=_HEARTBEAT,
            )  # fmt: skip
        except (RuntimeError, ValueError) as error:
            raise UserError(
                f"The other processes were not found: {str(error).splitlines()[0]} "
                "Start all within a minute, each with --coordinator HOST:PORT, "
                "--num-processes and --process-id, which Slurm and Kubernetes set."
            ) from None
        if jax.process_index():
            sys.stdout = open(os.devnull, "w")  # the first one prints
