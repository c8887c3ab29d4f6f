"""What a fit does when it diverges: back to the last good state, with half the step."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from equistein._gate import gate
from equistein._numbers import check_integers, check_positive


@gate
@dataclasses.dataclass(frozen=True, kw_only=True)
class RollBack:
    """When a fit goes back to its last good state, and how often.

    An epoch is not kept if an energy or a weight is not finite, or an energy is beyond
    the limit. The fit then goes on from the last good state, with half the step of the
    optimizer and of the sampler, and new randomness.

    Attributes:
        max_rollbacks: How often, before the fit gives up.
        energy_limit: The size of an energy from which on a fit is diverging.
    """

    max_rollbacks: int = 3
    energy_limit: float = 1e6

    def __post_init__(self):
        check_integers("RollBack", least=0, max_rollbacks=self.max_rollbacks)
        check_positive("RollBack", energy_limit=self.energy_limit)

    def trouble(self, infos: Mapping[str, Any]) -> str | None:
        """Return why an epoch is not to be kept, or None."""
        if not bool(np.all(infos["is_finite"])):
            return "not finite"
        largest = infos.get("largest_energy")
        if largest is not None and float(np.max(largest)) > self.energy_limit:
            return "energy limit"
        return None

    def verdict(self, events: list[dict]) -> str:
        """Return why a fit gives up."""
        return (
            f"The fit diverged {len(events)} times, at last in epoch "
            f"{events[-1]['epoch']}, where {events[-1]['reason']}; `max_rollbacks` "
            f"allows {self.max_rollbacks}. Take a smaller learning rate or step size "
            "of the sampler, a larger `regularization`, or a smaller gradient clip."
        )
