"""A network for data with a given symmetry."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from equistein._gate import gate
from equistein._types import Key, Particles
from equistein.features import (
    AbstractFeatures,
    Concatenated,
    Coordinates,
    Radius,
    SortedDistances,
    SortedRowSums,
)
from equistein.groups import (
    AbstractGroup,
    ImageRotations,
    Orthogonal,
    PointCloud,
    SpecialOrthogonal,
)
from equistein.networks import (
    AbstractNetwork,
    FeatureNetwork,
    MLP,
    SteerableCNN,
    Symmetrized,
)

_MAX_COPIES = 120  # five labels


@gate
def network_for(
    key: Key,
    group: AbstractGroup,
    data: Particles,
    *,
    num_classes: int | None = None,
    widths: Sequence[int] = (128, 128, 128),
) -> AbstractNetwork:
    """Build a network with the symmetry of `group`, scaled to the data.

    An MLP on invariant features for a continuous group, a steerable CNN for
    `ImageRotations`, the orbit mean of an MLP for any other finite group, a plain MLP
    for the trivial one. It has an output for each class, or one number without any;
    `widths` are the units of each hidden layer of an MLP.

    Raises:
        ValueError: If the group does not act on the data, or no features are known
            for it.
    """
    shape = data.shape[1:]
    group.check_shape(shape)
    if isinstance(group, ImageRotations):
        return _image_network(key, group, data, num_classes)
    features = _features(group, data)
    num = jax.eval_shape(features, data[0]).size
    network = MLP(num, out_size=num_classes, widths=widths, key=key)
    if group.order is None or group.order == 1:
        return FeatureNetwork(network, features, data)
    # The network is averaged over rotated points, which must fit its scale as well.
    orbits = jax.vmap(group.orbit)(data).reshape(-1, *shape)
    return Symmetrized(FeatureNetwork(network, features, orbits), group)


def _features(group: AbstractGroup, data: Particles) -> AbstractFeatures:
    """Return features of a point that suit a network with the symmetry of a group.

    Raises:
        ValueError: If none are known.
    """
    # Features are smoothed well below the size of the data, whatever its unit.
    size = max(2.5e-3 * float(jnp.max(jnp.abs(data - data[:1]))), 1e-30)
    epsilon = 2.0 ** round(math.log2(size))  # other data rarely needs other code
    if isinstance(group, PointCloud):
        if not group.reflections:
            raise ValueError(
                "No features that tell mirror images apart are here yet: use "
                "PointCloud(..., reflections=True)."
            )
        # Distances alone confuse shapes that differ in which distances meet.
        distances = SortedDistances(group.species, epsilon)
        return Concatenated(distances, SortedRowSums(group.species, epsilon))
    if isinstance(group, Orthogonal | SpecialOrthogonal):
        if len(data.shape) != 2:
            raise ValueError(
                f"For {group} the features are those of one vector, shape (d,), but "
                f"the data has shape {data.shape[1:]}: use a point cloud for several "
                "particles."
            )
        return Radius(epsilon)
    if group.order is None:
        raise ValueError(
            f"No invariant features are known for {group}: build a custom network "
            "with this symmetry, such as FeatureNetwork(MLP(...), features, data) with "
            "features that are constant on its orbits, and give PlainEnergy(network) "
            "to `es.fit`."
        )
    if group.order > _MAX_COPIES:
        raise ValueError(
            f"A network averaged over all {group.order} elements of {group} would be "
            f"too slow: {_MAX_COPIES} are the most, and no setting raises that. Take "
            "fewer labels, or build a custom network with this symmetry, such as "
            "Symmetrized(network, group), and give PlainEnergy(network) to `es.fit`."
        )
    return Coordinates()


def _image_network(
    key: Key, group: ImageRotations, data: Particles, num_classes: int | None
) -> SteerableCNN:
    """Return a steerable CNN that halves images twice, where they can be halved."""
    side, pool_after = data.shape[1], []
    for layer in (1, 2):
        if side % 2 == 0 and side >= 8:
            pool_after.append(layer)
            side //= 2
    size = float(jnp.sqrt(jnp.mean(data**2)))
    return SteerableCNN(
        data.shape[1:], symmetry=group, pool_after=pool_after, out_size=num_classes,
        scale=max(size, 1e-30), key=key,
    )  # fmt: skip
