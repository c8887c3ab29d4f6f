"""Concentric circles and spheres (paper, section 3 and appendix C)."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein._types import Key, Particles, Scalar
from equistein.experiments.engine._experiment import Entry, Experiment
from equistein.experiments.engine._figures import Histograms, Own
from equistein.experiments.engine._levels import Shown
from equistein.experiments.toys._sampling import (
    annealed_svgd,
    density_grid,
    Toy,
    ToyConfig,
)
from equistein.features import Radius
from equistein.groups import SpecialOrthogonal
from equistein.kernels import IMQ, Invariant, Pullback, RBF
from equistein.metrics import (
    kernel_stein_discrepancy,
    mean_log_likelihood,
    wasserstein_1d,
)
from equistein.plotting import planar_samples, spatial_samples
from equistein.targets import Shells

_NUM_EXACT = 20_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShellsConfig(ToyConfig):
    """Settings of `two-circles` and `two-spheres`.

    Attributes:
        dim: The dimension of space.
        radii: The radii of the two shells.
        width: Their standard deviation.
        bandwidth: The bandwidth of `vanilla` and `invariant`, as in the paper.
        radial_bandwidth: The bandwidth in the radius of `equivariant` and `annealed`.
        annealed_step_size: That of `annealed`, at the target.
    """

    dim: int = 2
    radii: tuple[float, float] = (4.0, 8.0)
    width: float = 0.5
    bandwidth: float = 0.005
    radial_bandwidth: float = 0.3
    annealed_step_size: float = 0.03


def entries(config: ShellsConfig) -> list[Entry]:
    plain = RBF(config.bandwidth)
    radial = Pullback(RBF(config.radial_bandwidth), Radius())
    rotations = SpecialOrthogonal(config.dim)
    samplers = {
        "vanilla": (
            plain,
            "Particles hardly feel one another at the paper's bandwidth: each climbs "
            "to the crest of its ring, and the rings have no width.",
        ),
        "invariant": (
            Invariant(plain, rotations, num_samples=4, key=jr.key(0)),
            "The paper's scalar kernel, averaged over a sample of rotations: the "
            "forces of an orbit cancel.",
        ),
        "equivariant": (
            radial,
            "Repulsion across whole orbits gives the rings their width. Their weights "
            "are set by the start.",
        ),
        "annealed": (
            annealed_svgd(radial, config.num_steps, config.annealed_step_size),
            "From hot to the target in equal factors of the temperature: the weights "
            "no longer depend on the start.",
        ),
    }
    return radial_toy(_target(config)).entries(config, samplers)


def _target(config: ShellsConfig) -> Shells:
    return Shells(config.radii, config.width, config.dim)


def radial_toy(target: Shells) -> Toy:
    """Return a toy that measures radii, from starts uniform in the box [-8, 8)."""
    inner, outer = (float(radius) for radius in target.radii)
    exact_weight = float(target.weights[0])
    ksd_kernel = Pullback(IMQ(1.0), Radius())

    def measure(exact_radii: jax.Array, points: Particles) -> dict[str, Scalar]:
        radii = _radii(points)
        inside = radii < (inner + outer) / 2
        weight = jnp.mean(inside)
        return {
            "inner_weight": weight,
            "inner_weight_error": jnp.abs(weight - exact_weight),
            "inner_sd": _sd(radii, inside),
            "outer_sd": _sd(radii, ~inside),
            "w1_radius": wasserstein_1d(radii, exact_radii),
            "mean_log_likelihood": mean_log_likelihood(target.log_density, points),
            "ksd": kernel_stein_discrepancy(target.log_density, points, ksd_kernel),
        }

    def start(key: Key, num: int) -> Particles:
        return jr.uniform(key, (num, target.dim), minval=-8.0, maxval=8.0)

    exact = _radii(target.sample(jr.key(0), _NUM_EXACT))
    return Toy(target=target, start=start, measure=measure, exact=exact)


def radial_density(target: Shells, num: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Return radii and the exact density of a sample's radius at them."""
    last = float(jnp.max(target.radii + 5 * target.widths))
    radii = np.linspace(1e-3, last, num)
    along = jnp.zeros((num, target.dim))
    along = along.at[:, 0].set(jnp.asarray(radii, along.dtype))
    log_m = np.asarray(jax.vmap(target.log_density)(along))
    density = radii ** (target.dim - 1) * np.exp(log_m)
    return radii, density / np.trapezoid(density, radii)


def _samples(config: ShellsConfig, shown: Shown) -> Any:
    first = {e.label: out.samples[: config.num_particles] for e, out in shown}
    if config.dim != 2:
        return spatial_samples(first, 10.0)
    contours = density_grid(_target(config).log_density, 10.5)
    views = {label: (points,) for label, points in first.items()}
    return planar_samples(views, ("samples",), contours, 10.5)


def _exact(config: ShellsConfig, shown: Shown) -> tuple[np.ndarray, np.ndarray]:
    return radial_density(_target(config))


_FIGURES = (
    Own("samples", _samples, caption="The particles of the first seed."),
    Histograms(
        "radii",
        lambda outcome: np.linalg.norm(outcome.samples, axis=-1),
        "distance from the origin",
        exact=_exact,
    ),
)


def _radii(points: Particles):
    return jnp.sqrt(jnp.sum(points**2, axis=-1))


def _sd(values: jax.Array, chosen: jax.Array) -> Scalar:
    count = jnp.maximum(jnp.sum(chosen), 1).astype(values.dtype)
    mean = jnp.sum(jnp.where(chosen, values, 0)) / count
    return jnp.sqrt(jnp.sum(jnp.where(chosen, (values - mean) ** 2, 0)) / count)


_SPHERES = ShellsConfig(dim=3, radii=(4.0, 9.0), width=0.3, num_particles=100,
                        bandwidth=0.001)  # fmt: skip
_SMOKE: dict[str, Any] = {"num_seeds": 2, "num_particles": 16, "num_steps": 60}

TWO_CIRCLES = Experiment(
    name="two-circles",
    figure="figure esvgd (b, d), section 3",
    summary="two rings with SO(2) symmetry: widths and weights of the rings",
    presets={
        "smoke": ShellsConfig(**_SMOKE),
        "quick": ShellsConfig(),
        "paper": ShellsConfig(num_seeds=10, radial_bandwidth=0.005),
    },
    entries=entries,
    figures=_FIGURES,
)

TWO_SPHERES = Experiment(
    name="two-spheres",
    figure="figure sample-spheres, appendix C.1",
    summary="two spheres with SO(3) symmetry: widths and weights of the spheres",
    presets={
        "smoke": dataclasses.replace(_SPHERES, **_SMOKE),
        "quick": _SPHERES,
        "paper": dataclasses.replace(_SPHERES, num_seeds=10, radial_bandwidth=0.001),
    },
    entries=entries,
    figures=_FIGURES,
)
