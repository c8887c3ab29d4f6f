"""Learn a particle system from clouds: what `dw4` and `lj13` share."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import jax.random as jr
import numpy as np

from equistein.diffusion import NoiseEnergy
from equistein.groups import AbstractGroup, Trivial
from equistein.metrics import reweight
from equistein.models import (
    AbstractSettings,
    ContrastiveSettings,
    denoising_model,
    DenoisingSettings,
    for_data,
)
from equistein.networks import NoiseMLP
from equistein.runs import Outcome
from equistein.samplers import from_blackjax, MALA, run, suppress_warnings
from equistein.training import Fitted
from experiments._engine import AbstractConfig, augmented, Entry, has_blackjax, Trial
from experiments._figures import Curves
from experiments._types import Key, LogDensity, Particles

_FIRST_STEP = 1e-3  # of the Markov chains that correct samples
_WEIGHTED_STEP = 4e-3  # of chains with weights


@dataclasses.dataclass(frozen=True, kw_only=True)
class CloudConfig(AbstractConfig):
    """Settings of learning a particle system.

    Attributes:
        num_paper_seeds: The seeds of the paper's models; None is all.
        num_samples: Samples drawn from each model, from fresh starts.
        num_epochs: Passes over the data of the models trained by contrastive
            divergence.
        num_steps: Sampler steps a batch.
        num_particles: Persistent particles.
        width: The number of units of a hidden layer.
        depth: The number of hidden layers.
        sample_steps: Steps to draw a sample.
        cooling_fraction: The fraction of them over which the Langevin step falls. With
            0 they are those that trained the energy, which makes up for their length.
        num_weighted: Chains with weights, of the model that has them; 0 leaves it out.
        weighted_epochs: Its epochs.
        weighted_steps: The steps of its chains in a batch.
        annealing_steps: Steps to draw a sample of it, at most.
        num_batches: Batches of the graph network; 0 leaves it out.
        batch_size: Clouds a batch.
        graph_width: Its units.
        graph_depth: Its layers.
        diffusion_steps: Steps to draw a sample of it.
        least_noise: Its least noise, in the units of the points; None is what suits.
        twin_width: The units of the three layers of its twin without symmetry, which
            make as many parameters.
        twin_batches: The batches of the twin that take as much time.
        evaluations: Evaluations of the true energy that correct a sample, where it is
            known: `energy_w2_corrected` is after them. `weights_worth` is the
            effective number of samples by importance weights, without evaluations
            beyond one a sample.
        trajectory: The evaluations of a trajectory of the Hamiltonian chains that do.
        leapfrog_step_size: Their step size.
    """

    num_seeds: int = 1
    num_paper_seeds: int | None = None
    num_samples: int = 1_000
    num_epochs: int = 60
    num_steps: int = 60
    num_particles: int = 256
    width: int = 128
    depth: int = 3
    sample_steps: int = 1_500
    cooling_fraction: float = 0.3
    num_weighted: int = 0
    weighted_epochs: int = 120
    weighted_steps: int = 5
    annealing_steps: int = 250
    num_batches: int = 0
    batch_size: int = 32
    graph_width: int = 48
    graph_depth: int = 3
    diffusion_steps: int = 200
    least_noise: float | None = None
    twin_width: int = 160
    twin_batches: int = 12_800
    evaluations: int = 50
    trajectory: int = 16
    leapfrog_step_size: float = 0.025

    or_zero: ClassVar[Sequence[str]] = (
        "num_batches", "num_weighted", "cooling_fraction",
    )  # fmt: skip

    def denoising(self, num_batches: int, num_data: int) -> DenoisingSettings:
        """Return how energies of all noise levels are trained and sampled."""
        epoch_batches = min(64, num_batches)
        return DenoisingSettings(
            num_epochs=num_batches // epoch_batches, epoch_batches=epoch_batches,
            batch_size=min(self.batch_size, num_data), width=self.graph_width,
            depth=self.graph_depth, sigma_min=self.least_noise,
            sample_steps=self.diffusion_steps,
            sample_at_once=1_000,
        )  # fmt: skip


TINY: dict[str, Any] = {
    "num_epochs": 2, "num_steps": 4, "num_particles": 16, "width": 16,
    "weighted_epochs": 2, "annealing_steps": 4, "sample_steps": 40,
    "graph_width": 8, "graph_depth": 1, "diffusion_steps": 8, "twin_width": 8,
    "twin_batches": 4, "evaluations": 4,
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
        widths=(config.width,) * config.depth, sample_steps=config.sample_steps,
        cooling_fraction=config.cooling_fraction, **more,
    )  # fmt: skip
    return _learned(settings, trial, group, data)


def weigh_clouds(
    config: CloudConfig, trial: Trial, group: AbstractGroup, data: Particles
) -> tuple[Fitted, Key]:
    """Fit an energy against chains with weights, which are exact in distribution.

    Their step suits the noise of the data of `dw4`.
    """
    settings = ContrastiveSettings(
        num_epochs=config.weighted_epochs, batch_size=min(128, len(data)),
        negatives="reweighted", kernel="none", num_particles=config.num_weighted,
        num_steps=config.weighted_steps, langevin_step_size=_WEIGHTED_STEP,
        reset_probability=0.0, regularization=0.0,
        widths=(config.width,) * config.depth, sample_steps=config.annealing_steps,
        sample_at_once=config.num_weighted,
    )  # fmt: skip
    return _learned(settings, trial, group, data)


def _learned(
    settings: AbstractSettings, trial: Trial, group: AbstractGroup, data: Particles
) -> tuple[Fitted, Key]:
    """Fit what the settings are for."""
    energy_key, fit_key, sample_key = jr.split(trial.key(0), 3)
    model = for_data(energy_key, group, data, settings=settings)
    fitted = model.fit(fit_key, data, checkpoint=trial.checkpoint(), progress=True)
    return fitted, sample_key


def denoise_clouds(
    config: CloudConfig, trial: Trial, group: AbstractGroup, data: Particles
) -> tuple[Fitted, Key]:
    """Fit energies of all noise levels on a graph network."""
    settings = config.denoising(config.num_batches, len(data))
    return _learned(settings, trial, group, data)


def denoise_coordinates(
    config: CloudConfig,
    trial: Trial,
    group: AbstractGroup,
    data: Particles,
    copies: int,
) -> tuple[Fitted, Key]:
    """Fit the twin without symmetry to the data, or to copies moved by the group."""
    energy_key, fit_key, sample_key = jr.split(trial.key(0), 3)
    if copies > 1:
        data = augmented(trial.key(3), group, data, copies)
    settings = config.denoising(config.twin_batches, len(data))
    settings = dataclasses.replace(settings, stein_step_size=0.0)
    network = NoiseMLP(data[0].size, widths=(config.twin_width,) * 3, key=energy_key)
    graph = for_data(energy_key, group, data[:512], network="graph", settings=settings)
    noise = float(graph.energy.sigma_min)  # type: ignore[attr-defined]
    model = denoising_model(NoiseEnergy(network, data, noise), data, settings)
    fitted = model.fit(fit_key, data, checkpoint=trial.checkpoint(), progress=True)
    return fitted, sample_key


def corrected(
    key: Key,
    log_density: LogDensity,
    group: AbstractGroup,
    points: Particles,
    config: CloudConfig,
) -> Particles:
    """Return where Markov chains of a density end that begin at the samples.

    They are Hamiltonian where BlackJAX is installed: what is too hot along soft
    directions, Langevin steps of the length that stiff ones allow would not see.
    """
    num, length = config.evaluations - 1, config.trajectory  # a first look also
    if not has_blackjax() or num < length:
        chains = MALA(_FIRST_STEP, num_adapt=num // 2, project=group.project)
        return run(key, chains, log_density, points, num_steps=num).particles
    import blackjax

    chains = from_blackjax(
        blackjax.hmc, step_size=config.leapfrog_step_size,
        num_integration_steps=length, project=group.project,
    )  # fmt: skip
    return run(key, chains, log_density, points, num_steps=num // length).particles


def worth_of_weights(
    fitted: Fitted, log_density: LogDensity, samples: Particles
) -> float:
    """Return how many equal weights those are worth that make samples of a density.

    Of samples that are of the learned density; those that are only nearly so can be
    worth little, which Markov chains do not mind.
    """
    with suppress_warnings():  # the number tells
        weighted = reweight(samples, fitted.log_density, log_density)
    return float(weighted.effective_sample_size)


def cloud_models(
    config: CloudConfig,
    group: AbstractGroup,
    data: Callable[[], Particles],
    describe: Callable[..., Outcome],
    notes: tuple[str, str],
    known: LogDensity | None = None,
) -> list[Entry]:
    """Return the paper's models; and the graph network with its twins, if there is one.

    The paper's are trained by contrastive divergence, one on coordinates and one with
    the symmetry, of which the notes tell. Where the log density of the data is known,
    chains of it correct the samples, as a further metric.
    """

    def learned(learn: Callable[..., tuple[Fitted, Key]], trial: Trial) -> Outcome:
        fitted, key = learn(config, trial, data=data())
        samples = jax.vmap(group.project)(fitted.sample(key, config.num_samples))
        more = {}
        if known is not None:
            moved = corrected(jr.fold_in(key, 1), known, group, samples, config)
            more["energy_w2_corrected"] = describe(moved).metrics["energy_w2"][0]
            more["weights_worth"] = worth_of_weights(fitted, known, samples)
        return describe(
            samples, more=more, history=fitted.history, events=fitted.events
        )

    def entry(
        name: str,
        label: str,
        note: str,
        learn: Callable,
        num_seeds: int | None = None,
        **given: Any,
    ) -> Entry:
        learn = functools.partial(learn, **given)
        stage = functools.partial(learned, learn)
        return Entry(name, stage, note, label=label, num_seeds=num_seeds, trains=True)

    models = (
        ("plain", "plain EBM, SVGD", Trivial()),
        ("equivariant", "equivariant EBM, E-SVGD", group),
    )
    entries = [
        entry(name, label, note, learn_clouds, config.num_paper_seeds, group=symmetry)
        for (name, label, symmetry), note in zip(models, notes, strict=True)
    ]
    if config.num_weighted:
        note = (
            "The equivariant network against Metropolis-adjusted chains with weights, "
            "drawn by annealed sequential Monte Carlo: nothing but the data shapes it."
        )
        label = "equivariant EBM, weights"
        entries.append(entry("reweighted", label, note, weigh_clouds, group=group))
    if not config.num_batches:
        return entries
    twin = (
        "A perceptron of coordinates for all noise levels, of as many parameters, "
        "trained for as much time by the same denoising"
    )
    return [
        *entries,
        entry(
            "plain-denoised", "coordinates, denoising", f"{twin}.", denoise_coordinates,
            num_seeds=1, group=group, copies=1,
        ),
        entry(
            "augmented-denoised", "the same, augmented",
            f"{twin}, on a hundred copies of the data, each moved by the group.",
            denoise_coordinates, num_seeds=1, group=group, copies=100,
        ),
        entry(
            "denoised", "graph network, denoising",
            "What `equistein fit` takes: a graph network of all particles with an "
            "energy for each level of noise, trained by denoising, and drawn by "
            "reverse diffusion.",
            denoise_clouds, group=group,
        ),
    ]  # fmt: skip


def _gap(outcome: Outcome) -> np.ndarray | None:
    history = outcome.history
    if "positive_energy" not in history:
        return None
    return history["positive_energy"] - history["negative_energy"]


GAP = Curves(
    "training",
    _gap,
    "energy of data minus energy of particles",
    x_label="epoch",
    level=0.0,
    level_label="no difference",
    caption="The gap that contrastive divergence closes: mean and range over seeds.",
)
