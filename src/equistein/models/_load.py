"""Learned densities in files, and those that come with the package."""

import functools
import importlib
import pathlib
from collections.abc import Sequence
from typing import Any

import equinox as eqx

from equistein._gate import gate
from equistein.models._contrastive import descend, no_state
from equistein.runs import RunFolder
from equistein.samplers import everywhere
from equistein.training import FileFormatError, Fitted, LIBRARY_PARTS, load_tree

_SHELF = pathlib.Path(__file__).parents[1] / "pretrained"


@gate
def load(path: pathlib.Path | str, classes: Sequence[Any] = ()) -> Fitted:
    """Return a learned density that `Fitted.save` wrote.

    A file never names code to import: what it is made of must be of equistein, of
    Equinox's common layers, or among the given classes.

    Args:
        path: The file, or the run folder of `equistein fit`.
        classes: Custom classes and functions that the density is made of.

    Raises:
        FileFormatError: If the file holds no learned density, is damaged, or needs
            classes that are not given.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        path = path / RunFolder.MODEL
    if not path.is_file():
        raise FileFormatError(f"There is no file {path}.")
    found = load_tree(path, (*_known(), *classes))
    if not isinstance(found, Fitted):
        raise FileFormatError(
            f"{path} holds {type(found).__name__}, not a learned density."
        )
    return found


@gate
def pretrained(name: str) -> Fitted:
    """Return a learned density that comes with the package.

    Its name is such as `c5h8o`: molecules of this formula, in Angstrom.

    Raises:
        ValueError: If there is none of this name.
    """
    known = sorted(path.stem for path in _SHELF.glob("*.eqx"))
    if name not in known:
        raise ValueError(
            f"There is no pretrained model {name!r}, only {', '.join(known)}."
        )
    return load(_SHELF / f"{name}.eqx")


@functools.cache
def _known() -> tuple[Any, ...]:
    """Return the classes and functions that a file of equistein's own is made of."""
    for package in ("diffusion", "posteriors", "targets"):  # may not be imported yet
        importlib.import_module(f"equistein.{package}")
    classes = [eqx.Module]
    for cls in classes:  # grows as we walk
        classes += cls.__subclasses__()
    ours = [cls for cls in classes if cls.__module__.startswith("equistein.")]
    return (*ours, *LIBRARY_PARTS, descend, no_state, everywhere)
