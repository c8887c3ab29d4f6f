"""The command that makes a run again."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from equistein.runs._words import Words


def flags(
    values: Mapping[str, Any], usual: Mapping[str, Any], of: str = ""
) -> list[str]:
    """Return the options of the command line that make settings of the usual ones.

    Args:
        values: The settings, as in config.json.
        usual: Those that need no option.
        of: What the names begin with, of settings inside others.
    """
    words: list[str] = []
    for name, value in values.items():
        flag = f"{of}{name.replace('_', '-')}"
        if name in usual and value == usual[name]:
            continue
        if isinstance(value, dict):
            words += flags(value, usual.get(name) or {}, f"{flag}.")
        elif isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--{_negated(flag)}")
        elif isinstance(value, list):
            words += [f"--{flag}", *map(str, value)]
        else:
            words += [f"--{flag}", str(value)]
    return words


def command_of(
    words: Words, described: Mapping[str, Any], environment: Mapping[str, Any]
) -> str:
    """Return the command that makes a run again, in a new folder.

    That of the process, without its folder, is told only where it made this run: a
    script of Python has another one.
    """
    if words.command:
        return shlex.join(words.command)
    told = environment.get("command")
    if not isinstance(told, list) or told[1:2] != [described.get("command")]:
        return ""
    return shlex.join(without_out(list(map(str, told))))


def without_out(words: Sequence[str]) -> list[str]:
    """Return a command without the folder that it wrote to, which is not empty now."""
    kept: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--out":
            del left[:1]
        elif not word.startswith("--out="):
            kept.append(word)
    return kept


def _negated(flag: str) -> str:
    """Return the option that turns another off, as tyro names it."""
    before, dot, last = flag.rpartition(".")
    return f"{before}{dot}no-{last}"
