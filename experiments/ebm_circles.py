"""An energy based model of two rings (paper, appendix D.2, figure 10)."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from equistein.metrics import wasserstein_1d
from equistein.models import ContrastiveSettings
from equistein.targets import Shells
from experiments._engine import Experiment, Key, Particles, Point
from experiments._figures import curves, histograms
from experiments._planar import epochs_to_svgd, planar_figures, PlanarTarget, REACH
from experiments._planar_config import Algorithm1, planar_presets, PlanarConfig
from experiments._plane import KnownDensity, LogDensities, Plane

_WIDTH = 0.5
_ANGLES = 90
_RADII = 300


def rings(radii: tuple[float, float]) -> PlanarTarget:
    """Return two rings; the labels of points are their energies."""
    shells = Shells(radii, _WIDTH, 2)
    plane = Plane(REACH * max(radii), 250)
    middle, last = sum(radii) / 2, max(radii) + 8 * _WIDTH
    ticks = np.linspace(1e-3, last, _RADII, dtype=np.float32)
    inside = ticks < middle

    def sample(key: Key, num: int) -> tuple[Particles, Array]:
        points = shells.sample(key, num)
        return points, -jax.vmap(shells.log_density)(points)

    def family(data: Particles, labels: Array) -> KnownDensity:
        inner = jnp.linalg.norm(data, axis=1) < middle
        shells = [likeliest_shell(data[inner]), likeliest_shell(data[~inner])]
        weight = float(jnp.mean(inner))
        return law_of_shells(shells, (weight, 1 - weight))

    def of_data(data: Particles) -> dict[str, Any]:
        inner = jnp.linalg.norm(data, axis=1) < middle
        return {"inner_weight_of_data": jnp.mean(inner)}

    def measure(
        log_densities: LogDensities,
        samples: list[Particles],
        points: Float[Array, "point 2"],
        labels: Array,
        exact: Float[Array, "exact 2"],
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        profile = density_of_radius(plane, log_densities, ticks)
        between = profile[np.argmin(np.abs(ticks - middle))]
        mine, theirs = (jnp.linalg.norm(x, axis=1) for x in (samples[0], exact))
        numbers = {
            "inner_weight": (ticks[1] - ticks[0]) * profile[inside].sum(),
            "inner_crest": ticks[inside][np.argmax(profile[inside])],
            "outer_crest": ticks[~inside][np.argmax(profile[~inside])],
            "density_between": between / profile.max(),
            "w1_radius": wasserstein_1d(mine, theirs),
        }
        return numbers, {"profile": profile, "radii": ticks}

    return PlanarTarget(
        group=shells.group,
        plane=plane,
        known=law_of_shells([shells], [1.0]),
        sample=sample,
        family=family,
        measure=measure,
        algorithm=Algorithm1(
            {250: 0.5 / 0.9, 400: 0.1 / 0.9}, rates={150: 0.5, 400: 0.1}
        ),
        of_data=of_data,
    )


def law_of_shells(shells: Sequence[Shells], weights: Sequence[float]) -> KnownDensity:
    """Return a mixture of single shells with weights."""

    def log_densities(point: Point) -> Float[Array, " density"]:
        parts = [shell.log_density(point) - shell.log_normalizer for shell in shells]
        logs = jnp.log(jnp.asarray(weights, point.dtype))
        return logsumexp(jnp.stack(parts).astype(point.dtype) + logs)[None]

    def samples(key: Key, num: int) -> list[Particles]:
        which_key, *keys = jr.split(key, 1 + len(shells))
        pairs = zip(shells, keys, strict=True)
        drawn = jnp.stack([shell.sample(key, num) for shell, key in pairs])
        chances = jnp.log(jnp.asarray(weights, drawn.dtype))
        which = jr.categorical(which_key, chances, shape=(num,))
        return [drawn[which, jnp.arange(num)]]

    return KnownDensity(log_densities, samples)


def likeliest_shell(points: Particles) -> Shells:
    r"""Return the circle that is likeliest to give some points of the plane.

    Of a narrow one $\log p(x) = \log \mathcal N(\rho; r, w^2) - \log 2 \pi r$ with
    $\rho = |x|$, which is largest where $r^2 - \bar\rho\, r + w^2 = 0$ and $w^2$ is the
    mean of $(\rho - r)^2$.
    """
    distances = np.linalg.norm(np.asarray(points, np.float64), axis=1)
    mean = radius = distances.mean()
    squared = distances.var()
    for _ in range(50):
        radius = (mean + np.sqrt(max(mean**2 - 4 * squared, 0))) / 2
        squared = np.mean((distances - radius) ** 2)
    return Shells((float(radius),), float(np.sqrt(squared)), points.shape[1])


def density_of_radius(
    plane: Plane, log_densities: LogDensities, radii: Float[np.ndarray, " radius"]
) -> Float[np.ndarray, " radius"]:
    """Return the density of the distance from the origin, by quadrature."""
    angles = jnp.linspace(0.0, 2 * jnp.pi, _ANGLES, endpoint=False)
    circle = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
    points = jnp.asarray(radii)[:, None, None] * circle[None]
    values = jax.vmap(jax.vmap(log_densities))(points)[..., 0]
    around = jnp.exp(values - plane.log_normalizers(log_densities)[0])
    return 2 * np.pi * radii * np.asarray(jnp.mean(around, axis=1))


_NOTES = (
    "The network sees coordinates. All models get the true energies of the data, as "
    "known energies, in the squared error of the paper.",
    "The network sees the radius alone; the particles interact by their "
    "distance in the plane.",
    "The same network, and particles that interact by their radii.",
)
_QUICK = ContrastiveSettings(
    num_epochs=160, batch_size=32, num_particles=32, num_steps=50, widths=(64, 64, 64),
    langevin_step_size=0.02, stein_step_size=0.3, reset_probability=0.2,
    reset_to_data=0.5, label_weight=0.5, learning_rate=2e-3, regularization=1e-2,
    data_noise=0.15, ema=0.998, sample_steps=1_000, sample_at_once=256,
)  # fmt: skip

EBM_CIRCLES = Experiment(
    name="ebm-circles",
    figure="figure 10, appendix D.2",
    headlines=("likelihood_gap", "energy_distance", "w1_radius"),
    summary="learn two rings with rotational symmetry from points and their energies",
    presets=planar_presets(PlanarConfig(radii=(3.0, 10.0), fit=_QUICK), bandwidth=0.05),
    entries=lambda config: rings(config.radii).entries(config, _NOTES),
    figures=(
        *planar_figures(3.0),
        histograms(
            "radii",
            lambda outcome: np.linalg.norm(outcome.samples, axis=1),
            "distance from the origin",
            exact=lambda config: Shells(config.radii, _WIDTH, 2).radial_density(),
        ),
        curves(
            "profiles",
            lambda outcome: outcome.arrays["profile"],
            "density of the radius",
            x=lambda outcome: outcome.arrays["radii"],
            x_label="distance from the origin",
        ),
    ),
    compare=epochs_to_svgd,
)
