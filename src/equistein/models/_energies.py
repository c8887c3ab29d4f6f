"""Energies with the symmetry of a group, and what suits them: features, kernels."""

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from equistein._arrays import as_keys
from equistein._gate import gate
from equistein._types import AnyKey, Key, Particles
from equistein.diffusion import NoiseEnergy
from equistein.energies import (
    AbstractEnergies,
    AbstractEnergy,
    ConditionalEnergy,
    JointEnergy,
    PlainEnergy,
    TemperedEnergy,
)
from equistein.features import (
    AbstractFeatures,
    Concatenated,
    Coordinates,
    PairHistogram,
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
from equistein.kernels import AbstractKernel, Equivariant, Pullback, RBF
from equistein.networks import (
    EGNN,
    FeatureNetwork,
    MLP,
    SteerableCNN,
    Symmetrized,
)
from equistein.training import check_classes

_MAX_COPIES = 120  # elements to average over: the permutations of five labels
_NUM_CENTERS = 12  # of the histogram that the kernel of a graph network sees


@gate
def energy_for(
    key: AnyKey,
    group: AbstractGroup,
    data: Particles,
    *,
    num_classes: int | None = None,
    widths: Sequence[int] = (128, 128, 128),
    temperature: float = 1.0,
) -> AbstractEnergy:
    """Return an energy with the symmetry of `group`, scaled to the data, untrained.

    Its network is an MLP on invariant features for a continuous group, a steerable CNN
    for `ImageRotations`, the orbit mean of an MLP for any other finite group, and a
    plain MLP for the trivial one.

    With a number of classes it is a `JointEnergy`; `widths` are the units of each
    hidden layer of an MLP, and the points are of this temperature.

    Raises:
        ValueError: If the group does not act on the data, no features are known for
            it, or there is one class only.
    """
    if num_classes is not None and num_classes < 2:
        raise ValueError(f"`num_classes` must be at least 2, but got {num_classes}.")
    group.check_shape(data.shape[1:])
    if isinstance(group, ImageRotations):
        network = _image_network(as_keys(key), group, data, num_classes)
    else:
        features = _features(group, data)
        num = jax.eval_shape(features, data[0]).size
        network = MLP(num, out_size=num_classes, widths=widths, key=as_keys(key))
        if group.order is None or group.order == 1:
            network = FeatureNetwork(network, features, data)
        else:  # averaged over rotated points, which must fit its scale as well
            orbits = jax.vmap(group.orbit)(data).reshape(-1, *data.shape[1:])
            network = Symmetrized(FeatureNetwork(network, features, orbits), group)
    if num_classes is not None:
        return JointEnergy(network, temperature)
    energy = PlainEnergy(network)
    return energy if temperature == 1 else TemperedEnergy(energy, temperature)


def _features(group: AbstractGroup, data: Particles) -> AbstractFeatures:
    # Features are smoothed well below the size of the data, whatever its unit.
    size = max(2.5e-3 * float(jnp.max(jnp.abs(data - data[:1]))), 1e-30)
    # A power of two, so that other data rarely need other compiled code.
    epsilon = 2.0 ** round(math.log2(size))
    if isinstance(group, PointCloud):
        if not group.reflections:
            raise ValueError(
                "No features tell mirror images apart: use a `group` with reflections."
            )
        # Distances alone confuse shapes that differ in which distances meet.
        distances = SortedDistances(group.species, epsilon)
        return Concatenated(distances, SortedRowSums(group.species, epsilon))
    if isinstance(group, Orthogonal | SpecialOrthogonal):
        if len(data.shape) != 2:
            raise ValueError(
                f"For {group} points must be one vector, but those of `data` have the "
                f"shape {data.shape[1:]}: use a point cloud."
            )
        return Radius(epsilon)
    remedy = "give `es.fit` PlainEnergy(network) with a custom network of this symmetry"
    if group.order is None:
        raise ValueError(f"No invariant features are known for {group}: {remedy}.")
    if group.order > _MAX_COPIES:
        raise ValueError(
            f"A network averaged over all {group.order} elements of {group} would be "
            f"too slow, {_MAX_COPIES} are the most: {remedy}."
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
    return SteerableCNN(
        data.shape[1:], symmetry=group, pool_after=pool_after, out_size=num_classes,
        scale=size_of(data), key=key,
    )  # fmt: skip


@eqx.filter_jit
def values_at(function: Any, points: Particles) -> Any:
    """Return the value at each point, in blocks of 256."""
    return jax.lax.map(function, points, batch_size=256)


def num_classes_of(labels: Any) -> int | None:
    """Return the number of classes, if the labels are some."""
    if labels is None or not np.issubdtype(np.asarray(labels).dtype, np.integer):
        return None
    return int(check_classes(np.asarray(labels)).max()) + 1


def size_of(data: Particles) -> float:
    """Return the root mean square of all numbers."""
    return max(float(jnp.sqrt(jnp.mean(data**2))), 1e-30)


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
        epsilon = 1e-3 * reach
        return PairHistogram(network.species, reach=reach, epsilon=epsilon, **options)
    return network.features if isinstance(network, FeatureNetwork) else Coordinates()


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
            "give the sampler of the negatives a kernel, as Pullback(RBF(), features)."
        )
    return Pullback(base, features)
