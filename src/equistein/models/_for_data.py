"""The model that suits a symmetry and data."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import jax.numpy as jnp
import numpy as np

from equistein._arrays import as_keys
from equistein._gate import gate
from equistein._types import AnyKey, Key, Particles
from equistein.energies import (
    AbstractEnergy,
    JointEnergy,
    PlainEnergy,
    TemperedEnergy,
)
from equistein.groups import AbstractGroup, ImageRotations, PointCloud
from equistein.models._contrastive import contrastive_model
from equistein.models._denoising import denoising_model
from equistein.models._graph_energy import graph_energy_for, masked_energy_for
from equistein.models._image_energy import image_energy_for, image_model
from equistein.models._model import Model
from equistein.models._network import network_for
from equistein.models._settings import (
    AbstractSettings,
    ContrastiveSettings,
    DenoisingSettings,
    ImageSettings,
)
from equistein.training import check_classes

Kind = TypeVar("Kind", bound=AbstractSettings)
Network = Literal["features", "graph", "unet"]

_WIDTHS = ContrastiveSettings.widths
_KINDS: dict[type, Network] = {
    ContrastiveSettings: "features", DenoisingSettings: "graph", ImageSettings: "unet",
}  # fmt: skip


def for_data(
    key: AnyKey,
    group: AbstractGroup,
    data: Particles,
    labels: Any = None,
    *,
    network: Network | None = None,
    settings: AbstractSettings | None = None,
    atomic_numbers: Sequence[int] | None = None,
) -> Model:
    """Return an energy, its training and its generator that suit a group and data.

    With `features` a perceptron of invariant features, a steerable CNN for images, or
    the orbit mean of a perceptron, trained by contrastive divergence with E-SVGD; with
    classes as labels a joint energy. With `graph`, for point clouds, a graph network
    with an energy for each level of noise, trained by denoising and sampled by reverse
    diffusion. With `unet`, for images, the same on a U-shaped network that corrects
    normal distributions of each class, with classes as well.

    Args:
        key: The source of the weights, `jax.random.key(0)` or an integer.
        group: The symmetry.
        data: The data, stacked on axis 0.
        labels: The class of each point (whole numbers from 0 on, -1 where unknown), or
            its known energy (floating point, NaN where unknown), or None.
        network: `features`, `graph` or `unet`; None is what the settings are for, and
            without settings `graph` for point clouds without labels, `unet` for images
            without known energies, else `features`.
        settings: `ContrastiveSettings` for `features`, `DenoisingSettings` for `graph`,
            `ImageSettings` for `unet`.
        atomic_numbers: For `graph`, the atomic number of each particle, if it is
            an atom.

    Raises:
        ValueError: If the group does not act on the data, no network is known for it,
            or labels and settings do not fit.
    """
    key = as_keys(key)
    if network is None:
        network = (
            _usual(group, labels)
            if settings is None
            else _KINDS.get(type(settings), "features")
        )
    if network == "graph":
        return _graph_model(key, group, data, labels, settings, atomic_numbers)
    if network == "unet":
        return _image_model(key, group, data, labels, settings)
    if network != "features":
        raise ValueError(
            f"`network` must be features, graph or unet, but got {network!r}."
        )
    settings = _settings(ContrastiveSettings(), settings, "A network of features")
    if isinstance(group, ImageRotations) and settings.widths != _WIDTHS:
        raise ValueError(
            "`widths` are not for images, whose network has 8 layers of 4 to 16 "
            f"fields, but got {settings.widths!r}: leave them out, or give a network "
            "of your own to contrastive_model(JointEnergy(network), ...)."
        )
    energy = energy_for(
        key, group, data, num_classes=_num_classes(labels), widths=settings.widths,
        temperature=settings.temperature,
    )  # fmt: skip
    return contrastive_model(energy, data, labels, settings)


def _usual(group: AbstractGroup, labels: Any) -> Network:
    """Return what an energy is made of by default."""
    if isinstance(group, PointCloud) and group.reflections and labels is None:
        return "graph"
    classes = labels is None or _num_classes(labels) is not None
    return "unet" if isinstance(group, ImageRotations) and classes else "features"


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

    Args:
        key: The source of the weights.
        group: The symmetry.
        data: The data, stacked on axis 0.
        num_classes: The number of classes of a `JointEnergy`; None for a
            `PlainEnergy`.
        widths: The number of units of each hidden layer.
        temperature: The temperature T of the points.

    Raises:
        ValueError: If the group does not act on the data, no features are known for
            it, or there is one class only.
    """
    if num_classes is not None and num_classes < 2:
        raise ValueError(
            f"`energy_for` needs `num_classes` >= 2, but got {num_classes!r}: with one "
            "class there is nothing to tell apart; leave it out for a plain energy."
        )
    network = network_for(
        as_keys(key), group, data, num_classes=num_classes, widths=widths
    )
    if num_classes is not None:
        return JointEnergy(network, temperature)
    energy = PlainEnergy(network)
    return energy if temperature == 1 else TemperedEnergy(energy, temperature)


