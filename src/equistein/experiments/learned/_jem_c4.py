"""A joint energy model of two classes with C4 symmetry (paper, section 4, D.1)."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.energies import AbstractEnergy, JointEnergy
from equistein.experiments.engine._experiment import Entry, Experiment
from equistein.experiments.learned._algorithm_1 import Algorithm1
from equistein.experiments.learned._planar import (
    AbstractPlanarTarget,
    planar_entries,
    planar_presets,
    PlanarConfig,
    REACH,
)
from equistein.experiments.learned._planar_figures import (
    epochs_to_svgd,
    planar_figures,
)
from equistein.experiments.learned._plane import Plane
from equistein.groups import Cyclic
from equistein.metrics import (
    accuracy,
    energy_distance,
    expected_calibration_error,
    mode_weights,
)
from equistein.models import ContrastiveSettings
from equistein.targets import RotatedGaussians

_GROUP = Cyclic(4)
_DRAWN = 120


class Classes(AbstractPlanarTarget):
    """Two classes of four Gaussians each, all eight of equal weight.

    Args:
        radii: The distance of each class's modes from the origin.
    """

    group = _GROUP

    def __init__(self, radii: tuple[float, ...]):
        self.targets = [RotatedGaussians(_GROUP, (radius, 0.0)) for radius in radii]
        self.plane = Plane(REACH * max(radii), 320)
        self.num_classes = len(radii)

    def log_density(self, point: Point) -> Scalar:
        values = self.logits(point)
        return logsumexp(values) - jnp.log(float(len(self.targets)))

    def logits(self, point: Point) -> Array:
        """Return the log density of each class."""
        return jnp.stack([t.log_density(point) for t in self.targets])

    def sample(self, key: Key, num: int) -> tuple[Particles, Array]:
        each = num // len(self.targets)
        points = [
            target.sample(jr.fold_in(key, label), each)
            for label, target in enumerate(self.targets)
        ]
        return jnp.concatenate(points), jnp.repeat(jnp.arange(len(points)), each)

    def exact_samples(self, key: Key, num: int) -> list[Particles]:
        key, *keys = jr.split(key, 1 + len(self.targets))
        mixed, _ = self.sample(key, 2 * num)
        order = jr.permutation(jr.fold_in(key, 1), len(mixed))[:num]
        of_class = [
            target.sample(key, num)
            for target, key in zip(self.targets, keys, strict=True)
        ]
        return [mixed[order], *of_class]

    def log_densities(self, energy: AbstractEnergy | None) -> list[LogDensity]:
        if energy is None:
            return [self.log_density, *(t.log_density for t in self.targets)]
        assert isinstance(energy, JointEnergy)
        given = [energy.given(label) for label in range(len(self.targets))]
        return [e.log_density for e in (energy, *given)]

    def of_density(
        self, energy: AbstractEnergy | None, points: Particles, labels: Array
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        assert energy is None or isinstance(energy, JointEnergy)
        classify = self.logits if energy is None else energy.logits
        logits = jax.vmap(classify)(points)
        numbers = {
            "accuracy": accuracy(logits, labels),
            "calibration_error": expected_calibration_error(logits, labels),
        }
        return numbers, {"decision": self.plane.label(classify, _DRAWN)}

    def of_samples(
        self, samples: list[Particles], exact: Float[Array, "exact 2"]
    ) -> dict[str, Any]:
        means = [_GROUP.orbit(target.mean) for target in self.targets]
        held = mode_weights(samples[0], jnp.concatenate(means))
        each = zip(samples[1:], jnp.split(exact, len(self.targets)), strict=True)
        distances = [energy_distance(points, those) for points, those in each]
        return {
            "modes_found": jnp.sum(held > 0.25 / len(held)),
            "smallest_mode_share": jnp.min(held),
            **{f"energy_distance_class_{k}": d for k, d in enumerate(distances)},
            "energy_distance_of_classes": jnp.mean(jnp.stack(distances)),
        }


def entries(config: PlanarConfig) -> list[Entry]:
    return planar_entries(Classes(config.radii), _NOTES, config)


_NOTES = {
    "plain": "The network sees coordinates, and learns each of the eight modes from "
    "its sixteen points.",
    "equivariant-svgd": "The network is averaged over quarter turns; the particles "
    "feel one another within a mode only.",
    "equivariant": "The same network, and particles that feel one another across "
    "orbits. epochs_ratio: the epochs until its held-out likelihood is that of "
    "equivariant-svgd at the end, over the epochs that one needs for it.",
}
_QUICK = ContrastiveSettings(
    num_epochs=160, batch_size=32, num_particles=64, num_steps=50, widths=(64, 64, 64),
    langevin_step_size=0.02, stein_step_size=0.3, reset_probability=0.2,
    reset_to_data=0.9, learning_rate=4e-3, regularization=3e-2, data_noise=0.25,
    ema=0.998, sample_steps=1_000, sample_at_once=256,
)  # fmt: skip
_ALGORITHM = Algorithm1(
    repel=True, tolerance=1e-4, learning_rate_epochs=(1,), learning_rate_factors=(1.0,)
)

JEM_C4 = Experiment(
    name="jem-c4",
    figure="figures cond-ebm and cond-ebm-cont, section 4 and appendix D.1",
    summary="learn two classes with C4 symmetry as one energy: classifier and sampler",
    presets=planar_presets(
        (7.0, 15.0), _QUICK, {"bandwidth": 0.1, "algorithm": _ALGORITHM}
    ),
    entries=entries,
    figures=planar_figures(
        ["decision boundary", "p(x)", "p(x | y = 0)", "p(x | y = 1)"], (6.0, 0.3)
    ),
    compare=epochs_to_svgd,
)
