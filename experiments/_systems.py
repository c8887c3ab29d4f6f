"""Particle systems: what samples are compared with, and learning from clouds."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein.diffusion import NoiseEnergy
from equistein.groups import AbstractGroup
from equistein.metrics import pair_distances, total_variation, wasserstein_1d
from equistein.models import (
    AbstractSettings,
    ContrastiveSettings,
    denoising_model,
    DenoisingSettings,
    for_data,
)
from equistein.networks import NoiseMLP
from equistein.runs import Outcome, seed_outcome
from equistein.targets import AbstractParticleSystem, DoubleWell, LennardJones
from equistein.training import Fitted
from experiments._engine import AbstractConfig, Key, Particles, Scalar, Trial
from experiments._sampling import augmented


@dataclasses.dataclass(frozen=True)
class System:
    """A particle system and what it is compared with.

    Attributes:
        target: Its density.
        energies: The range of energies shown.
        start_evaluations: The evaluations that its starts take, a particle.
    """

    target: AbstractParticleSystem
    energies: tuple[float, float]
    start_evaluations: int = 0

    def energy(self, points: Particles) -> Float[Array, " n"]:
        """Return the energy of each configuration."""
        return jax.vmap(lambda x: -self.target.log_density(x))(points)

    @eqx.filter_jit
    def quality(
        self, exact: Float[Array, "exact *shape"], points: Particles
    ) -> dict[str, Scalar]:
        """Return the two distances to exact samples that the curves show."""
        energies = self.energy(points), self.energy(exact)
        distances = pair_distances(points), pair_distances(exact)
        return {
            "energy_w2": wasserstein_1d(*energies, order=2),
            "distance_tv": total_variation(*distances, self.target.distance_limits),
        }


@functools.lru_cache(4)
def reference(system: System, num: int, part: int) -> Float[Array, "n *shape"]:
    """Return samples by parallel tempering, from the cache if they are there.

    Part 0 is the independent set to compare with, 1 that for the floor.
    """
    return system.target.reference(num, part)


SYSTEMS = {
    "dw4": System(DoubleWell(), (-26.0, -14.0)),
    "lj13": System(LennardJones(), (-70.0, -10.0)),
    "lj55": System(LennardJones(55), (-380.0, -260.0), 50),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CloudConfig(AbstractConfig):
    """Settings of learning a particle system by contrastive divergence.

    Attributes:
        num_samples: Samples drawn from each model, from fresh starts.
        num_epochs: Passes over the data.
        num_steps: Sampler steps a batch.
        num_particles: Persistent particles.
        width: The number of units of each of three hidden layers.
        sample_steps: Steps to draw a sample.
        cooling_fraction: The fraction of them over which the Langevin step falls. With
            0 they are those that trained the energy, which makes up for their length.
    """

    num_seeds: int = 1
    num_samples: int = 1_000
    num_epochs: int = 60
    num_steps: int = 60
    num_particles: int = 256
    width: int = 128
    sample_steps: int = 1_500
    cooling_fraction: float = 0.3

    or_zero: ClassVar[Sequence[str]] = ("cooling_fraction",)


TINY: dict[str, Any] = {
    "num_samples": 32, "num_epochs": 2, "num_steps": 4, "num_particles": 16,
    "width": 16, "sample_steps": 40,
}  # fmt: skip
"""The settings of a run that is only tried out."""


def learn_clouds(
    config: CloudConfig,
    trial: Trial,
    group: AbstractGroup,
    data: Particles,
    **more: Any,
) -> tuple[Fitted, Key]:
    """Fit an energy with a symmetry to clouds; return the key of its samples too."""
    settings = ContrastiveSettings(
        num_epochs=config.num_epochs, batch_size=min(128, len(data)),
        num_steps=config.num_steps, num_particles=config.num_particles,
        widths=(config.width,) * 3, sample_steps=config.sample_steps,
        cooling_fraction=config.cooling_fraction, learning_rate=2e-3, **more,
    )  # fmt: skip
    return fit_as_set(settings, trial, group, data)


def fit_as_set(
    settings: AbstractSettings,
    trial: Trial,
    group: AbstractGroup,
    data: Particles,
    **about: Any,
) -> tuple[Fitted, Key]:
    """Fit what the settings are for; return the key of its samples too."""
    energy_key, fit_key, sample_key = jr.split(trial.key(0), 3)
    model = for_data(energy_key, group, data, settings=settings, **about)
    fitted = model.fit(fit_key, data, checkpoint=trial.checkpoint(), progress=True)
    return fitted, sample_key


def fit_coordinates(
    settings: DenoisingSettings,
    trial: Trial,
    group: AbstractGroup,
    data: Particles,
    copies: int,
    width: int,
) -> tuple[Fitted, Key]:
    """Fit a perceptron of coordinates, for the noise levels of a graph network.

    It sees each point, or so many copies of it that the group moves at random.
    """
    network_key, fit_key, sample_key = jr.split(trial.key(0), 3)
    if copies > 1:
        data = augmented(trial.key(3), group, data, copies)
    noise = settings.sigma_min
    if noise is None:
        graph: Any = for_data(network_key, group, data[:512], settings=settings)
        noise = float(graph.energy.sigma_min)
    network = NoiseMLP(data[0].size, widths=(width,) * 3, key=network_key)
    model = denoising_model(NoiseEnergy(network, data, noise), data, settings)
    fitted = model.fit(fit_key, data, checkpoint=trial.checkpoint(), progress=True)
    return fitted, sample_key


def described(
    system: System,
    held_out: Float[Array, "datum *shape"],
    points: Particles,
    more: Mapping[str, Any] | None = None,
    **kept: Any,
) -> Outcome:
    """Measure configurations against those held out; keep further numbers."""
    energies = system.energy(points)
    numbers = system.quality(held_out, points) | {
        "median_energy": jnp.median(energies),
        "median_energy_of_data": jnp.median(system.energy(held_out)),
        **(more or {}),
    }
    return seed_outcome(numbers, points, arrays={"energies": energies}, **kept)
