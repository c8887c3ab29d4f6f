"""Work in a run folder that may end early."""

import sys
from collections.abc import Callable

from equistein._limits import LimitError
from equistein.cli._output import fail
from equistein.cli._signals import in_order, INTERRUPTED, was_told
from equistein.data import DataError
from equistein.molecules import MissingRDKit
from equistein.runs import RunFolder, UserError
from equistein.samplers import NonFiniteError
from equistein.training import CheckpointError, DivergenceError


def attempt(folder: RunFolder, work: Callable[[], None]) -> int:
    """Do the work of a run folder, which no other process may meanwhile.

    Returns:
        The exit status, after it was said why the work ended early.

    Raises:
        UserError: If something that the work needs does not do, or another process
            works in the folder.
    """
    folder.hold()
    try:
        with in_order():
            work()
    except KeyboardInterrupt:
        return _stopped(folder)
    except Exception as error:
        if was_told():
            return _stopped(folder)
        if isinstance(error, CheckpointError | DataError | LimitError | MissingRDKit):
            raise UserError(str(error)) from None
        if not isinstance(error, NonFiniteError | DivergenceError):
            raise
        fail("\n".join([str(error), *getattr(error, "__notes__", [])]))
        return 1
    finally:
        folder.release()
    return 0


def _stopped(folder: RunFolder) -> int:
    told = (
        f"\nStopped. What is finished is kept in {folder.path}; go on with\n"
        f"  equistein resume {folder.path}"
    )
    print(told, file=sys.stderr)
    return INTERRUPTED
