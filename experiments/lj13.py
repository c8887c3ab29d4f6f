"""Learn LJ-13 from samples, as an equivariant EBM on invariant features."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein.data import published_clouds
from equistein.groups import AbstractGroup, Trivial
from equistein.metrics import reweight
from equistein.models import AbstractSettings, DenoisingSettings, LinearSettings
from equistein.runs import FLOOR, Outcome
from equistein.samplers import from_blackjax, MALA, run, suppress_warnings
from equistein.training import Fitted
from experiments._engine import Entry, Experiment, has_package, Key, Particles, Trial
from experiments._figures import configurations, histograms
from experiments._systems import (
    CloudConfig,
    described,
    fit_as_set,
    fit_coordinates,
    learn_clouds,
    reference,
    SYSTEMS,
    TINY,
)

_SYSTEM = SYSTEMS["lj13"]
_TARGET = _SYSTEM.target
_HELD_OUT = 1_000  # samples to compare with, at least
_BATCH = 32  # clouds, of the graph network and its twins
_TRAJECTORY = 16  # evaluations, of the Hamiltonian chains that correct samples
_LEAPFROG = 0.025  # their step
_FIRST_STEP = 1e-3  # of Langevin chains in their place


@dataclasses.dataclass(frozen=True, kw_only=True)
class LJ13Config(CloudConfig):
    """Settings of `lj13`.

    Attributes:
        num_paper_seeds: The seeds of the paper's models; None is all.
        num_data: Training configurations.
        num_batches: Batches of the graph network.
        graph_width: Its units.
        graph_depth: Its layers.
        diffusion_steps: Steps to draw a sample of it.
        linear_steps: Steps to draw a sample of the linear energy.
        twin_width: The units of the three layers of its twin without symmetry, which
            make as many parameters.
        twin_batches: The batches of the twin that take as much time.
        evaluations: Evaluations of the true energy that correct a sample:
            `energy_w2_corrected` is after them.
    """

    num_seeds: int = 3
    num_paper_seeds: int | None = 1
    num_epochs: int = 10
    num_steps: int = 30
    num_data: int = 1_000
    num_batches: int = 6_400
    graph_width: int = 48
    graph_depth: int = 3
    diffusion_steps: int = 200
    linear_steps: int = 2_000
    twin_width: int = 160
    twin_batches: int = 12_800
    evaluations: int = 50

    def denoising(self, num_batches: int, num_data: int) -> DenoisingSettings:
        """Return how energies of all noise levels are trained and sampled."""
        epoch_batches = min(64, num_batches)
        return DenoisingSettings(
            num_epochs=num_batches // epoch_batches, epoch_batches=epoch_batches,
            batch_size=min(_BATCH, num_data), width=self.graph_width,
            depth=self.graph_depth, sample_steps=self.diffusion_steps,
            sample_at_once=1_000,
        )  # fmt: skip


@functools.cache
def samples_to_learn(num: int) -> tuple[Particles, Float[Array, "other *shape"]]:
    """Return configurations to learn from, and others to compare with.

    Published samples if they are enough, or the library's own reference samples.
    """
    clouds = published_clouds("lj13/test_split_LJ13-1000.npy", 13, 3)
    if clouds is None or len(clouds) < num + _HELD_OUT:
        clouds = reference(_SYSTEM, num + _HELD_OUT, 2)
    clouds = jnp.asarray(clouds)
    return clouds[:num], clouds[num:]


def corrected(key: Key, points: Particles, evaluations: int) -> Particles:
    """Return where Markov chains of the true density end that begin at the samples.

    They are Hamiltonian where BlackJAX is installed: what is too hot along soft
    directions, Langevin steps of the length that stiff ones allow would not see.
    """
    num, project = evaluations - 1, _TARGET.group.project  # a first look also
    if has_package("blackjax") and num >= _TRAJECTORY:
        import blackjax

        chains = from_blackjax(
            blackjax.hmc, step_size=_LEAPFROG, num_integration_steps=_TRAJECTORY,
            project=project,
        )  # fmt: skip
        num //= _TRAJECTORY
    else:
        chains = MALA(_FIRST_STEP, num_adapt=num // 2, project=project)
    return run(key, chains, _TARGET.log_density, points, num_steps=num).particles


def entries(config: LJ13Config) -> list[Entry]:
    """Return the paper's models; the graph network with its twins; and the floor."""

    def data() -> Particles:
        return samples_to_learn(config.num_data)[0]

    def describe(points: Particles, **kept: Any) -> Outcome:
        held_out = samples_to_learn(config.num_data)[1]
        return described(_SYSTEM, held_out, points, **kept)

    def stage(learn: Callable[[Trial], tuple[Fitted, Key]], trial: Trial) -> Outcome:
        fitted, key = learn(trial)
        samples = fitted.sample(key, config.num_samples)
        samples = jax.vmap(_TARGET.group.project)(samples)
        moved = corrected(jr.fold_in(key, 1), samples, config.evaluations)
        with suppress_warnings():  # the number tells
            weighted = reweight(samples, fitted.log_density, _TARGET.log_density)
        more = {
            "energy_w2_corrected": describe(moved).metrics["energy_w2"][0],
            "weights_worth": float(weighted.effective_sample_size),
        }
        return describe(
            samples, more=more, history=fitted.history, events=fitted.events
        )

    def by_contrast(symmetry: AbstractGroup):
        return lambda trial: learn_clouds(config, trial, symmetry, data())

    def as_set(settings: AbstractSettings):
        return lambda trial: fit_as_set(settings, trial, group, data())

    def twin(copies: int):
        settings = config.denoising(config.twin_batches, config.num_data * copies)
        settings = dataclasses.replace(settings, stein_step_size=0.0)
        return lambda trial: fit_coordinates(
            settings, trial, group, data(), copies, config.twin_width
        )

    few, group = config.num_paper_seeds, _TARGET.group
    denoising = config.denoising(config.num_batches, config.num_data)
    solve = LinearSettings(sample_steps=config.linear_steps)
    models = (
        ("plain", "plain EBM, SVGD", by_contrast(Trivial()), few),
        ("equivariant", "equivariant EBM, E-SVGD", by_contrast(group), few),
        ("plain-denoised", "coordinates, denoising", twin(1), 1),
        ("augmented-denoised", "the same, augmented", twin(100), 1),
        ("denoised", "graph network, denoising", as_set(denoising), None),
        ("linear", "linear in functions of distance, one solve", as_set(solve), None),
    )
    return [
        *(
            Entry(
                name, functools.partial(stage, learn), _NOTES[name], label=label,
                num_seeds=num_seeds, trains=True,
            )
            for name, label, learn, num_seeds in models
        ),
        Entry(
            FLOOR, lambda trial: describe(data()[: config.num_samples]), label="data",
            num_seeds=1,
        ),
    ]  # fmt: skip


