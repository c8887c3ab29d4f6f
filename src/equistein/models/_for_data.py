"""The model that suits a symmetry and data, or a data set read from a file."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from equistein._arrays import as_keys
from equistein._check_arguments import check_arguments
from equistein._types import AnyKey, Key, Particles
from equistein.data import Dataset
from equistein.groups import (
    AbstractGroup,
    ImageRotations,
    Molecule,
    Orthogonal,
    PeriodicCloud,
    PointCloud,
    SpecialOrthogonal,
)
from equistein.metrics import shared_bonds
from equistein.models._contrastive import contrastive_model, energy_for, num_classes_of
from equistein.models._denoising import graph_model, image_model
from equistein.models._linear import ComparedModel, linear_model, LinearModel
from equistein.models._model import Model, with_forces
from equistein.models._settings import (
    AbstractSettings,
    ComparedSettings,
    ContrastiveSettings,
    DenoisingSettings,
    ImageSettings,
    LinearSettings,
    Network,
)
from equistein.molecules import atomic_numbers_of, BOLTZMANN

_MOST_COORDINATES = 10  # of points that waves are better for than perceptrons

SETTINGS: Mapping[str, AbstractSettings] = {
    "features": ContrastiveSettings(),
    "graph": DenoisingSettings(),
    "unet": ImageSettings(),
    "linear": LinearSettings(),
    "linear+graph": ComparedSettings(takes_best=False),
    "auto": ComparedSettings(),
}
"""The default settings of each network."""


@check_arguments
def for_data(
    key: AnyKey, group: AbstractGroup, data: Particles, labels: Any = None, *,
    settings: AbstractSettings | None = None,
    atomic_numbers: Sequence[int] | None = None,
) -> Model | LinearModel | ComparedModel:  # fmt: skip
    """Return an energy, its training and its generator that suit a group and data.

    The settings choose the network, as in `SETTINGS`. By default they are
    `DenoisingSettings` for point clouds without labels, `ImageSettings` for images,
    `LinearSettings` in a periodic cell and for up to ten coordinates without labels,
    else `ContrastiveSettings`.

    Labels are the class of each point (whole numbers from 0 on, -1 where unknown), or
    its known energy (floating point, NaN where unknown). The `atomic_numbers` are for a
    graph network of particles that are atoms.
    """
    settings = settings or SETTINGS[default_network(group, data.shape[1:], labels)]
    key, num_classes = as_keys(key), num_classes_of(labels)
    cloud = group  # networks of distances do not tell mirror images apart
    if isinstance(group, Molecule):
        cloud = PointCloud(group.species, group.dim)
    unlabeled = isinstance(settings, DenoisingSettings) or (
        isinstance(settings, LinearSettings)
        and (num_classes is None or isinstance(cloud, PointCloud))
    )
    if unlabeled and labels is not None:
        raise ValueError("This network learns no such classes: leave out `labels`.")
    if isinstance(settings, DenoisingSettings):
        model = graph_model(key, cloud, data, settings, atomic_numbers)
        if not isinstance(settings, ComparedSettings):
            return model
        noise = float(model.energy.sigma_min)  # type: ignore[attr-defined]
        blurred = dataclasses.replace(settings, noise=noise)
        linear = linear_model(group, data, blurred, atomic_numbers is not None)
        return ComparedModel(linear=linear, graph=model, settings=settings)
    if isinstance(settings, LinearSettings):
        return linear_model(group, data, settings, atomic_numbers is not None)
    if isinstance(settings, ImageSettings):
        if not isinstance(group, ImageRotations):
            raise ValueError(
                f"`settings` of images need a `group` ImageRotations, but got {group}."
            )
        if labels is not None and num_classes is None:
            raise ValueError(
                "Energies of images learn classes, but `labels` are no whole numbers."
            )
        return image_model(key, group, data, labels, settings)
    assert isinstance(settings, ContrastiveSettings)
    energy = energy_for(
        key, cloud, data, num_classes=num_classes, widths=settings.widths,
        temperature=settings.temperature,
    )  # fmt: skip
    return contrastive_model(energy, data, labels, settings)


def default_network(
    group: AbstractGroup, shape: tuple[int, ...], labels: Any, density: bool = False
) -> Network:
    """Return the network for a symmetry, a shape of points, labels and a purpose."""
    if isinstance(group, ImageRotations):
        return "unet"
    if isinstance(group, PeriodicCloud):
        return "linear"
    is_cloud = isinstance(group, PointCloud) and group.reflections
    if (is_cloud or isinstance(group, Molecule)) and labels is None:
        return "linear" if density else "graph"
    has_radius = isinstance(group, Orthogonal | SpecialOrthogonal) and len(shape) == 1
    is_easy = labels is None and (has_radius or group.order is not None)
    is_easy &= math.prod(shape) <= _MOST_COORDINATES
    return "linear" if is_easy else "features"


@check_arguments
def for_dataset(
    key: Key, dataset: Dataset, settings: AbstractSettings | None = None
) -> Model | LinearModel | ComparedModel:
    """Return a model of what training sees of a data set, and of its forces in kT.

    Linear energies of molecules have the symmetry of the bonds that all have.
    """
    train = dataset.preview().train()
    shape = train.points.shape[1:]
    settings = settings or SETTINGS[default_network(train.group, shape, train.labels)]
    numbers = atomic_numbers_of(train.species) if train.species else None
    group = train.group
    if type(settings) is LinearSettings and numbers and isinstance(group, PointCloud):
        if bonds := shared_bonds(train):  # which tell more than elements
            group = Molecule((bonds, numbers), reflections=group.reflections)
    known = {"settings": settings, "atomic_numbers": numbers}
    model = for_data(key, group, train.points, train.labels, **known)
    about = {**model.about, **train.about()}
    forces = None
    if train.forces is not None and train.kelvin is not None:
        forces = train.forces / (BOLTZMANN * train.kelvin)
    if isinstance(model, Model):
        return dataclasses.replace(with_forces(model, forces, settings), about=about)
    return dataclasses.replace(model, forces=forces, about=about)
