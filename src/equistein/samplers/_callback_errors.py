"""Errors of Python functions that compiled code calls back."""

import contextlib
from collections.abc import Iterator


class CallbackError(RuntimeError):
    """Python code that compiled code called raised an error; the message is its own."""


@contextlib.contextmanager
def callback_errors() -> Iterator[None]:
    """Turn JAX's error for a failed callback into a `CallbackError`.

    Raises:
        CallbackError: If a callback raised.
        KeyboardInterrupt: If Ctrl-C arrived while a callback ran.
    """
    try:
        yield
    except (RuntimeError, ValueError) as error:
        text = str(error).strip()
        if "CpuCallback error" not in text:
            raise
        reason = text.split("\n")[-1]
        if reason.startswith("KeyboardInterrupt"):
            raise KeyboardInterrupt from None
        raise CallbackError(reason) from None
