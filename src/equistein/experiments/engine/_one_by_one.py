"""Parts of a run one after the other, or shared by several processes."""

import time
from collections.abc import Callable, Mapping

import jax

from equistein._sharding import sent
from equistein.runs import arrays_of, Outcome, outcome_of, packed, unpacked, UserError

_FAILED = b"failed: "  # no archive begins so
Stages = Mapping[str, Callable[[], Outcome]]
Begins = Callable[[str], None]
"""What is called with a part's name as it begins."""
Ends = Callable[[str, Outcome, float], None]
"""What is called with a part's name, its outcome and the seconds that it took."""


def one_by_one(stages: Stages, begins: Begins, ends: Ends) -> None:
    """Make parts; of several processes each makes one at a time, and has all outcomes.

    Args:
        stages: What makes each part, by name.
        begins: What is called as a part begins.
        ends: What is called as a part ends.
    """
    at_once = jax.process_count()
    for first in range(0, len(stages), at_once):
        some = list(stages)[first : first + at_once]
        for name in some:
            begins(name)
        start = time.perf_counter()
        found, error = _shared({name: stages[name] for name in some})
        seconds = time.perf_counter() - start
        for name, outcome in found.items():
            ends(name, outcome, seconds)
        if error is not None:
            raise error


def _shared(stages: Stages) -> tuple[dict[str, Outcome], Exception | None]:
    """Return the outcomes of stages, of which each process makes one; and what failed.

    Args:
        stages: At most one for each process, by name.

    Returns:
        The outcomes, in all processes, of those that did not fail; and the error of the
        own stage, or one that tells of another process's.
    """
    if jax.process_count() == 1:
        ((name, stage),) = stages.items()
        return {name: stage()}, None
    error, content, own = None, b"", jax.process_index()
    if own < len(stages):
        try:
            content = packed(arrays_of(list(stages.values())[own]()))
        except Exception as caught:
            error, content = caught, _FAILED + str(caught).encode()
    outcomes = {}
    for sender, name in enumerate(stages):
        found = sent(content, sender)
        if not found.startswith(_FAILED):
            outcomes[name] = outcome_of(unpacked(found))
        elif error is None:
            told = found.removeprefix(_FAILED).decode()
            error = UserError(f"Process {sender} failed at {name}: {told}")
    return outcomes, error
