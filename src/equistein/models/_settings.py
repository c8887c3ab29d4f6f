"""The settings of the models that the library makes."""

import dataclasses
import math
import sys
from collections.abc import Collection
from types import NoneType
from typing import Any, ClassVar, get_args, get_origin, Literal

from equistein._limits import MOST, WHY_MOST
from equistein._numbers import is_integer, is_number
from equistein.training import Precision


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractSettings:
    """How an energy is trained and sampled, whatever the objective.

    Numbers are finite and positive, but for the fields that a class names here.

    Attributes:
        num_epochs: The number of epochs; None is as many as suit.
        epoch_batches: Batches an epoch; None is one pass over the data.
        batch_size: Data points a batch; at most all of them.
        learning_rate: Adam's, decaying to 1 % of it along a cosine.
        warm_up: The number of updates over which it rises from 0.
        gradient_clip: The largest norm of the gradient of all weights.
        ema: The decay of the running mean of the weights, which is what is sampled.
        max_rollbacks: How often a diverging fit goes back to its last good state.
        energy_limit: The size of an energy from which on a fit is diverging.
        precision: How training rounds the factors of a network's products on a GPU or a
            TPU, as in `es.training.Optimization`; None is JAX's own setting.
        sample_steps: Steps to draw new samples.
        sample_at_once: The number of samples drawn together; their forces join.
    """

    num_epochs: int | None = None
    epoch_batches: int | None = None
    batch_size: int
    learning_rate: float
    warm_up: int = 0
    gradient_clip: float = 10.0
    ema: float
    max_rollbacks: int = 3
    energy_limit: float = 1e6
    precision: Precision | None = None
    sample_steps: int
    sample_at_once: int

    or_zero: ClassVar[Collection[str]] = ("warm_up", "ema", "max_rollbacks")
    fractions: ClassVar[Collection[str]] = ()

    def __post_init__(self):
        """Raise `ValueError` for a setting that is out of range."""
        check_fields(
            self, or_zero=self.or_zero, fractions=self.fractions, below_one=("ema",)
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractParticleSettings(AbstractSettings):
    """Settings of energies whose samples are particles that interact.

    Attributes:
        bandwidth: The kernel's bandwidth; None is the median rule.
        stein_step_size: The step along the Stein force, in squared units of the points.
        langevin_step_size: The Langevin step, in squared units of the points.
        score_clip: The largest norm of a score, in inverse units of the points.
        force_weight: The weight of the squared error of known forces, over their mean
            square, where the data has some.
    """

    bandwidth: float | None = None
    stein_step_size: float | None = None
    langevin_step_size: float | None = None
    score_clip: float | None = None
    force_weight: float = 1.0

    or_zero: ClassVar[Collection[str]] = (
        *AbstractSettings.or_zero, "stein_step_size", "langevin_step_size",
        "force_weight",
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class ContrastiveSettings(AbstractParticleSettings):
    """How an energy is trained by contrastive divergence, and sampled.

    Attributes:
        num_epochs: The number of epochs; None is 60, or as many as make 500 batches.
        widths: The units of each hidden layer of a perceptron.
        temperature: The temperature T of the points; the model is exp(-E / T).
        negatives: `persistent` particles, or `reweighted` ones, Metropolis-adjusted
            chains whose weights estimate the mass of each mode: exact in a few
            dimensions, with kernel `none`. New samples then come from annealed
            sequential Monte Carlo, in at most `sample_steps` steps. num_particles: The
            negatives of every batch. buffer_size: Particles kept between batches, of
            which `num_particles` are drawn for each; None keeps just those (persistent
            contrastive divergence). num_steps: Sampler steps a batch.
            reset_probability: The chance, for each particle and batch, to restart.
            reset_to_data: The fraction of these that start at data points. initial:
            Where particles and new samples start: `box`, uniformly in a box around the
            data; or `normals`, normal distributions with the mean and the covariance of
            the data of each class, moved by the group. kernel: How particles interact:
            `equivariant`, across orbits; `plain`, as they are; or `none`, independent
            Langevin chains. stein_step_size: The step along the Stein force, in squared
            units of the points; None is the same as `langevin_step_size`.
            langevin_step_size: The Langevin step, in squared units of the points; about
            a fifth of the squared width of the finest detail. None is a ten-thousandth
            of the squared reach of the data. score_clip: The largest norm of a score,
            in inverse units of the points; well above what the data's finest detail
            needs. None is 450 over the reach. regularization: The weight of the mean
            squared energies of data and particles. label_weight: The weight of the
            labels' loss: cross-entropy for classes, squared error for known energies.
            data_noise: Noise added to the data of each batch, in the units of the
            points. cooling_fraction: The fraction of `sample_steps` over which the
            Langevin step falls to 5 %, at the end.
    """

    batch_size: int = 128
    learning_rate: float = 2e-3
    ema: float = 0.995
    widths: tuple[int, ...] = (128, 128, 128)
    temperature: float = 1.0
    negatives: Literal["persistent", "reweighted"] = "persistent"
    num_particles: int = 256
    buffer_size: int | None = None
    num_steps: int = 60
    reset_probability: float = 0.05
    reset_to_data: float = 0.0
    initial: Literal["box", "normals"] = "box"
    kernel: Literal["equivariant", "plain", "none"] = "equivariant"
    regularization: float = 1e-3
    label_weight: float = 1.0
    data_noise: float = 0.0
    sample_steps: int = 1_500
    cooling_fraction: float = 0.3
    sample_at_once: int = 512
    force_weight: float = 100.0  # divergences are of all coordinates together

    fractions: ClassVar[Collection[str]] = (
        "reset_probability", "reset_to_data", "cooling_fraction",
    )  # fmt: skip
    or_zero: ClassVar[Collection[str]] = (
        *AbstractParticleSettings.or_zero, *fractions, "regularization", "label_weight",
        "data_noise",
    )  # fmt: skip

    def __post_init__(self):
        """Raise `ValueError` for settings out of range, or that do not go together."""
        super().__post_init__()
        still = self.stein_step_size == 0 or self.kernel == "none"
        if self.langevin_step_size == 0 and still:
            raise ValueError(
                "`stein_step_size` (with a kernel) or `langevin_step_size` must be "
                "above 0, or no particle moves."
            )
        if self.negatives == "reweighted":
            self._check_reweighted()
        if self.buffer_size is not None and self.buffer_size < self.num_particles:
            raise ValueError(
                "`buffer_size` must be at least `num_particles`, "
                f"{self.num_particles}, but got {self.buffer_size!r}."
            )

    def _check_reweighted(self) -> None:
        """Raise `ValueError` for settings that chains with weights have no use for."""
        if self.kernel != "none":
            raise ValueError(
                "`negatives` that are reweighted are independent chains: give `kernel` "
                f"none, not {self.kernel}."
            )
        if self.langevin_step_size == 0 or self.buffer_size is not None:
            raise ValueError(
                "`negatives` that are reweighted take `langevin_step_size` above 0 and "
                f"no `buffer_size`, but got {self.langevin_step_size!r} and "
                f"{self.buffer_size!r}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DenoisingSettings(AbstractParticleSettings):
    """How energies of all noise levels are trained by denoising, and sampled.

    Attributes:
        num_epochs: The number of epochs; None is as many as make 19 200 batches, and of
            more than 4 800 points 4 for each, up to 38 400.
        epoch_batches: Batches an epoch.
        width: The number of units of the graph network.
        depth: The number of its layers.
        sigma_min: The least noise, in the units of the points; None is a 20th of the
            median distance to the nearest particle.
        ending: How the least noise is taken off samples: `mean`, to the mean of what it
            may come from, for points at rest, as molecules are; or `flow`, along the
            probability flow, which keeps the width of a density.
        stein_step_size: The step of the Stein force at the least noise, in squared
            units of the points; None is a 25th of the Langevin step, for a reach of 8,
            and 0 for clouds that are no molecules. 0 leaves the force out.
        langevin_step_size: The Langevin step at the least noise, in the same; None is
            the squared noise. Both steps grow with the noise; beyond six times the
            least neither is taken.
        score_clip: The largest norm of a score at the least noise; None is three times
            that of the noise's own, and 20 over the noise at least.
        sample_steps: Steps from the largest noise to the least.
        sample_temperature: The temperature of the steps at up to twenty times the least
            noise: below 1 samples are nearer to the modes; None is 0.7 for molecules,
            which are at rest, and 1 for other clouds.
    """

    epoch_batches: int = 64
    batch_size: int = 32
    learning_rate: float = 3e-3
    warm_up: int = 100
    ema: float = 0.999
    width: int = 64
    depth: int = 4
    sigma_min: float | None = None
    ending: Literal["mean", "flow"] = "mean"
    sample_steps: int = 600
    sample_at_once: int = 128
    sample_temperature: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageSettings(AbstractSettings):
    """How energies of images are trained by denoising at all levels, and sampled.

    Attributes:
        num_epochs: The number of epochs; None is as many as make 4 000 batches.
        epoch_batches: Batches an epoch.
        fields: The fields of each level of the network, from the finest on; larger
            images have more levels of the last number.
        num_blocks: The blocks of its coarsest level.
        sigma_min: The least noise, in the units of the pixels: the energy is that of
            the images blurred by it.
        sigma_max: The largest noise, where samples start.
        label_weight: The weight of the cross-entropy of classes beside a loss that is a
            mean over pixels: at 1 it alone would shape what both share.
        sample_steps: Steps from the largest noise to the least, of two evaluations.
    """

    epoch_batches: int = 100
    batch_size: int = 32
    learning_rate: float = 6e-3
    warm_up: int = 100
    gradient_clip: float = 1.0
    ema: float = 0.99
    energy_limit: float = 1e9
    fields: tuple[int, ...] = (8, 16)
    num_blocks: int = 2
    sigma_min: float = 0.05
    sigma_max: float = 4.0
    label_weight: float = 0.01
    sample_steps: int = 50
    sample_at_once: int = 128

    or_zero: ClassVar[Collection[str]] = (*AbstractSettings.or_zero, "label_weight")

    def __post_init__(self):
        """Raise `ValueError` for a setting out of range."""
        super().__post_init__()
        if self.sigma_max <= self.sigma_min:
            raise ValueError(
                f"`sigma_max` must be above `sigma_min`, {self.sigma_min}, but got "
                f"{self.sigma_max!r}."
            )


def check_fields(
    settings: Any,
    *,
    or_zero: Collection[str] = (),
    fractions: Collection[str] = (),
    below_one: Collection[str] = (),
) -> None:
    """Raise unless the fields of a dataclass are of their types, and numbers positive.

    Looks at numbers, tuples of them, which must not be empty, and choices (`Literal`).

    Args:
        settings: A dataclass.
        or_zero: The numbers that may be zero as well.
        fractions: The numbers that are 1 at most.
        below_one: The numbers that are below 1.

    Raises:
        ValueError: If one is not, with its name, what was expected and what came.
    """
    for field in dataclasses.fields(settings):
        name, value, kind = field.name, getattr(settings, field.name), field.type
        kinds: tuple[Any, ...] = get_args(kind) or (kind,)
        if get_origin(kind) is Literal:
            good, wanted = value in kinds, f"one of {', '.join(kinds)}"
        elif (value is None and NoneType in kinds) or not {int, float} & {*kinds}:
            continue
        else:
            whole, zero = int in kinds, name in or_zero
            wanted = f"a {'whole' if whole else 'finite'} number "
            wanted += "from 0 on" if zero else "above 0"
            most = sys.float_info.max
            if whole:
                wanted, most = f"{wanted}, at most {MOST:.0e}", MOST
            if name in fractions:
                wanted, most = wanted + ", at most 1", 1.0
            elif name in below_one:
                wanted, most = wanted + ", below 1", math.nextafter(1, 0)
            values = value if get_origin(kind) is tuple else (value,)
            good = values and all(_in_range(v, whole, zero, most) for v in values)
            wanted = f"one or more, each {wanted}" if values is value else wanted
        if not good:
            huge = isinstance(value, int) and value > MOST
            why = f": {WHY_MOST}" if huge else ""
            raise ValueError(f"`{name}` must be {wanted}, but got {value!r}{why}.")


def _in_range(value: Any, whole: bool, zero: bool, most: int | float) -> bool:
    if not (is_integer(value) if whole else is_number(value)):
        return False
    return 0 <= value <= most and (zero or value > 0)
