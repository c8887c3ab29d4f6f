"""An energy for data with a given symmetry."""

from collections.abc import Sequence

from equistein._types import Key, Particles
from equistein.energies._base import AbstractEnergy
from equistein.energies._joint import JointEnergy
from equistein.energies._noise import NoiseEnergy, spans
from equistein.energies._plain import PlainEnergy
from equistein.groups import AbstractGroup, PointCloud
from equistein.networks import EGNN, network_for


def energy_for(
    key: Key,
    group: AbstractGroup,
    data: Particles,
    *,
    num_classes: int | None = None,
    widths: Sequence[int] = (128, 128, 128),
) -> AbstractEnergy:
    """Build an energy with the symmetry of `group`, scaled to the data.

    Args:
        key: The source of the weights.
        group: The symmetry.
        data: The data, stacked on axis 0.
        num_classes: The number of classes of a `JointEnergy`; None for a
            `PlainEnergy`.
        widths: The number of units of each hidden layer.

    Raises:
        ValueError: If the group does not act on the data, no features are known for
            it, or there is one class only.
    """
    if num_classes is not None and num_classes < 2:
        raise ValueError(
            f"`energy_for` needs `num_classes` >= 2, but got {num_classes!r}: with one "
            "class there is nothing to tell apart; leave it out for a plain energy."
        )
    network = network_for(key, group, data, num_classes=num_classes, widths=widths)
    return PlainEnergy(network) if num_classes is None else JointEnergy(network)


def graph_energy_for(
    key: Key,
    group: PointCloud,
    data: Particles,
    *,
    charges: Sequence[int] | None = None,
    width: int = 64,
    depth: int = 4,
    noise: float | None = None,
) -> NoiseEnergy:
    """Build an energy for each level of noise, on a graph network of all particles.

    The network looks a quarter further than the data's largest distance.

    Args:
        key: The source of the weights.
        group: The symmetry.
        data: The data, stacked on axis 0.
        charges: The nuclear charge of each particle, if it is an atom.
        width: The number of units of the network.
        depth: The number of its layers.
        noise: The least noise; None is a 20th of the median distance to the nearest
            particle.

    Raises:
        ValueError: If the group does not act on the data, has no reflections, a number
            is not positive, or all particles are at one place.
    """
    group.check_shape(data.shape[1:])
    if not group.reflections:
        raise ValueError(
            "A graph network of distances does not tell mirror images apart: use "
            "PointCloud(..., reflections=True)."
        )
    nearest, farthest = spans(data)
    network = EGNN(
        group.species, charges=charges, dim=group.dim, width=width, depth=depth,
        reach=1.25 * farthest, key=key,
    )  # fmt: skip
    return NoiseEnergy(network, data, nearest / 20 if noise is None else noise)
