"""Settings of a fit."""

import dataclasses
from typing import Any, Literal


@dataclasses.dataclass(frozen=True, kw_only=True)
class FitConfig:
    """How an energy is trained, and sampled.

    Attributes:
        num_epochs: How many epochs. None is 60, or as many as make 500 batches; with
            `num_passes` None as many as make 9 600.
        num_passes: Passes over the data that make one epoch. None is as many as make 64
            batches.
        epoch_batches: Batches that make one epoch, instead of passes: shorter epochs of
            much data, or longer ones of little.
        batch_size: Data points a batch; at most all of them.
        num_particles: The negatives of every batch.
        buffer_size: Particles kept between batches, of which `num_particles` are drawn
            for each; None keeps just those (persistent contrastive divergence), more
            is a replay buffer.
        num_steps: Sampler steps a batch, at most.
        tolerance: A batch's sampler stops once its root mean square update is below
            this, in the units of the points; None takes all steps. Langevin noise
            counts, so it is of use without noise only.
        reset_probability: The chance, for each particle and batch, to start anew;
            those of a `NoiseEnergy` do so when they have been annealed.
        reset_to_data: The share of these that starts at data points; the others start
            at `start`.
        start: Where particles and new samples start: `box`, uniformly in a box around
            the data; or `normals`, normal laws with the mean and the covariance of the
            data of each class, moved by the group.
        negatives: What moves the particles: `esvgd`, with the kernel of the energy's
            symmetry; `svgd`, with a plain one; or `langevin`, without a kernel.
        stein_step: The step size of the Stein force, in squared units of the points; 0
            leaves Langevin noise alone, None is the same as `langevin`, or a 25th of
            it for a `NoiseEnergy`.
        langevin: The length of the Langevin step, in squared units of the points; about
            a fifth of the squared width of the finest detail. None is a ten-thousandth
            of the squared reach of the data, or the squared least noise of a
            `NoiseEnergy`. There both are steps at the least noise, and grow with it;
            beyond six times that noise neither is taken.
        step_epochs: Epochs at which both steps change.
        step_factors: What they are multiplied with from each of these epochs on,
            compared with the start.
        bandwidth: The kernel's bandwidth; None is the median rule.
        score_clip: The largest norm of a score, in inverse units of the points; well
            above what the data's finest detail needs. None is 450 over the reach; of a
            `NoiseEnergy` three times the norm of the noise's own score, and 20 over
            the noise at least.
        repel: Whether the batch of data joins the sums as repulsive particles.
        temperature: The temperature T of the model, which is exp(-E / T): of the
            particles in training and of the samples drawn after it.
        contrastive: The weight of contrastive divergence; 0 trains without negatives.
        supervised: The weight of the labels' loss: cross-entropy for classes, squared
            error for known energies.
        score_matching: The weight of denoising score matching.
        noise: Its noise, in the units of the points: the model fits the data so
            blurred. None is a fiftieth of the reach. A `NoiseEnergy` has its own.
        data_noise: Noise added to the data of each batch, in the units of the points; a
            `NoiseEnergy` has its levels instead.
        regularization: The weight of the mean squared energies of data and particles.
        learning_rate: Adam's, decaying to 1 % of it along a cosine.
        learning_rate_epochs: Epochs at which it changes instead, in steps.
        learning_rate_factors: What it is multiplied with from each of these epochs on,
            compared with the start.
        warm_up: The number of updates over which it rises from 0.
        gradient_clip: The largest norm of the gradient of all weights.
        ema: The decay of the running mean of the weights, which is what is sampled; it
            is shorter during the first updates.
        max_rollbacks: How often a diverging fit goes back to its last good state, with
            half the steps and new randomness, before it gives up.
        energy_limit: The size of an energy from which on a fit is diverging.
        sample_steps: Steps to draw new samples.
        sample_tail: The share of them over which the Langevin step falls to 5 %; a
            `NoiseEnergy` has none.
        sample_at_once: The number of samples drawn together; their forces join.
    """

    num_epochs: int | None = None
    num_passes: int | None = 1
    epoch_batches: int | None = None
    batch_size: int = 128
    num_particles: int = 256
    buffer_size: int | None = None
    num_steps: int = 60
    tolerance: float | None = None
    reset_probability: float = 0.05
    reset_to_data: float = 0.0
    start: Literal["box", "normals"] = "box"
    negatives: Literal["esvgd", "svgd", "langevin"] = "esvgd"
    stein_step: float | None = None
    langevin: float | None = None
    step_epochs: tuple[int, ...] = ()
    step_factors: tuple[float, ...] = ()
    bandwidth: float | None = None
    score_clip: float | None = None
    repel: bool = False
    temperature: float = 1.0
    contrastive: float = 1.0
    supervised: float = 1.0
    score_matching: float = 0.0
    noise: float | None = None
    data_noise: float = 0.0
    regularization: float = 1e-3
    learning_rate: float = 2e-3
    learning_rate_epochs: tuple[int, ...] = ()
    learning_rate_factors: tuple[float, ...] = ()
    warm_up: int = 0
    gradient_clip: float = 10.0
    ema: float = 0.995
    max_rollbacks: int = 3
    energy_limit: float = 1e6
    sample_steps: int = 1_500
    sample_tail: float = 0.3
    sample_at_once: int = 512

    def __post_init__(self):
        for name in _INTEGERS:
            value = getattr(self, name)
            if value is not None and type(value) is not int:
                raise ValueError(
                    f"FitConfig needs `{name}`, an integer, but got {value!r}."
                )
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and not (_below(value, float("inf")) and value):
                raise ValueError(f"FitConfig needs `{name}` > 0, but got {value!r}.")
        for name in _NOT_NEGATIVE:
            value = getattr(self, name)
            if value is not None and not _below(value, float("inf")):
                raise ValueError(f"FitConfig needs `{name}` >= 0, but got {value!r}.")
        for name in ("reset_probability", "reset_to_data", "sample_tail"):
            value = getattr(self, name)
            if not _below(value, 1.0) and value != 1:
                raise ValueError(
                    f"FitConfig needs `{name}` between 0 and 1, but got {value!r}."
                )
        if not _below(self.ema, 1.0):
            raise ValueError(f"FitConfig needs 0 <= `ema` < 1, but got {self.ema!r}.")
        if self.negatives not in ("esvgd", "svgd", "langevin"):
            raise ValueError(
                "FitConfig needs `negatives`, one of 'esvgd', 'svgd' and 'langevin', "
                f"but got {self.negatives!r}."
            )
        if self.start not in ("box", "normals"):
            raise ValueError(
                "FitConfig needs `start`, one of 'box' and 'normals', but got "
                f"{self.start!r}."
            )
        self._check_schedules()
        self._check_together()

    def for_data(self, num: int) -> "FitConfig":
        """Return these settings with epochs and passes set for `num` points."""
        passes, epochs = self.num_passes, self.num_epochs
        if self.epoch_batches is not None:
            passes = passes or 1  # they do not count
        if passes is None:
            passes = -(-64 * self.batch_size // num)
        num_batches = self.epoch_batches or max(1, passes * num // self.batch_size)
        if epochs is None and self.num_passes is None:
            epochs = -(-9_600 // num_batches)
        elif epochs is None:
            epochs = max(60, -(-500 // num_batches))
        return dataclasses.replace(self, num_epochs=epochs, num_passes=passes)

    def num_batches(self, num: int) -> int:
        """Return the number of batches in an epoch; the settings are `for_data`."""
        assert self.num_passes is not None
        if self.epoch_batches is not None:
            return self.epoch_batches
        return self.num_passes * num // self.batch_size

    def _check_schedules(self) -> None:
        for name in ("step", "learning_rate"):
            epochs = getattr(self, f"{name}_epochs")
            factors = getattr(self, f"{name}_factors")
            tuples = isinstance(epochs, tuple) and isinstance(factors, tuple)
            if not tuples or not _is_schedule(epochs, factors):
                raise ValueError(
                    f"FitConfig needs `{name}_epochs`, a tuple rising from 1, and as "
                    f"many positive `{name}_factors`, "
                    f"but got {epochs!r} and {factors!r}."
                )

    def _check_together(self) -> None:
        still = self.langevin == 0 and self.stein_step == 0
        if still or (self.langevin == 0 and self.negatives == "langevin"):
            raise ValueError(
                "FitConfig needs `stein_step` or `langevin` above 0, or no particle "
                "moves."
            )
        if self.repel and self.negatives == "langevin":
            raise ValueError(
                "FitConfig cannot let data `repel` Langevin chains, which are "
                "independent: take `negatives` esvgd or svgd."
            )
        if self.buffer_size is not None and self.buffer_size < self.num_particles:
            raise ValueError(
                "FitConfig needs `buffer_size` of at least `num_particles`, "
                f"{self.num_particles}, but got {self.buffer_size!r}."
            )
        if self.contrastive == self.score_matching == self.supervised == 0:
            raise ValueError(
                "FitConfig needs `contrastive`, `score_matching` or `supervised` above "
                "0, or nothing fits the energy to the data."
            )


def _below(value: Any, high: float) -> bool:
    """Whether a value is a number from 0 on and below `high`."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value < high


def _is_schedule(epochs: tuple, factors: tuple) -> bool:
    good = all(_below(factor, float("inf")) and factor for factor in factors)
    counted = all(type(epoch) is int for epoch in epochs)
    pairs = zip((0, *epochs), epochs, strict=False)
    rising = counted and all(before < after for before, after in pairs)
    return len(epochs) == len(factors) and good and rising


def num_epochs_of(config: FitConfig) -> int:
    """Return the number of epochs of settings made `for_data`."""
    assert config.num_epochs is not None
    return config.num_epochs


_INTEGERS = (
    "num_epochs", "num_passes", "epoch_batches", "batch_size", "num_particles",
    "buffer_size", "num_steps", "warm_up", "max_rollbacks", "sample_steps",
    "sample_at_once",
)  # fmt: skip
_POSITIVE = (
    "num_epochs", "num_passes", "epoch_batches", "batch_size", "num_particles",
    "buffer_size", "num_steps", "tolerance", "bandwidth", "score_clip", "temperature",
    "noise", "learning_rate", "gradient_clip", "energy_limit", "sample_steps",
    "sample_at_once",
)  # fmt: skip
_NOT_NEGATIVE = (
    "stein_step", "langevin", "contrastive", "supervised", "score_matching",
    "data_noise", "regularization", "warm_up", "max_rollbacks",
)  # fmt: skip

DENOISING = FitConfig(
    num_passes=None,
    batch_size=32,
    contrastive=0.0,
    score_matching=1.0,
    regularization=0.0,
    learning_rate=3e-3,
    warm_up=100,
    ema=0.999,
    sample_steps=600,
    sample_at_once=128,
)
"""Settings to learn a `NoiseEnergy` by denoising score matching."""