@gate
def for_formulas(
    key: Key,
    formulas: Sequence[Sequence[str]],
    data: Particles,
    labels: Any,
    *,
    atomic_numbers: Sequence[Sequence[int]],
    settings: AbstractSettings | None = None,
) -> Model:
    """Return a model of molecules of several formulas, on one graph network.

    Args:
        key: The source of the weights.
        formulas: The elements of the atoms of each formula.
        data: Molecules, centered, with rows of zeros behind those of small formulas.
        labels: The number of the formula of each.
        atomic_numbers: The atomic numbers of the atoms of each formula.
        settings: `DenoisingSettings`.
    """
    settings = _settings(DenoisingSettings(), settings, "A graph network")
    energy = masked_energy_for(
        key, formulas, data, jnp.asarray(labels), atomic_numbers=atomic_numbers,
        width=settings.width, depth=settings.depth, sigma_min=settings.sigma_min,
    )  # fmt: skip
    about = {"formulas": [list(map(int, row)) for row in atomic_numbers]}
    return dataclasses.replace(denoising_model(energy, data, settings), about=about)


def _graph_model(
    key: Key,
    group: AbstractGroup,
    data: Particles,
    labels: Any,
    settings: AbstractSettings | None,
    atomic_numbers: Sequence[int] | None,
) -> Model:
    settings = _settings(DenoisingSettings(), settings, "A graph network")
    if not isinstance(group, PointCloud):
        raise ValueError(
            f"A graph network is for the symmetry of a PointCloud, but got {group}."
        )
    if labels is not None:
        raise ValueError(
            "A graph network learns no classes: leave `labels` out, or take `network` "
            "features."
        )
    energy = graph_energy_for(
        key, group, data, atomic_numbers=atomic_numbers, width=settings.width,
        depth=settings.depth, sigma_min=settings.sigma_min,
    )  # fmt: skip
    numbers = None if atomic_numbers is None else list(map(int, atomic_numbers))
    about = {} if numbers is None else {"atomic_numbers": numbers}
    return dataclasses.replace(denoising_model(energy, data, settings), about=about)


def _image_model(
    key: Key,
    group: AbstractGroup,
    data: Particles,
    labels: Any,
    settings: AbstractSettings | None,
) -> Model:
    settings = _settings(ImageSettings(), settings, "A U-shaped network")
    if not isinstance(group, ImageRotations):
        raise ValueError(
            f"A U-shaped network is for the symmetry ImageRotations, but got {group}."
        )
    group.check_shape(data.shape[1:])
    num_classes = _num_classes(labels)
    if labels is not None and num_classes is None:
        raise ValueError(
            "A U-shaped network learns classes, whole numbers, but got `labels` of "
            f"type {np.asarray(labels).dtype}: take `network` features for energies."
        )
    energy = image_energy_for(
        key, group, data, labels, num_classes=num_classes, settings=settings
    )
    return image_model(energy, data, labels, settings)


def _settings(default: Kind, settings: AbstractSettings | None, what: str) -> Kind:
    """Return the settings, which must be of the kind of the default, or the default."""
    if settings is None:
        return default
    if not isinstance(settings, type(default)):
        raise ValueError(
            f"{what} is trained with {type(default).__name__}, but `settings` are "
            f"{type(settings).__name__}."
        )
    return settings


def _num_classes(labels: Any) -> int | None:
    """Return the number of classes, if the labels are some."""
    if labels is None or not np.issubdtype(np.asarray(labels).dtype, np.integer):
        return None
    return int(check_classes(np.asarray(labels)).max()) + 1
