"""The features in which samples are compared with data."""

from typing import Any

from equistein.diffusion import NoiseEnergy
from equistein.energies import (
    AbstractEnergies,
    ConditionalEnergy,
    JointEnergy,
    PlainEnergy,
    TemperedEnergy,
)
from equistein.features import AbstractFeatures, Coordinates, PairHistogram
from equistein.networks import EGNN, FeatureNetwork


def features_of(energy: AbstractEnergies, **options: Any) -> AbstractFeatures:
    """Return the features in which samples of an energy are compared with data.

    Those of its network, a smooth histogram of distances for a graph network (with
    further `options` of `PairHistogram`), and otherwise the coordinates, which tell
    orientations apart.
    """
    if isinstance(energy, TemperedEnergy | ConditionalEnergy):
        return features_of(energy.energy, **options)
    known = isinstance(energy, PlainEnergy | JointEnergy | NoiseEnergy)
    network = energy.network if known else None
    if isinstance(network, EGNN):
        reach = float(network.reach)
        return PairHistogram(
            network.species, reach=reach, epsilon=1e-3 * reach, **options
        )
    return network.features if isinstance(network, FeatureNetwork) else Coordinates()
