"""Work in a run folder that may end early."""

import sys
from collections.abc import Callable

from equistein.data import DataError
from equistein.molecules import MissingRDKit
from equistein.runs import RunFolder, UserError
from equistein.samplers import NonFiniteError
from equistein.training import CheckpointError, DivergenceError

INTERRUPTED = 130  # as a shell reports a command stopped by Ctrl-C


def attempt(folder: RunFolder, work: Callable[[], None]) -> int:
    """Do the work of a run folder; return the exit status, and say why it ended early.

    Raises:
        UserError: If something that the work needs does not do.
    """
    try:
        work()
    except KeyboardInterrupt:
        told = (
            f"\nStopped. What is finished is kept in {folder.path}; go on with\n"
            f"  equistein resume {folder.path}"
        )
        print(told, file=sys.stderr)
        return INTERRUPTED
    except (CheckpointError, DataError, MissingRDKit) as error:
        raise UserError(str(error)) from None
    except (NonFiniteError, DivergenceError) as error:
        told = "\n".join([str(error), *getattr(error, "__notes__", [])])
        print(f"equistein: {told}", file=sys.stderr)
        return 1
    return 0
