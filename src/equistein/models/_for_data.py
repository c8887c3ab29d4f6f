"""The model that suits a symmetry and data, or a data set read from a file."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from equistein._arrays import as_keys
from equistein._check_arguments import check_arguments
from equistein._types import AnyKey, Key, Particles
from equistein.diffusion import NoiseEnergy
from equistein.groups import AbstractGroup, ImageRotations, PointCloud
from equistein.models._contrastive import (
    contrastive_model,
    energy_for,
    num_classes_of,
)
from equistein.models._dataset import Dataset
from equistein.models._denoising import graph_model, image_model
from equistein.models._linear import linear_model, LinearModel
from equistein.models._model import Model
from equistein.models._settings import (
    AbstractSettings,
    ContrastiveSettings,
    DenoisingSettings,
    ImageSettings,
    LinearSettings,
    Network,
)
from equistein.molecules import atomic_numbers_of, BOLTZMANN, main_hand
from equistein.training import AbstractObjective, Blurred, ForceMatching

SETTINGS: Mapping[str, AbstractSettings] = {
    "features": ContrastiveSettings(),
    "graph": DenoisingSettings(),
    "unet": ImageSettings(),
    "linear": LinearSettings(),
}
"""The default settings of each network."""


@check_arguments
def for_data(
    key: AnyKey,
    group: AbstractGroup,
    data: Particles,
    labels: Any = None,
    *,
    settings: AbstractSettings | None = None,
    atomic_numbers: Sequence[int] | None = None,
) -> Model | LinearModel:
    """Return an energy, its training and its generator that suit a group and data.

    The settings choose the network, as `Problem.network` says: `ContrastiveSettings` a
    perceptron, trained by contrastive divergence with E-SVGD, with classes as labels a
    joint energy; `DenoisingSettings` a graph network for point clouds, sampled by
    reverse diffusion; `ImageSettings` a U-shaped network, with classes as well; and
    `LinearSettings` an energy by one solve, but for clouds with classes as well.

    Args:
        key: The source of the weights.
        group: The symmetry.
        data: The points, stacked on axis 0.
        labels: The class of each point (whole numbers from 0 on, -1 where unknown), or
            its known energy (floating point, NaN where unknown), or None.
        settings: By default `DenoisingSettings` for point clouds without labels,
            `ImageSettings` for images, else `ContrastiveSettings`.
        atomic_numbers: For a graph network, that of each particle that is an atom.
    """
    settings = settings or SETTINGS[default_network(group, labels)]
    key, num_classes = as_keys(key), num_classes_of(labels)
    is_linear = isinstance(settings, LinearSettings)
    unlabeled = isinstance(settings, DenoisingSettings) or (
        is_linear and (num_classes is None or isinstance(group, PointCloud))
    )
    if unlabeled and labels is not None:
        raise ValueError("This network learns no such classes: leave out `labels`.")
    if is_linear:
        return linear_model(group, data, settings, atomic_numbers is not None)
    if isinstance(settings, DenoisingSettings):
        return graph_model(key, group, data, settings, atomic_numbers)
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
        key, group, data, num_classes=num_classes, widths=settings.widths,
        temperature=settings.temperature,
    )  # fmt: skip
    return contrastive_model(energy, data, labels, settings)


def default_network(
    group: AbstractGroup, labels: Any, wants_density: bool = False
) -> Network:
    """Return the network that suits a symmetry, labels and a purpose."""
    if isinstance(group, ImageRotations):
        return "unet"
    is_cloud = isinstance(group, PointCloud) and group.reflections
    if is_cloud and labels is None:
        return "linear" if wants_density else "graph"
    return "features"


@check_arguments
def for_dataset(
    key: Key, dataset: Dataset, settings: AbstractSettings | None = None
) -> Model | LinearModel:
    """Return a model of what training sees of a data set, and of its forces in kT."""
    train = dataset.preview().train()
    settings = settings or SETTINGS[default_network(train.group, train.labels)]
    model = for_data(
        key, train.group, train.points, train.labels, settings=settings,
        atomic_numbers=atomic_numbers_of(train.species) if train.species else None,
    )  # fmt: skip
    kept = ("columns", "classes", "class_column", "charge")
    named = {n: getattr(train, n) for n in kept}
    lists: dict[str, Any] = {
        k: [*v] if isinstance(v, tuple) else v for k, v in named.items() if v
    }
    if train.species:
        lists["atomic_numbers"] = [*atomic_numbers_of(train.species)]
        found = main_hand(train.species, np.asarray(train.points))
        if found is not None and found[1] == 1:
            lists["stereo_smiles"] = [*found[0]]
    if train.kelvin is not None:
        lists["kelvin"] = float(train.kelvin)
    about = {**model.about, **lists, "data_summary": dataset.summary}
    if isinstance(model, LinearModel):
        return dataclasses.replace(model, forces=_forces(train), about=about)
    objective = _with_forces(model, train, settings)
    return dataclasses.replace(model, objective=objective, about=about)


def _forces(train: Dataset) -> np.ndarray | None:
    """Return the forces over kT, in units of the inverse length, if both are known."""
    if train.forces is None or train.kelvin is None:
        return None
    return train.forces / (BOLTZMANN * train.kelvin)


def _with_forces(model: Model, train: Dataset, settings: Any) -> AbstractObjective:
    """Return the objective, with force matching added if forces are known."""
    # Contrastive divergence sums over coordinates, the loss of denoising is a mean.
    weight = 100.0 if isinstance(settings, ContrastiveSettings) else 1.0
    scores = _forces(train)
    if scores is None:
        return model.objective
    part: AbstractObjective = ForceMatching(scores)
    noise = getattr(settings, "data_noise", 0.0)
    if isinstance(model.energy, NoiseEnergy):  # the score there is the mean force
        noise = float(model.energy.sigma_min)
    if noise:
        part = Blurred(part, noise)
    return model.objective + weight / float(np.nanmean(scores**2)) * part
