"""An energy based model of two rings (paper, appendix D.2, figure 10)."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein.metrics import wasserstein_1d
from equistein.models import ContrastiveSettings
from equistein.runs import Metric
from equistein.targets import Shells
from experiments._engine import Experiment
from experiments._family import (
    Algorithm1,
    KnownDensity,
    law_of_shells,
    likeliest_shell,
    LogDensities,
    Plane,
)
from experiments._figures import Curves, Histograms
from experiments._planar import (
    epochs_to_svgd,
    planar_figures,
    planar_presets,
    PlanarConfig,
    PlanarTarget,
    REACH,
    REWEIGHTED,
)
from experiments._types import Key, Particles

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
            "inner_weight_of_samples": jnp.mean(mine < middle),
            "w1_radius": wasserstein_1d(mine, theirs),
        }
        return numbers, {"profile": profile, "radii": ticks}

    return PlanarTarget(
        group=shells.group,
        plane=plane,
        known=KnownDensity(
            lambda x: (shells.log_density(x) - shells.log_normalizer)[None],
            lambda key, num: [shells.sample(key, num)],
        ),
        sample=sample,
        family=family,
        measure=measure,
        of_data=of_data,
    )


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
    "The same network, and particles that interact by their radii. "
    "epochs_ratio: the epochs until its held-out likelihood is that of "
    "equivariant-svgd at the end, over the epochs that one needs for it.",
)
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

METRICS = {
    "energy_distance": Metric("distance of samples (energy distance)", "lower"),
    "inner_weight": Metric("weight of the inner shell"),
    "likelihood_gap": Metric("log-likelihood below the best possible", "lower", "nats"),
    "log_likelihood": Metric("log-likelihood of held-out points", unit="nats"),
    "w1_radius": Metric("distance of the radii (Wasserstein-1)", "lower"),
}

EBM_CIRCLES = Experiment(
    name="ebm-circles",
    figure="figure 10, appendix D.2",
    metrics=METRICS,
    headlines=("likelihood_gap", "energy_distance", "w1_radius"),
    summary="learn two rings with rotational symmetry from points and their energies",
    presets=planar_presets(
        PlanarConfig(radii=(3.0, 10.0), fit=_QUICK, reweighted=REWEIGHTED),
        0.05,
        _ALGORITHM,
    ),
    entries=lambda config: rings(config.radii).entries(config, _NOTES),
    figures=(
        *planar_figures(3.0),
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
