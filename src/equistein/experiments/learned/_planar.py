"""What the experiments that learn a planar density share."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from equistein._types import LogDensity, Particles, Scalar
from equistein.energies import AbstractEnergy
from equistein.experiments._base import Stage
from equistein.runs import FLOOR, Outcome, SEED
from equistein.training import FitConfig, Fitted

MODELS = {
    "plain": "plain EBM, SVGD",
    "equivariant-svgd": "equivariant EBM, SVGD",
    "equivariant": "equivariant EBM, E-SVGD",
}
"""The models by name: only the last two know the symmetry, and only the last one's
sampler does."""

PAPER_WIDTHS = (32, 64, 64, 64, 32)
PAPER = FitConfig(
    num_epochs=500,
    batch_size=32,
    num_particles=32,
    num_steps=10_000,
    tolerance=1e-4,
    stein_step=0.9,
    langevin=0.0,
    repel=True,
    reset_to_data=1.0,
    learning_rate=1e-3,
    sample_steps=10_000,
    sample_at_once=128,
)
"""What the paper's settings of both experiments have in common."""


def smoke(config: Any) -> Any:
    """Return a configuration made small enough for a test."""
    return dataclasses.replace(
        config,
        num_seeds=2,
        num_data=32,
        num_test=64,
        num_samples=16,
        widths=(8, 8),
        monitor_every=2,
        fit=dataclasses.replace(
            config.fit, num_epochs=4, num_steps=4, batch_size=16, sample_steps=40
        ),
    )


@dataclasses.dataclass(frozen=True)
class Plane:
    """A square grid on which planar densities are integrated and drawn.

    Attributes:
        reach: Half the side of the square.
        num: The number of points along a side.
    """

    reach: float
    num: int

    @property
    def points(self) -> Particles:
        ticks = jnp.linspace(-self.reach, self.reach, self.num)
        x, y = jnp.meshgrid(ticks, ticks)
        return jnp.stack([x, y], axis=-1).reshape(-1, 2)

    def log_normalizer(self, log_density: LogDensity) -> Scalar:
        """Return the log of the integral over the square, by the midpoint rule."""
        side = 2 * self.reach / (self.num - 1)
        values = jax.vmap(log_density)(self.points)
        return logsumexp(values) + 2 * jnp.log(side)

    def draw(self, log_densities: Sequence[LogDensity], num: int) -> np.ndarray:
        """Return normalized log densities on another grid, `(density, num, num)`."""
        points = Plane(self.reach, num).points

        def normalized(log_density):
            values = jax.vmap(log_density)(points) - self.log_normalizer(log_density)
            return values.reshape(num, num)

        return np.stack([np.asarray(normalized(f)) for f in log_densities])

    def label(self, logits: Callable, num: int) -> np.ndarray:
        """Return the likeliest class on another grid, `(num, num)`, as numbers."""
        values = jax.vmap(logits)(Plane(self.reach, num).points)
        return np.asarray(jnp.argmax(values, axis=1), float).reshape(num, num)


def likelihood_monitor(
    plane: Plane, held_out: Particles
) -> Callable[[AbstractEnergy], dict[str, Scalar]]:
    """Return the function that follows the held-out log-likelihood of a fit."""
    # A partial's arrays are inputs of the compiled function, not constants in it.
    return eqx.Partial(_likelihood, plane, held_out)


def _likelihood(
    plane: Plane, held_out: Particles, energy: AbstractEnergy
) -> dict[str, Scalar]:
    mean = jnp.mean(jax.vmap(energy.log_density)(held_out))
    return {"log_likelihood": mean - plane.log_normalizer(energy.log_density)}


def check_temperature(config: FitConfig) -> None:
    """Raise unless a model is trained at the temperature it is measured at.

    Raises:
        ValueError: If the temperature is not 1.
    """
    if config.temperature != 1:
        raise ValueError(
            "The experiment measures its models at temperature 1, but got "
            f"`temperature` {config.temperature!r}."
        )


def seeded(
    stage: Callable[[str, int], Outcome],
    num_seeds: int,
    models: Iterable[str] = MODELS,
) -> dict[str, Stage]:
    """Return a stage for each model and seed."""
    return {
        f"{name}{SEED}{index}": lambda name=name, index=index: stage(name, index)
        for name in models
        for index in range(num_seeds)
    }


def history_of(fitted: Fitted) -> dict[str, np.ndarray]:
    """Return a fit's history as that of one seed."""
    history = {name: values[None] for name, values in fitted.history.items()}
    history["step"] = history.pop("epoch")
    return history


def metrics_of(numbers: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return numbers as the metrics of one seed."""
    return {name: np.array([float(value)]) for name, value in numbers.items()}


def likelihood_curves(
    outcomes: Mapping[str, Outcome],
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return for each model the epochs looked at and `(seed, epoch)` likelihoods."""
    found = {}
    for name, label in MODELS.items():
        if name in outcomes:
            values = outcomes[name].history["log_likelihood"]
            seen = np.isfinite(values).all(axis=0)
            found[label] = (outcomes[name].history["step"][0][seen], values[:, seen])
    return found


def epochs_to_svgd(outcomes: Mapping[str, Outcome]) -> dict[str, dict]:
    """Return how soon each equivariant model is as good as SVGD's is at the end.

    The last likelihood of the equivariant energy trained with vanilla SVGD sets the
    mark, seed by seed; `epochs_to_svgd` is the first epoch looked at that reaches it,
    and `epochs_ratio` that of E-SVGD over that of SVGD. Never is infinity.
    """
    both = ("equivariant-svgd", "equivariant")
    if not all(name in outcomes for name in both):
        return {}
    curves = [outcomes[name].history["log_likelihood"] for name in both]
    num = min(len(curve) for curve in curves)
    steps = outcomes[both[0]].history["step"][0]
    marks = curves[0][:num, -1]
    firsts = [
        np.array(
            [_first(steps, row, mark) for row, mark in zip(c, marks, strict=False)]
        )
        for c in curves
    ]
    return {
        both[0]: {"epochs_to_svgd": firsts[0]},
        both[1]: {"epochs_to_svgd": firsts[1], "epochs_ratio": firsts[1] / firsts[0]},
    }


def labelled(outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """Return the outcomes by what the figures call them, exact samples first."""
    labels = {FLOOR: "target"} | MODELS
    return {labels[name]: outcomes[name] for name in labels if name in outcomes}


def _first(steps: np.ndarray, values: np.ndarray, mark: float) -> float:
    reached = steps[np.isfinite(values) & (values >= mark)]
    return float(reached[0]) if len(reached) else float("inf")