_TWIN = (
    "A perceptron of coordinates for all noise levels, of as many parameters, trained "
    "for as much time by the same denoising"
)
_NOTES = {
    "plain": "The network sees coordinates.",
    "equivariant": "The network sees sorted distances and each particle's mean "
    "distance; the sampler's kernel is pulled back along the distances.",
    "plain-denoised": f"{_TWIN}.",
    "augmented-denoised": f"{_TWIN}, on a hundred copies of the data, each moved by "
    "the group.",
    "denoised": "What `equistein fit` takes: a graph network of all particles with an "
    "energy for each level of noise, trained by denoising, and drawn by reverse "
    "diffusion. weights_worth: of samples that are only nearly of the learned density "
    "little, which Markov chains do not mind.",
    "linear": "Gaussians of the logarithm of each distance and powers: one solve of "
    "the score matching equations finds their coefficients. Drawn by annealed "
    "sequential Monte Carlo from a normal density.",
}

LJ13 = Experiment(
    name="lj13",
    figure="beyond the paper",
    headlines=("energy_w2", "distance_tv", "energy_w2_corrected"),
    summary="learn LJ-13 from samples and draw new clusters",
    presets={
        "smoke": LJ13Config(
            num_seeds=1, num_data=40, num_batches=4, graph_width=8, graph_depth=1,
            diffusion_steps=8, linear_steps=8, twin_width=8, twin_batches=4,
            evaluations=4, **{**TINY, "num_samples": 16},
        ),
        "quick": LJ13Config(),
        "paper": LJ13Config(
            num_seeds=5, num_paper_seeds=None, num_data=5_000, num_epochs=100,
            width=256, num_batches=19_200,
        ),
    },
    entries=entries,
    figures=(
        configurations(8, 2.5, caption="Configurations as drawn."),
        histograms(
            "energies",
            "energies",
            "energy in the true potential",
            limits=(-70.0, 60.0),
            caption="Energies in the true potential, which the models never see. The "
            "pair energy rises by thousands within a tenth of a length, so that small "
            "errors of the model show as high energies here.",
        ),
    ),
)  # fmt: skip
