"""Learned densities that come with the package."""

import pathlib

from equistein.models._load import load
from equistein.training import Fitted

_SHELF = pathlib.Path(__file__).parents[1] / "pretrained"


def pretrained_names() -> list[str]:
    """Return the names of the learned densities that come with the package."""
    return sorted(path.stem for path in _SHELF.glob("*.eqx"))


def pretrained(name: str) -> Fitted:
    """Return a learned density that comes with the package.

    Args:
        name: Such as `c5h8o`: molecules of this formula, in Angstrom.

    Raises:
        ValueError: If there is none of this name.
    """
    known = pretrained_names()
    if name not in known:
        raise ValueError(
            f"There is no pretrained model {name!r}, only {', '.join(known)}."
        )
    return load(_SHELF / f"{name}.eqx")
