"""Heat capacity and funnels of independent ladders, and whether two starts agree."""

import dataclasses
from collections.abc import Callable

import numpy as np

from equistein.experiments.systems._funnels import FCC_ORDER
from equistein.runs import Outcome

_FAR = 3.0  # joint errors
_TRIPS = 10.0  # round trips a ladder, at least
_LOOSE = 0.1  # the largest error of a weight


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Values with their standard errors, over temperatures.

    Attributes:
        values: The values.
        errors: Their standard errors, over ladders.
    """

    values: np.ndarray
    errors: np.ndarray

    def gaps(self, other: "Estimate", least: float = 0.0) -> np.ndarray:
        """Return how many joint errors two estimates are apart.

        Args:
            other: The other estimate.
            least: The smallest joint error.
        """
        joint = np.sqrt(self.errors**2 + other.errors**2)
        apart = np.abs(self.values - other.values)
        return apart / np.maximum(joint, max(least, 1e-12))


def jackknifed(
    function: Callable[..., np.ndarray], *of_ladders: np.ndarray
) -> Estimate:
    """Return a function of means over ladders, with the jackknife's error.

    Args:
        function: From means over ladders, arrays over temperatures, to an array.
        of_ladders: What the means are of, each `(ladder, temperature)`.
    """
    num = len(of_ladders[0])
    means = [np.mean(part, axis=0) for part in of_ladders]
    if num == 1:
        value = function(*means)
        return Estimate(value, np.full_like(value, np.inf))
    without = np.stack(
        [
            function(*(np.delete(part, ladder, axis=0).mean(axis=0)
                       for part in of_ladders))
            for ladder in range(num)
        ]
    )  # fmt: skip
    spread = np.mean((without - without.mean(axis=0)) ** 2, axis=0)
    return Estimate(function(*means), np.sqrt((num - 1) * spread))


def heat_capacity(outcome: Outcome, temperatures: np.ndarray) -> Estimate:
    r"""Return the heat capacity of the cluster, in units of Boltzmann's constant.

    $$C = \tfrac{3N}2 + \frac{\langle E^2\rangle - \langle E\rangle^2}{T^2}$$

    The first term is the kinetic energy's. In the limit of a cold solid it is 3N - 3.
    """
    kinetic = 1.5 * outcome.samples.shape[1]

    def capacity(mean, square):
        return kinetic + (square - mean**2) / temperatures**2

    return jackknifed(
        capacity, _of_ladders(outcome, "energy"), _of_ladders(outcome, "energy_square")
    )


def peak(outcome: Outcome, temperatures: np.ndarray) -> np.ndarray:
    """Return where the heat capacity is largest, and how large it is there.

    The top of a parabola through the largest value and its neighbors.
    """
    values = heat_capacity(outcome, temperatures).values
    top = int(np.clip(np.argmax(values), 1, max(len(values) - 2, 1)))
    if len(values) < 3 or np.argmax(values) != top:
        top = int(np.argmax(values))
        return np.array([temperatures[top], values[top]])
    three = slice(top - 1, top + 2)
    parabola = np.polyfit(temperatures[three] - temperatures[top], values[three], 2)
    shift = -parabola[1] / (2 * parabola[0])
    return np.array([temperatures[top] + shift, np.polyval(parabola, shift)])


def fcc_weight(outcome: Outcome) -> Estimate:
    """Return the weight of the fcc funnel at each temperature."""
    orders = outcome.arrays["bond_order"]
    return jackknifed(lambda mean: mean, _flat(orders > FCC_ORDER))


def round_trips(outcome: Outcome) -> float:
    """Return how many round trips a ladder's points made on average."""
    return float(np.mean(outcome.arrays["round_trips"]))


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What two starts say of the same cluster.

    Attributes:
        temperatures: The temperatures, from cold to hot.
        outcomes: The outcome of each start, by its label.
    """

    temperatures: np.ndarray
    outcomes: dict[str, Outcome]

    @property
    def capacity_gaps(self) -> np.ndarray:
        """How many joint errors the heat capacities are apart."""
        first, second = (
            heat_capacity(outcome, self.temperatures)
            for outcome in self.outcomes.values()
        )
        return first.gaps(second)

    @property
    def weight_gaps(self) -> np.ndarray:
        """How many joint errors the weights of the fcc funnel are apart.

        Ladders that never left a funnel have no spread: the joint error is taken to be
        at least half of the weight of one of them.
        """
        first, second = map(fcc_weight, self.outcomes.values())
        return first.gaps(second, least=0.5 / self._num_ladders)

    @property
    def has_converged(self) -> bool:
        """Whether both starts agree, know it well enough, and forgot where they began.

        All within three joint errors, no weight with an error above .1, and at least
        ten round trips a ladder.
        """
        known = all(
            np.all(fcc_weight(outcome).errors <= _LOOSE)
            and round_trips(outcome) >= _TRIPS
            for outcome in self.outcomes.values()
        )
        gaps = np.maximum(self.capacity_gaps, self.weight_gaps)
        return bool(known and np.all(gaps <= _FAR))

    def sentence(self) -> str:
        """Return what a reader should know of the convergence."""
        word = "Has converged" if self.has_converged else "Has NOT converged"
        parts = [
            f"{word}: {self._farthest_capacity()}; {self._farthest_weight()}",
            f"The points of a ladder made {self._trips()}",
            self._agreement(),
            f"It counts as converged where all are within {_FAR:g} joint errors, no "
            f"weight has an error above {_LOOSE:g}, and each ladder's points made "
            f"{_TRIPS:g} round trips on average; LJ-38 is known to need 1e8 to 1e10 "
            "evaluations of the energy",
        ]
        return ". ".join(parts) + "."

    @property
    def _num_ladders(self) -> int:
        return min(_of_ladders(o, "energy").shape[0] for o in self.outcomes.values())

    def _farthest_capacity(self) -> str:
        """Return where the heat capacities disagree most."""
        estimates = {
            label: heat_capacity(outcome, self.temperatures)
            for label, outcome in self.outcomes.items()
        }
        return "the heat capacities are " + self._farthest(
            estimates, self.capacity_gaps, 1
        )

    def _farthest_weight(self) -> str:
        estimates = {label: fcc_weight(out) for label, out in self.outcomes.items()}
        return "the weights of the fcc funnel " + self._farthest(
            estimates, self.weight_gaps, 3
        )

    def _farthest(
        self, estimates: dict[str, Estimate], gaps: np.ndarray, digits: int
    ) -> str:
        at = int(np.argmax(gaps))
        said = " and ".join(
            f"{one.values[at]:.{digits}f} ± {one.errors[at]:.{digits}f} from {label}"
            for label, one in estimates.items()
        )
        return (
            f"at most {gaps[at]:.1f} joint errors apart, at T = "
            f"{self.temperatures[at]:g}: {said}"
        )

    def _trips(self) -> str:
        said = (
            f"{round_trips(outcome):.1f} round trips from {label}"
            for label, outcome in self.outcomes.items()
        )
        return " and ".join(said)

    def _agreement(self) -> str:
        """Return from which temperature up both starts agree."""
        near = np.maximum(self.capacity_gaps, self.weight_gaps) <= _FAR
        if near.all():
            return f"Both agree within {_FAR:g} joint errors at all temperatures"
        if not near[-1]:
            return f"They are more than {_FAR:g} joint errors apart up to the hottest"
        first = self.temperatures[np.flatnonzero(~near)[-1] + 1]
        return f"Both agree within {_FAR:g} joint errors from T = {first:g} up"


def _of_ladders(outcome: Outcome, name: str) -> np.ndarray:
    """Return the mean over the rounds of a number, `(ladder, temperature)`."""
    return _flat(outcome.arrays[name])


def _flat(values: np.ndarray) -> np.ndarray:
    """Return the mean over rounds of `(seed, round, temperature, ladder)`."""
    means = np.mean(values, axis=1, dtype=float)
    return np.moveaxis(means, 1, 2).reshape(-1, means.shape[1])
