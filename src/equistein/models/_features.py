"""The features in which samples are compared with data."""

from equistein.energies import AbstractEnergies
from equistein.features import AbstractFeatures, Coordinates, PairHistogram
from equistein.models._kernel import network_of
from equistein.networks import EGNN, FeatureNetwork


def features_of(energy: AbstractEnergies) -> AbstractFeatures:
    """Return the features in which samples of an energy are compared with data.

    Those of its network, a smooth histogram of distances for a graph network, and
    otherwise the coordinates, which tell orientations apart.

    Args:
        energy: The energy.
    """
    network = network_of(energy)
    if isinstance(network, EGNN):
        reach = float(network.reach)
        return PairHistogram(network.species, reach=reach, epsilon=1e-3 * reach)
    if isinstance(network, FeatureNetwork):
        return network.features
    return Coordinates()
