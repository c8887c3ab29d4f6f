"""Options of `equistein fit`: settings of all networks, and several processes."""

import dataclasses
import os
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import docstring_parser
import jax
import tyro

from equistein import models
from equistein.models import AbstractSettings, Problem
from equistein.runs import UserError

SETTINGS: Mapping[str, AbstractSettings] = {
    "features": models.ContrastiveSettings(),
    "graph": models.DenoisingSettings(),
    "unet": models.ImageSettings(),
}
"""The default settings of each network."""

_SECONDS: Any = {
    "initialization_timeout": 60,  # to find each other
    "heartbeat_timeout_seconds": 40,  # until a silent process counts as lost
}


def _field(name: str, kind: Any) -> tuple[str, Any, Any]:
    """Return a dataclass field for a setting, which is None if it is not given.

    Its help is from the docstring of its class, with its default for each network.
    """
    having = {k: getattr(s, name) for k, s in SETTINGS.items() if hasattr(s, name)}
    texts = [
        param.description or ""
        for network in having
        for cls in type(SETTINGS[network]).__mro__
        for param in docstring_parser.parse(cls.__doc__ or "").params
        if param.arg_name == name
    ]
    defaults = (f"{k} {'automatic' if v is None else v}" for k, v in having.items())
    words = [*" ".join(texts[:1]).split(), f"(default: {'; '.join(defaults)})"]
    return name, Annotated[kind | None, tyro.conf.arg(help=" ".join(words))], None


_KINDS = {
    field.name: field.type
    for settings in SETTINGS.values()
    for field in dataclasses.fields(settings)
}
FitOptions = dataclasses.make_dataclass(
    "FitOptions", [_field(*each) for each in _KINDS.items()], frozen=True
)


def fit_settings(problem: Problem, options: Any) -> AbstractSettings:
    """Return the settings of a problem's network with the options that were given."""
    if isinstance(options, AbstractSettings):
        return options
    settings = SETTINGS[str(problem.network)]
    chosen = {name: v for name, v in vars(options).items() if v is not None}
    other = [f"--{k.replace('_', '-')}" for k in chosen if not hasattr(settings, k)]
    if other:
        raise UserError(
            f"{', '.join(other)}: not a setting of the network {problem.network}, "
            "which this fit uses."
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
        """Find the other processes, if there are some."""
        if not self.distributed:
            return
        try:
            address = self.coordinator, self.num_processes, self.process_id
            jax.distributed.initialize(*address, **_SECONDS)
        except (RuntimeError, ValueError) as error:
            raise UserError(
                f"The other processes were not found: {str(error).splitlines()[0]} "
                "Start all within a minute, each with --coordinator HOST:PORT, "
                "--num-processes and --process-id, which Slurm and Kubernetes set."
            ) from None
        if jax.process_index():
            sys.stdout = open(os.devnull, "w")  # the first one prints
