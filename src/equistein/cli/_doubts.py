"""What samplers warn of while a command works, on the standard error."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from equistein.cli._output import warn
from equistein.samplers import SamplingWarning


@contextlib.contextmanager
def doubts_printed() -> Iterator[None]:
    """Print the warnings of samplers, each once; others go on as they would."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", SamplingWarning)
        others = warnings.showwarning

        def show(message: Any, category: type[Warning], *place: Any) -> None:
            if issubclass(category, SamplingWarning):
                warn(str(message))
            else:
                others(message, category, *place)

        warnings.showwarning = show
        yield
