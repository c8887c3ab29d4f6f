"""The features in which samples are compared with data."""

from typing import Any

from jaxtyping import Array, Float

from equistein._gate import gate
from equistein._types import Point
from equistein.diffusion import MixtureNoiseEnergy, NoiseEnergy
from equistein.energies import (
    AbstractEnergies,
    ConditionalEnergy,
    JointEnergy,
    PlainEnergy,
    TemperedEnergy,
)
from equistein.features import AbstractFeatures, Coordinates, PairHistogram
from equistein.networks import EGNN, FeatureNetwork, SteerableCNN


@gate
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


@gate
def image_invariants(energy: AbstractEnergies, image: Point) -> Float[Array, " field"]:
    """Return invariant features of an image, by the network of an energy of images."""
    if isinstance(energy, MixtureNoiseEnergy):
        return energy.network.features(image, energy.sigma_min / energy.scale)
    assert isinstance(energy, JointEnergy)
    assert isinstance(energy.network, SteerableCNN)
    return energy.network.all_invariants(image)
