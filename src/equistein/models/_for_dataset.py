"""The model that suits a data set read from a file."""

import dataclasses
from typing import Literal

import jax.numpy as jnp

from equistein._gate import gate
from equistein._types import Key
from equistein.models._dataset import Dataset
from equistein.models._energies_and_forces import with_forces
from equistein.models._for_data import for_data, for_formulas
from equistein.models._model import Model
from equistein.models._problem import Problem
from equistein.models._read_dataset import IMAGE_GROUPS
from equistein.models._settings import AbstractSettings
from equistein.molecules import atomic_numbers_of


@gate
def network_of(
    problem: Problem, dataset: Dataset
) -> Literal["graph", "features", "unet"]:
    """Return `graph`, `unet` or `features`: what the problem's energy is made of."""
    if dataset.formulas:
        return "graph"  # features are of one formula
    if problem.network is not None:
        return problem.network
    return usual_network(problem.group, dataset.labels is not None)


@gate
def usual_network(
    group: str | None, has_labels: bool
) -> Literal["graph", "features", "unet"]:
    """Return what an energy is made of by default."""
    if group in IMAGE_GROUPS:
        return "unet"
    return "graph" if group == "point-cloud" and not has_labels else "features"


@gate
def for_dataset(
    key: Key,
    dataset: Dataset,
    problem: Problem,
    settings: AbstractSettings | None = None,
) -> Model:
    """Return a model of the part of a data set that training sees.

    Settings are `DenoisingSettings` for a graph network, `ImageSettings` for a U-shaped
    one, else `ContrastiveSettings`. Forces of data with a temperature are learned too.

    Raises:
        ValueError: If no network is known for the symmetry, or the settings are those
            of the other kind of network.
    """
    train, network = dataset.in_memory().train(), network_of(problem, dataset)
    species = train.species
    if train.formulas:
        return for_formulas(
            key, train.formulas, train.points, jnp.asarray(train.labels),
            atomic_numbers=[atomic_numbers_of(row) for row in train.formulas],
            settings=settings,
        )  # fmt: skip
    model = for_data(
        key, train.group, train.points, train.labels, network=network,
        settings=settings,
        atomic_numbers=atomic_numbers_of(species) if species else None,
    )  # fmt: skip
    model = with_forces(model, train, settings)
    return dataclasses.replace(model, about={**model.about, **dataset.names()})
