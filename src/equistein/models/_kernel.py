"""The kernel that suits an energy."""

from equistein.diffusion import NoiseEnergy
from equistein.energies import (
    AbstractEnergies,
    AbstractEnergy,
    ConditionalEnergy,
    JointEnergy,
    PlainEnergy,
    TemperedEnergy,
)
from equistein.features import Concatenated, Coordinates, PairHistogram
from equistein.groups import AbstractFiniteGroup
from equistein.kernels import AbstractKernel, Equivariant, Pullback, RBF
from equistein.networks import AbstractNetwork, EGNN, FeatureNetwork

_NUM_CENTERS = 12  # of the histogram that the kernel of a graph network sees


def kernel_for(
    energy: AbstractEnergy, shape: tuple[int, ...], bandwidth: float | None = None
) -> AbstractKernel:
    """Return the kernel that makes SVGD respect the symmetry of an energy.

    `Equivariant` for a finite group, `Pullback` along the invariant features of its
    network (the first part of `Concatenated` ones; for a graph network a smooth
    histogram of the distances), and plain `RBF` without symmetry.

    Args:
        energy: The energy.
        shape: The shape of a point.
        bandwidth: The bandwidth, or None for the median rule.

    Raises:
        ValueError: If the group is continuous and no features are known.
    """
    base, group = RBF(bandwidth), energy.group(shape)
    group.check_shape(shape)
    if group.order == 1:
        return base
    if isinstance(group, AbstractFiniteGroup):
        return Equivariant(base, group)
    network = network_of(energy)
    if isinstance(network, EGNN):
        reach = float(network.reach)
        features = PairHistogram(
            network.species, reach=reach, num_centers=_NUM_CENTERS, epsilon=1e-3 * reach
        )
        return Pullback(base, features)
    if isinstance(network, FeatureNetwork):
        features = network.features
        if isinstance(features, Concatenated):
            features = features.parts[0]
        assert not isinstance(features, Coordinates)
        return Pullback(base, features)
    raise ValueError(
        f"No kernel is known for the symmetry {group} of {type(energy).__name__}: "
        "give the sampler of the negatives a kernel, such as Pullback(RBF(), features)."
    )


def network_of(energy: AbstractEnergies) -> AbstractNetwork | None:
    """Return the network that an energy is made of, or None if it is not known."""
    if isinstance(energy, TemperedEnergy | ConditionalEnergy):
        return network_of(energy.energy)
    if isinstance(energy, PlainEnergy | JointEnergy | NoiseEnergy):
        return energy.network
    return None
