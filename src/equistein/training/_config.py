"""Settings of a fit."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class FitConfig:
    """How an energy is trained by contrastive divergence, and sampled.

    Attributes:
        num_epochs: Passes over the data.
        batch_size: Data points a batch; at most all of them.
        num_particles: Persistent particles, the negatives of every batch.
        num_steps: Sampler steps a batch.
        reset_probability: The chance, for each particle and batch, to start anew.
        stein_step: The step size of the Stein force, in squared units of the points; 0
            leaves Langevin noise alone, None is the same as `langevin`.
        langevin: The length of the Langevin step, in squared units of the points; about
            a fifth of the squared width of the finest detail. None is a ten-thousandth
            of the squared reach of the data.
        bandwidth: The kernel's bandwidth; None is the median rule.
        score_clip: The largest norm of a score, in inverse units of the points; well
            above what the data's finest detail needs. None is 450 over the reach.
        repel: Whether the batch of data joins the sums as repulsive particles.
        learning_rate: Adam's, decaying to 1 % of it along a cosine.
        gradient_clip: The largest norm of the gradient of all weights.
        regularization: The weight of the mean squared energies of data and particles.
        ema: The decay of the running mean of the weights, which is what is sampled; it
            is shorter during the first updates.
        sample_steps: Steps to draw new samples.
        sample_tail: The share of them over which the Langevin step falls to 5 %.
        sample_at_once: The number of samples drawn together; their forces join.
    """

    num_epochs: int = 60
    batch_size: int = 128
    num_particles: int = 256
    num_steps: int = 60
    reset_probability: float = 0.05
    stein_step: float | None = None
    langevin: float | None = None
    bandwidth: float | None = None
    score_clip: float | None = None
    repel: bool = False
    learning_rate: float = 2e-3
    gradient_clip: float = 10.0
    regularization: float = 1e-3
    ema: float = 0.995
    sample_steps: int = 1_500
    sample_tail: float = 0.3
    sample_at_once: int = 512

    def __post_init__(self):
        counts = {
            "num_epochs", "batch_size", "num_particles", "num_steps",
            "sample_steps", "sample_at_once", "score_clip", "learning_rate",
            "gradient_clip",
        }  # fmt: skip
        for name in counts:
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise ValueError(f"FitConfig needs `{name}` > 0, but got {value!r}.")
        for name in ("stein_step", "langevin", "regularization"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise ValueError(f"FitConfig needs `{name}` >= 0, but got {value!r}.")
        if self.stein_step == 0 and self.langevin == 0:
            raise ValueError(
                "FitConfig needs `stein_step` or `langevin` above 0, or no particle "
                "moves."
            )
        for name in ("reset_probability", "sample_tail"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ValueError(
                    f"FitConfig needs `{name}` between 0 and 1, but got {value!r}."
                )
        if not 0 <= self.ema < 1:
            raise ValueError(f"FitConfig needs 0 <= `ema` < 1, but got {self.ema!r}.")
        if self.bandwidth is not None and not self.bandwidth > 0:
            raise ValueError(
                "FitConfig needs `bandwidth` > 0, or None for the median rule, but got "
                f"{self.bandwidth!r}."
            )

    def in_units(self, reach: float) -> "FitConfig":
        """Return these settings with the lengths that are None set by the data.

        Args:
            reach: The largest coordinate of the data.
        """
        langevin = (0.01 * reach) ** 2 if self.langevin is None else self.langevin
        return dataclasses.replace(
            self,
            langevin=langevin,
            stein_step=langevin if self.stein_step is None else self.stein_step,
            score_clip=450 / reach if self.score_clip is None else self.score_clip,
        )
