"""The settings of the models that the library makes."""

import dataclasses
from typing import Any, Literal


@dataclasses.dataclass(frozen=True, kw_only=True)
class ContrastiveSettings:
    """How an energy is trained by contrastive divergence, and sampled.

    Attributes:
        num_epochs: The number of epochs; None is 60, or as many as make 500 batches.
        epoch_batches: Batches an epoch; None is one pass over the data.
        batch_size: Data points a batch; at most all of them.
        learning_rate: Adam's, decaying to 1 % of it along a cosine.
        warm_up: The number of updates over which it rises from 0.
        gradient_clip: The largest norm of the gradient of all weights.
        ema: The decay of the running mean of the weights, which is what is sampled.
        max_rollbacks: How often a diverging fit goes back to its last good state.
        energy_limit: The size of an energy from which on a fit is diverging.
        widths: The units of each hidden layer of a perceptron.
        temperature: The temperature T of the points; the model is exp(-E / T).
        num_particles: The negatives of every batch.
        buffer_size: Particles kept between batches, of which `num_particles` are drawn
            for each; None keeps just those (persistent contrastive divergence).
        num_steps: Sampler steps a batch.
        reset_probability: The chance, for each particle and batch, to start anew.
        reset_to_data: The fraction of these that start at data points.
        start: Where particles and new samples start: `box`, uniformly in a box around
            the data; or `normals`, normal laws with the mean and the covariance of the
            data of each class, moved by the group.
        kernel: What the particles feel of each other: `equivariant`, across orbits;
            `plain`, as they are; or `none`, independent Langevin chains.
        bandwidth: The kernel's bandwidth; None is the median rule.
        stein_step_size: The step along the Stein force, in squared units of the points;
            None is the same as `langevin_step_size`.
        langevin_step_size: The Langevin step, in squared units of the points; about a
            fifth of the squared width of the finest detail. None is a ten-thousandth of
            the squared reach of the data.
        score_clip: The largest norm of a score, in inverse units of the points; well
            above what the data's finest detail needs. None is 450 over the reach.
        regularization: The weight of the mean squared energies of data and particles.
        label_weight: The weight of the labels' loss: cross-entropy for classes, squared
            error for known energies.
        data_noise: Noise added to the data of each batch, in the units of the points.
        sample_steps: Steps to draw new samples.
        cooling_fraction: The fraction of them over which the Langevin step falls to
            5 %.
        sample_at_once: The number of samples drawn together; their forces join.
    """

    num_epochs: int | None = None
    epoch_batches: int | None = None
    batch_size: int = 128
    learning_rate: float = 2e-3
    warm_up: int = 0
    gradient_clip: float = 10.0
    ema: float = 0.995
    max_rollbacks: int = 3
    energy_limit: float = 1e6
    widths: tuple[int, ...] = (128, 128, 128)
    temperature: float = 1.0
    num_particles: int = 256
    buffer_size: int | None = None
    num_steps: int = 60
    reset_probability: float = 0.05
    reset_to_data: float = 0.0
    start: Literal["box", "normals"] = "box"
    kernel: Literal["equivariant", "plain", "none"] = "equivariant"
    bandwidth: float | None = None
    stein_step_size: float | None = None
    langevin_step_size: float | None = None
    score_clip: float | None = None
    regularization: float = 1e-3
    label_weight: float = 1.0
    data_noise: float = 0.0
    sample_steps: int = 1_500
    cooling_fraction: float = 0.3
    sample_at_once: int = 512

    def __post_init__(self):
        _check_common(self)
        _check(self, ("num_particles", "num_steps"), whole=True)
        _check(self, ("buffer_size",), whole=True)
        _check(self, ("temperature", "bandwidth", "score_clip"))
        if not self.widths or min(self.widths) < 1:
            raise ValueError(
                "`widths` must be the number of units of one hidden layer or more, "
                f"each at least 1, but got {self.widths!r}."
            )
        zero = ("stein_step_size", "langevin_step_size", "regularization")
        _check(self, (*zero, "label_weight", "data_noise"), zero=True)
        _check_fractions(
            self, ("reset_probability", "reset_to_data", "cooling_fraction")
        )
        choices = {
            "start": ("box", "normals"), "kernel": ("equivariant", "plain", "none"),
        }  # fmt: skip
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise ValueError(
                    f"`{name}` must be one of {', '.join(known)}, but got "
                    f"{getattr(self, name)!r}."
                )
        still = self.stein_step_size == 0 or self.kernel == "none"
        if self.langevin_step_size == 0 and still:
            raise ValueError(
                "`stein_step_size` (with a kernel) or `langevin_step_size` must be "
                "above 0, or no particle moves."
            )
        if self.buffer_size is not None and self.buffer_size < self.num_particles:
            raise ValueError(
                "`buffer_size` must be at least `num_particles`, "
                f"{self.num_particles}, but got {self.buffer_size!r}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DenoisingSettings:
    """How energies of all levels of noise are trained by denoising, and sampled.

    Attributes:
        num_epochs: The number of epochs; None is as many as make 9 600 batches.
        epoch_batches: Batches an epoch.
        batch_size: Data points a batch; at most all of them.
        learning_rate: Adam's, decaying to 1 % of it along a cosine.
        warm_up: The number of updates over which it rises from 0.
        gradient_clip: The largest norm of the gradient of all weights.
        ema: The decay of the running mean of the weights, which is what is sampled.
        max_rollbacks: How often a diverging fit goes back to its last good state.
        energy_limit: The size of an energy from which on a fit is diverging.
        width: The number of units of the graph network.
        depth: The number of its layers.
        noise: The least noise, in the units of the points; None is a 20th of the median
            distance to the nearest particle.
        bandwidth: The kernel's bandwidth; None is the median rule.
        stein_step_size: The step of the Stein force at the least noise, in squared
            units of the points; None is a 25th of the Langevin step, for a reach of 8.
            0 leaves the force out.
        langevin_step_size: The Langevin step at the least noise, in the same; None is
            the squared noise. Both steps grow with the noise; beyond six times the
            least neither is taken.
        score_clip: The largest norm of a score at the least noise; None is three times
            that of the noise's own, and 20 over the noise at least.
        sample_steps: Steps from the largest noise to the least.
        sample_at_once: The number of samples drawn together; their forces join.
    """

    num_epochs: int | None = None
    epoch_batches: int = 64
    batch_size: int = 32
    learning_rate: float = 3e-3
    warm_up: int = 100
    gradient_clip: float = 10.0
    ema: float = 0.999
    max_rollbacks: int = 3
    energy_limit: float = 1e6
    width: int = 64
    depth: int = 4
    noise: float | None = None
    bandwidth: float | None = None
    stein_step_size: float | None = None
    langevin_step_size: float | None = None
    score_clip: float | None = None
    sample_steps: int = 600
    sample_at_once: int = 128

    def __post_init__(self):
        _check_common(self)
        _check(self, ("width", "depth"), whole=True)
        _check(self, ("noise", "bandwidth", "score_clip"))
        _check(self, ("stein_step_size", "langevin_step_size"), zero=True)


Settings = ContrastiveSettings | DenoisingSettings


def _check_common(settings: Settings) -> None:
    """Check what both kinds have."""
    whole = ("num_epochs", "epoch_batches", "batch_size", "sample_steps")
    _check(settings, (*whole, "sample_at_once"), whole=True)
    _check(settings, ("warm_up", "max_rollbacks"), whole=True, zero=True)
    _check(settings, ("learning_rate", "gradient_clip", "energy_limit"))
    if settings.ema == 1:
        raise ValueError("`ema` must be below 1, but got 1.")
    _check_fractions(settings, ("ema",))


def _check(
    settings: Settings,
    names: tuple[str, ...],
    *,
    whole: bool = False,
    zero: bool = False,
) -> None:
    """Raise `ValueError` unless fields are None or positive and finite."""
    for name in names:
        value: Any = getattr(settings, name)
        kinds = int if whole else int | float
        good = isinstance(value, kinds) and not isinstance(value, bool)
        if value is None or (good and 0 <= value < float("inf") and (value or zero)):
            continue
        raise ValueError(
            f"`{name}` must be {'a whole number' if whole else 'a finite number'} "
            f"{'from 0 on' if zero else 'above 0'}, but got {value!r}."
        )


def _check_fractions(settings: Settings, names: tuple[str, ...]) -> None:
    """Raise `ValueError` unless fields are between 0 and 1."""
    for name in names:
        value: Any = getattr(settings, name)
        if not isinstance(value, int | float) or not 0 <= value <= 1:
            raise ValueError(f"`{name}` must be between 0 and 1, but got {value!r}.")
