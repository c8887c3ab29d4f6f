"""The kernel that fits a network."""

from equistein.features import Concatenated, Coordinates
from equistein.groups import AbstractFiniteGroup, Trivial
from equistein.kernels import AbstractKernel, Equivariant, Pullback, RBF
from equistein.networks import AbstractNetwork, FeatureNetwork


def kernel_for(
    network: AbstractNetwork, shape: tuple[int, ...], bandwidth: float | None
) -> AbstractKernel:
    """Return the kernel that makes SVGD respect the symmetry of a network.

    `Equivariant` for a finite group, `Pullback` along a network's invariant features
    (along the first part of `Concatenated` ones), and plain `RBF` without symmetry.

    Args:
        network: The network.
        shape: The shape of a point.
        bandwidth: The bandwidth, or None for the median rule.

    Raises:
        ValueError: If the group is continuous and the network has no features.
    """
    base, group = RBF(bandwidth), network.group(shape)
    if isinstance(group, Trivial):
        return base
    if isinstance(group, AbstractFiniteGroup):
        return Equivariant(base, group)
    if isinstance(network, FeatureNetwork):
        features = network.features
        if isinstance(features, Concatenated):
            features = features.parts[0]
        assert not isinstance(features, Coordinates)
        return Pullback(base, features)
    raise ValueError(
        f"No kernel is known for the symmetry {group} of {type(network).__name__}: "
        "give `fit` a `kernel`, such as Pullback(RBF(), features)."
    )
