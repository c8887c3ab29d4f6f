"""What an argument list says of an option, before it is parsed."""

from collections.abc import Sequence


def given(arguments: Sequence[str], name: str) -> str | None:
    """Return the value of `--name value` or `--name=value`, the last if repeated.

    Some defaults depend on others of the settings, and a parser needs its defaults.
    """
    flag, value = f"--{name}", None
    for index, argument in enumerate(arguments):
        if argument.startswith(f"{flag}="):
            value = argument.partition("=")[2]
        elif argument == flag and index + 1 < len(arguments):
            value = arguments[index + 1]
    return value
