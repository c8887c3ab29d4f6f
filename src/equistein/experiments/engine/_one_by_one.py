"""Parts of a run, shared by several processes."""

from collections.abc import Callable, Mapping

import jax

from equistein._devices import sent
from equistein.runs import arrays_of, Outcome, outcome_of, packed, unpacked, UserError

_FAILED = b"failed: "  # no archive begins so


def shared(
    stages: Mapping[str, Callable[[], Outcome]],
) -> tuple[dict[str, Outcome], Exception | None]:
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
