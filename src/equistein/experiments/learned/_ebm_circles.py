"""An energy based model of two rings (paper, appendix D.2, figure ebm_circ)."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.energies import AbstractEnergy
from equistein.experiments.engine._experiment import Entry, Experiment
from equistein.experiments.engine._figures import Curves, Histograms
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
from equistein.groups import Orthogonal
from equistein.metrics import wasserstein_1d
from equistein.models import ContrastiveSettings
from equistein.targets import Shells

_WIDTH = 0.5
_ANGLES = 90
_RADII = 300


class Rings(AbstractPlanarTarget):
    """Two rings; the labels of points are their energies.

    Args:
        radii: The radii of the rings.
    """

    def __init__(self, radii: tuple[float, float]):
        self.group = Orthogonal(2)
        self.shells = Shells(radii, _WIDTH, 2)
        self.plane = Plane(REACH * max(radii), 250)
        self.middle = sum(radii) / 2
        last = max(radii) + 8 * _WIDTH
        self.radii = np.linspace(1e-3, last, _RADII, dtype=np.float32)

    def log_density(self, point: Point) -> Scalar:
        return self.shells.log_density(point) - self.shells.log_normalizer

    def sample(self, key: Key, num: int) -> tuple[Particles, Array]:
        points = self.shells.sample(key, num)
        return points, -jax.vmap(self.shells.log_density)(points)

    def exact_samples(self, key: Key, num: int) -> list[Particles]:
        return [self.shells.sample(key, num)]

    def log_densities(self, energy: AbstractEnergy | None) -> list[LogDensity]:
        return [self.log_density if energy is None else energy.log_density]

    def of_data(self, data: Particles) -> dict[str, Any]:
        inside = jnp.linalg.norm(data, axis=1) < self.middle
        return {"inner_weight_of_data": jnp.mean(inside)}

    def of_density(
        self, energy: AbstractEnergy | None, points: Particles, labels: Array
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        (log_density,) = self.log_densities(energy)
        profile, radii = self.profile(log_density), self.radii
        inside, step = radii < self.middle, radii[1] - radii[0]
        numbers = {
            "inner_weight": step * profile[inside].sum(),
            "inner_crest": radii[inside][np.argmax(profile[inside])],
            "outer_crest": radii[~inside][np.argmax(profile[~inside])],
            "density_between": profile[np.argmin(np.abs(radii - self.middle))]
            / profile.max(),
        }
        return numbers, {"profile": profile, "radii": radii}

    def of_samples(
        self, samples: list[Particles], exact: Float[Array, "exact 2"]
    ) -> dict[str, Any]:
        mine, theirs = (jnp.linalg.norm(x, axis=1) for x in (samples[0], exact))
        return {
            "inner_weight_of_samples": jnp.mean(mine < self.middle),
            "w1_radius": wasserstein_1d(mine, theirs),
        }

    def profile(self, log_density: LogDensity) -> np.ndarray:
        """Return the density of the radius at `radii`, by quadrature."""
        angles = jnp.arange(_ANGLES) * 2 * jnp.pi / _ANGLES
        circle = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
        radii = jnp.asarray(self.radii)
        points = (radii[:, None, None] * circle[None]).reshape(-1, 2)
        values = jax.vmap(log_density)(points) - self.plane.log_normalizer(log_density)
        around = jnp.mean(jnp.exp(values).reshape(len(radii), _ANGLES), axis=1)
        return np.asarray(2 * jnp.pi * radii * around)


def entries(config: PlanarConfig) -> list[Entry]:
    return planar_entries(Rings(config.radii), _NOTES, config)


_NOTES = {
    "plain": "The network sees coordinates. All models get the true energies of the "
    "data, as known energies, in the squared error of the paper.",
    "equivariant-svgd": "The network sees the radius alone; the particles feel one "
    "another by their distance in the plane.",
    "equivariant": "The same network, and particles that feel one another by their "
    "radii. epochs_ratio: the epochs until its held-out likelihood is that of "
    "equivariant-svgd at the end, over the epochs that one needs for it.",
}
_QUICK = ContrastiveSettings(
    num_epochs=160, batch_size=32, num_particles=32, num_steps=50, widths=(64, 64, 64),
    langevin_step_size=0.02, stein_step_size=0.3, reset_probability=0.2,
    reset_to_data=0.5, label_weight=0.5, learning_rate=2e-3, regularization=1e-2,
    data_noise=0.15, ema=0.998, sample_steps=1_000, sample_at_once=256,
)  # fmt: skip
_ALGORITHM = Algorithm1(
    repel=True, tolerance=1e-4, step_epochs=(250, 400),
    step_factors=(0.5 / 0.9, 0.1 / 0.9), learning_rate_epochs=(150, 400),
    learning_rate_factors=(0.5, 0.1),
)  # fmt: skip

EBM_CIRCLES = Experiment(
    name="ebm-circles",
    figure="figure ebm_circ, appendix D.2",
    summary="learn two rings with rotational symmetry from points and their energies",
    presets=planar_presets(
        (3.0, 10.0), _QUICK, {"bandwidth": 0.05, "algorithm": _ALGORITHM}
    ),
    entries=entries,
    figures=(
        *planar_figures(["p(x)"], (3.0, 0.3)),
        Histograms(
            "radii",
            lambda outcome: np.linalg.norm(outcome.samples, axis=1),
            "distance from the origin",
            exact=lambda config, _: Shells(config.radii, _WIDTH, 2).radial_density(),
        ),
        Curves(
            "profiles",
            lambda outcome: outcome.arrays["profile"],
            "density of the radius",
            x=lambda outcome: outcome.arrays["radii"],
            x_label="distance from the origin",
        ),
    ),
    compare=epochs_to_svgd,
)
