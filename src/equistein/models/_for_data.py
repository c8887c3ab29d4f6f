"""The model that suits a symmetry and data, or a data set read from a file."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from equistein._arrays import as_keys
from equistein._gate import gate
from equistein._types import AnyKey, Key, Particles
from equistein.diffusion import NoiseEnergy
from equistein.groups import AbstractGroup, ImageRotations, PointCloud
from equistein.models._contrastive import contrastive_model
from equistein.models._dataset import Dataset
from equistein.models._denoising import formulas_model, graph_model, image_model
from equistein.models._energies import energy_for, num_classes_of
from equistein.models._model import Model
from equistein.models._settings import (
    AbstractSettings,
    ContrastiveSettings,
    DenoisingSettings,
    ImageSettings,
    Problem,
)
from equistein.molecules import atomic_numbers_of, BOLTZMANN
from equistein.training import AbstractObjective, Blurred, ForceMatching

Network = Literal["features", "graph", "unet"]

_SETTINGS: dict[Network, Any] = {
    "graph": DenoisingSettings,
    "unet": ImageSettings,
    "features": ContrastiveSettings,
}


@gate
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
    with an energy for each noise level, trained by denoising and sampled by reverse
    diffusion. With `unet`, for images, the same on a U-shaped network that corrects
    normal distributions of each class, with classes as well.

    Args:
        key: The source of the weights.
        group: The symmetry.
        data: The points, stacked on axis 0.
        labels: The class of each point (whole numbers from 0 on, -1 where unknown), or
            its known energy (floating point, NaN where unknown), or None.
        network: `features`, `graph` or `unet`; None is what the settings are for, and
            without settings `graph` for point clouds without labels, `unet` for images
            without known energies, else `features`.
        settings: `ContrastiveSettings` for `features`, `DenoisingSettings` for `graph`,
            `ImageSettings` for `unet`.
        atomic_numbers: For `graph`, the atomic number of each particle that is an atom.

    Raises:
        ValueError: If the group does not act on the data, no network is known for it,
            or labels and settings do not fit.
    """
    if network is None and settings is not None:
        network = next(
            (n for n, kind in _SETTINGS.items() if isinstance(settings, kind)), None
        )
    network = network or _usual_network(group, labels)
    key, how = as_keys(key), _checked(settings, network)
    num_classes = num_classes_of(labels)
    if network == "graph":
        if labels is not None:
            raise ValueError(
                "`network` graph learns no classes: leave `labels` out (--no-labels)."
            )
        return graph_model(key, group, data, how, atomic_numbers)
    if network == "unet":
        if not isinstance(group, ImageRotations):
            raise ValueError(
                f"`network` unet is for the symmetry ImageRotations, but got {group}."
            )
        if labels is not None and num_classes is None:
            raise ValueError(
                "`network` unet learns classes, but `labels` are no whole numbers."
            )
        return image_model(key, group, data, labels, how)
    widths = how.widths
    if isinstance(group, ImageRotations) and widths != ContrastiveSettings.widths:
        raise ValueError(
            f"`widths` are not for images, but got {widths!r}: leave them out, or give "
            "contrastive_model an energy of a custom network."
        )
    energy = energy_for(
        key, group, data, num_classes=num_classes, widths=widths,
        temperature=how.temperature,
    )  # fmt: skip
    return contrastive_model(energy, data, labels, how)


def _usual_network(group: AbstractGroup, labels: Any) -> Network:
    if isinstance(group, PointCloud) and group.reflections and labels is None:
        return "graph"
    classes = labels is None or num_classes_of(labels) is not None
    return "unet" if isinstance(group, ImageRotations) and classes else "features"


def _checked(settings: AbstractSettings | None, network: Network) -> Any:
    """Return the settings, which must be those of a network, or its default ones."""
    kind = _SETTINGS[network]
    if settings is None:
        return kind()
    if not isinstance(settings, kind):
        raise ValueError(
            f"`network` {network} is trained with {kind.__name__}, but `settings` are "
            f"{type(settings).__name__}."
        )
    return settings


@gate
def network_of(problem: Problem, dataset: Dataset) -> Network:
    """Return `graph`, `unet` or `features`: what the problem's energy is made of."""
    if dataset.formulas:
        return "graph"  # features are of one formula
    return problem.network or _usual_network(dataset.group, dataset.labels)


@gate
def for_dataset(
    key: Key,
    dataset: Dataset,
    problem: Problem,
    settings: AbstractSettings | None = None,
) -> Model:
    """Return a model of the part of a data set that training sees, as `for_data`.

    One graph network learns molecules of several formulas. Forces of data with a
    temperature are learned too.

    Raises:
        ValueError: If no network is known for the symmetry, or the settings are those
            of another network.
    """
    train, network = dataset.in_memory().train(), network_of(problem, dataset)
    how = _checked(settings, network)
    if train.formulas:
        labels = jnp.asarray(train.labels)
        return formulas_model(key, train.formulas, train.points, labels, how)
    model = for_data(
        key, train.group, train.points, train.labels, network=network,
        settings=how,
        atomic_numbers=atomic_numbers_of(train.species) if train.species else None,
    )  # fmt: skip
    return dataclasses.replace(
        model,
        objective=_with_forces(model, train, how),
        about={**model.about, **dataset.names()},
    )


def _with_forces(
    model: Model, train: Dataset, settings: AbstractSettings
) -> AbstractObjective:
    """Return the objective with that of the forces, if there are some in kT.

    Where the model is of blurred points, so are those of the forces: the score of the
    blurred density is the mean of the forces.
    """
    weight = getattr(settings, "force_weight", 0.0)
    if train.forces is None or train.kelvin is None or not weight:
        return model.objective
    scores = train.forces / (BOLTZMANN * train.kelvin)
    part: AbstractObjective = ForceMatching(scores)
    noise = getattr(settings, "data_noise", 0.0)
    if isinstance(model.energy, NoiseEnergy):
        noise = float(model.energy.sigma_min)
    if noise:
        part = Blurred(part, noise)
    return model.objective + weight / float(np.nanmean(scores**2)) * part
