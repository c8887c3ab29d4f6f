"""A joint energy model of two classes with C4 symmetry (paper, section 4, D.1)."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float

import equistein as es
from equistein.groups import AbstractGroup, Cyclic
from equistein.models import ContrastiveSettings
from equistein.targets import RotatedGaussians
from experiments._engine import Experiment, Key, Particles, Point
from experiments._planar import epochs_to_svgd, planar_figures, PlanarTarget, REACH
from experiments._planar_config import Algorithm1, planar_presets, PlanarConfig
from experiments._plane import KnownDensity, LogDensities, Plane

RADII = (7.0, 15.0)  # of the modes of each class
_INSIDE = 1 - math.exp(-2)  # of a mode's points are within two standard deviations


def classes(radii: tuple[float, float]) -> PlanarTarget:
    """Return two classes of four Gaussians each, all eight of equal weight."""
    group, num_classes = Cyclic(4), len(radii)
    targets = [RotatedGaussians(group, (radius, 0.0)) for radius in radii]

    def sample(key: Key, num: int) -> tuple[Particles, Array]:
        each = num // num_classes
        labels = jnp.repeat(jnp.arange(num_classes), each)
        return _as_many_of_each(targets, key, each), labels

    def family(data: Particles, labels: Array) -> KnownDensity:
        return density_of_classes(
            [
                likeliest_gaussians(group, target.mean, data[labels == label])
                for label, target in enumerate(targets)
            ]
        )

    def measure(
        log_densities: LogDensities,
        samples: list[Particles],
        points: Float[Array, "point 2"],
        labels: Array,
        exact: Float[Array, "exact 2"],
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        logits = jax.vmap(log_densities)(points)[:, 1:]
        modes = jnp.concatenate([group.orbit(target.mean) for target in targets])
        held = es.metrics.mode_weights(samples[0], modes)
        # A ring is nearest to all modes in turn, and inside hardly any of them.
        near = jnp.any(jnp.stack([_inside(t, samples[0]) for t in targets]), axis=0)
        apart = jnp.linalg.norm(samples[0][:, None] - modes[None], axis=-1)
        nearest = jnp.where(near, jnp.argmin(apart, axis=1), len(modes))
        inside = es.metrics.proportions(nearest, len(modes) + 1)[:-1]
        each = zip(samples[1:], jnp.split(exact, num_classes), strict=True)
        distances = [es.metrics.energy_distance(mine, theirs) for mine, theirs in each]
        return {
            "accuracy": es.metrics.accuracy(logits, labels),
            "calibration_error": es.metrics.expected_calibration_error(logits, labels),
            "modes_found": jnp.sum(inside > 0.5 * _INSIDE / len(modes)),
            "smallest_mode_fraction": jnp.min(held),
            **{f"energy_distance_class_{k}": d for k, d in enumerate(distances)},
            "energy_distance_of_classes": jnp.mean(jnp.stack(distances)),
        }, {}

    return PlanarTarget(
        group=group,
        plane=Plane(REACH * max(radii), 320),
        known=density_of_classes(targets),
        sample=sample,
        family=family,
        measure=measure,
        algorithm=Algorithm1({}, {}),
        num_classes=num_classes,
    )


def likeliest_gaussians(
    group: AbstractGroup, near: Point, points: Particles
) -> RotatedGaussians:
    """Return the copies of a Gaussian that are likeliest to give some points.

    Its mean and covariance are those of the points, each moved by the group to where it
    is nearest to `near`: exact as far as the copies do not overlap.
    """
    orbits = jax.vmap(group.orbit)(points)
    nearest = jnp.argmin(jnp.sum((orbits - near[None, None]) ** 2, axis=-1), axis=1)
    moved = np.asarray(orbits[jnp.arange(len(points)), nearest], np.float64)
    mean, covariance = moved.mean(axis=0), np.cov(moved.T, bias=True)
    return RotatedGaussians(group, jnp.asarray(mean), jnp.asarray(covariance))


def _inside(target: RotatedGaussians, points: Particles) -> Bool[Array, " point"]:
    """Return which points are within two standard deviations of a mode."""
    peak = target.log_density(target.mean)
    return jax.vmap(target.log_density)(points) >= peak - 2


def density_of_classes(targets: Sequence[RotatedGaussians]) -> KnownDensity:
    """Return classes of equal weight."""

    def log_densities(point: Point) -> Float[Array, " density"]:
        of_class = jnp.stack([target.log_density(point) for target in targets])
        of_all = logsumexp(of_class) - jnp.log(float(len(targets)))
        return jnp.append(of_all, of_class)

    def samples(key: Key, num: int) -> list[Particles]:
        key, *keys = jr.split(key, 1 + len(targets))
        mixed = _as_many_of_each(targets, key, num)
        order = jr.permutation(jr.fold_in(key, 1), len(mixed))[:num]
        pairs = zip(targets, keys, strict=True)
        return [mixed[order], *(target.sample(key, num) for target, key in pairs)]

    return KnownDensity(log_densities, samples)


def _as_many_of_each(
    targets: Sequence[RotatedGaussians], key: Key, each: int
) -> Particles:
    return jnp.concatenate(
        [
            target.sample(jr.fold_in(key, label), each)
            for label, target in enumerate(targets)
        ]
    )


_NOTES = (
    "The network sees coordinates, and learns each of the eight modes from its sixteen "
    "points.",
    "The network is averaged over quarter turns; the particles interact within "
    "a mode only.",
    "The same network, and particles that interact across orbits.",
)
_QUICK = ContrastiveSettings(
    num_epochs=160, batch_size=32, num_particles=64, num_steps=50, widths=(64, 64, 64),
    langevin_step_size=0.02, stein_step_size=0.3, reset_probability=0.2,
    reset_to_data=0.9, learning_rate=4e-3, regularization=3e-2, data_noise=0.25,
    ema=0.998, sample_steps=1_000, sample_at_once=256,
)  # fmt: skip

JEM_C4 = Experiment(
    name="jem-c4",
    figure="figures 4 and 9, section 4 and appendix D.1",
    headlines=("likelihood_gap", "accuracy", "calibration_error", "energy_distance"),
    summary="learn two classes with C4 symmetry as one energy: classifier and sampler",
    presets=planar_presets(PlanarConfig(radii=RADII, fit=_QUICK), bandwidth=0.1),
    entries=lambda config: classes(config.radii).entries(config, _NOTES),
    figures=planar_figures(6.0),
    compare=epochs_to_svgd,
)
