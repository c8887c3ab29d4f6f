"""Learn a particle system from clouds: what `dw4` and `lj13` share."""

import pathlib
from typing import Protocol, runtime_checkable

import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Particles
from equistein.energies import energy_for
from equistein.experiments._base import seed_keys
from equistein.groups import AbstractGroup
from equistein.training import fit, FitConfig


@runtime_checkable
class CloudConfig(Protocol):
    """The settings that learning a particle system takes."""

    @property
    def num_seeds(self) -> int: ...
    @property
    def num_samples(self) -> int: ...
    @property
    def num_epochs(self) -> int: ...
    @property
    def num_steps(self) -> int: ...
    @property
    def num_particles(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def sample_steps(self) -> int: ...


def fit_config(config: CloudConfig, num_data: int) -> FitConfig:
    """Return the settings of the fit to so many clouds."""
    return FitConfig(
        num_epochs=config.num_epochs,
        batch_size=min(128, num_data),
        num_steps=config.num_steps,
        num_particles=config.num_particles,
        sample_steps=config.sample_steps,
    )


def learned_clouds(
    config: CloudConfig,
    seed: int,
    name: str,
    group: AbstractGroup,
    data: Float[Array, "datum *shape"],
    kept: pathlib.Path | None,
) -> tuple[list[Particles], dict[str, np.ndarray]]:
    """Fit an energy with a symmetry to clouds, once a seed, and draw new ones.

    Args:
        config: The settings.
        seed: The first seed.
        name: The model's name, for the files it keeps of itself.
        group: The symmetry of the energy.
        data: The clouds to learn from.
        kept: The folder of these files.

    Returns:
        The samples of each seed, and the history, `(seed, epoch)`.
    """
    settings = fit_config(config, len(data))
    sets, histories = [], []
    for index, key in enumerate(seed_keys(seed, config.num_seeds, 0)):
        energy_key, fit_key, sample_key = jr.split(key, 3)
        widths = (config.width,) * config.depth
        energy = energy_for(energy_key, group, data, widths=widths)
        fitted = fit(
            fit_key, energy, data, settings, progress=True,
            checkpoint=kept and kept / f"{name}.{index}.eqx",
        )  # fmt: skip
        sets.append(fitted.sample(sample_key, config.num_samples))
        histories.append(fitted.history)
    history = {key: np.stack([h[key] for h in histories]) for key in histories[0]}
    history["step"] = history.pop("epoch")
    return sets, history
