"""The settings of the mixture of galaxies."""

import dataclasses
from typing import Literal

from equistein.experiments.posteriors._config import PosteriorConfig
from equistein.experiments.posteriors._galaxies import (
    simulated_velocities,
    velocities,
    velocities_in_mass,
)
from equistein.experiments.posteriors._mixture_model import Mixture

_NUM_SIMULATED = 82


@dataclasses.dataclass(frozen=True, kw_only=True)
class MixtureConfig(PosteriorConfig):
    """Settings of `mixture`.

    Attributes:
        num_components: The components of the mixture that is sampled.
        data: The velocities as published, or with the misprint of R's MASS, or
            simulated from a mixture that is known.
        evidence_components: The numbers of components whose evidence is compared.
    """

    num_components: int = 3
    data: Literal["galaxies", "mass", "simulated"] = "galaxies"
    evidence_components: tuple[int, ...] = (2, 3, 4)

    @property
    def others(self) -> list[int]:
        """The numbers of components whose evidence alone is measured."""
        return [k for k in self.evidence_components if k != self.num_components]

    def model(self, num_components: int | None = None) -> Mixture:
        """Return the model, of another number of components if it is given."""
        simulated = self.data == "simulated"
        data = {
            "galaxies": velocities,
            "mass": velocities_in_mass,
            "simulated": lambda: simulated_velocities(
                self.num_components, _NUM_SIMULATED
            ),
        }[self.data]()
        return Mixture(data, num_components or self.num_components, simulated)
