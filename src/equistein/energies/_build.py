"""An energy for data with a given symmetry."""

from collections.abc import Sequence

from equistein._types import Key, Particles
from equistein.energies._base import AbstractEnergy
from equistein.energies._joint import JointEnergy
from equistein.energies._plain import PlainEnergy
from equistein.groups import AbstractGroup
from equistein.networks import network_for


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
