"""The kernel that suits an energy."""

from equistein._gate import gate
from equistein.energies import AbstractEnergy
from equistein.features import Concatenated, Coordinates
from equistein.kernels import AbstractKernel, Equivariant, Pullback, RBF
from equistein.models._features import features_of

_NUM_CENTERS = 12  # of the histogram that the kernel of a graph network sees


@gate
def kernel_for(
    energy: AbstractEnergy, shape: tuple[int, ...], bandwidth: float | None = None
) -> AbstractKernel:
    """Return the kernel that makes SVGD respect the symmetry of an energy.

    `Equivariant` for a finite group, `Pullback` along the invariant features of its
    network (the first part of `Concatenated` ones; for a graph network a smooth
    histogram of the distances), and plain `RBF` without symmetry, for points of this
    shape. A bandwidth of None is the median rule.

    Raises:
        ValueError: If the group is continuous and no features are known.
    """
    base, group = RBF(bandwidth), energy.group(shape)
    group.check_shape(shape)
    if group.order == 1:
        return base
    if group.order is not None:
        return Equivariant(base, group)
    features = features_of(energy, num_centers=_NUM_CENTERS)
    if isinstance(features, Concatenated):
        features = features.parts[0]
    if isinstance(features, Coordinates):  # of which no group's action keeps any
        raise ValueError(
            f"No kernel is known for the symmetry {group} of {type(energy).__name__}: "
            "give the sampler of the negatives a kernel, such as "
            "Pullback(RBF(), features)."
        )
    return Pullback(base, features)
