"""Concentric circles and spheres (paper, section 3 and appendix C)."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

from equistein._types import Particles, Scalar
from equistein.experiments._annealed import annealed_svgd
from equistein.experiments._base import Experiment, Stage
from equistein.experiments._toy import density_grid, measured, sample_each, seed_keys
from equistein.features import Radius
from equistein.groups import SpecialOrthogonal
from equistein.kernels import IMQ, Invariant, Pullback, RBF
from equistein.metrics import (
    kernel_stein_discrepancy,
    mean_log_likelihood,
    wasserstein_1d,
)
from equistein.plotting import histograms, planar_samples, spatial_samples
from equistein.runs import FLOOR, Outcome
from equistein.samplers import SVGD
from equistein.targets import Shells

_NUM_EXACT = 20_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShellsConfig:
    """Settings of `two-circles` and `two-spheres`.

    Attributes:
        num_seeds: The number of seeds, counted up from the run's seed.
        dim: The dimension of space.
        radii: The radii of the two shells.
        width: Their standard deviation.
        num_particles: The number of particles, from the box [-8, 8).
        num_steps: The number of SVGD steps.
        step: The step size of `vanilla`, `invariant` and `equivariant`.
        bandwidth: The bandwidth of `vanilla` and `invariant`, as in the paper.
        radial_bandwidth: The bandwidth in the radius of `equivariant` and `annealed`.
        annealed_step: The step length of `annealed`.
    """

    num_seeds: int = 5
    dim: int = 2
    radii: tuple[float, float] = (4.0, 8.0)
    width: float = 0.5
    num_particles: int = 50
    num_steps: int = 25_000
    step: float = 0.02
    bandwidth: float = 0.005
    radial_bandwidth: float = 0.3
    annealed_step: float = 0.03


def stages(config: ShellsConfig, seed: int) -> dict[str, Stage]:
    target = Shells(config.radii, config.width, config.dim)
    exact_radii = _radii(target.sample(jr.key(0), _NUM_EXACT))
    measure = radial_measure(target, exact_radii)
    radial = Pullback(RBF(config.radial_bandwidth), Radius())
    invariant = Invariant(
        RBF(config.bandwidth),
        SpecialOrthogonal(config.dim),
        num_samples=4,
        key=jr.key(0),
    )

    def sampled(sampler: SVGD) -> Stage:
        def stage() -> Outcome:
            return sample_each(
                sampler,
                target.log_density,
                [
                    start_in_box(key, config.num_particles, config.dim)
                    for key in seed_keys(seed, config.num_seeds, 0)
                ],
                seed_keys(seed, config.num_seeds, 1),
                measure,
                num_steps=config.num_steps,
            )

        return stage

    def floor() -> Outcome:
        keys = seed_keys(seed, 100, 2)
        return measured(
            [target.sample(key, config.num_particles) for key in keys], measure
        )

    step = optax.sgd(config.step)
    annealed = annealed_svgd(radial, config.num_steps, config.annealed_step)
    return {
        "vanilla": sampled(SVGD(RBF(config.bandwidth), step)),
        "invariant": sampled(SVGD(invariant, step)),
        "equivariant": sampled(SVGD(radial, step)),
        "annealed": sampled(annealed),
        FLOOR: floor,
    }


def radial_measure(target: Shells, exact_radii: jax.Array):
    """Return the function that measures particles by their radii."""
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

    # A partial's arrays are inputs of the compiled function, not constants in it.
    return eqx.Partial(measure, exact_radii)


def start_in_box(key, num: int, dim: int) -> Particles:
    """Draw the paper's start, uniform in the box [-8, 8)."""
    return jr.uniform(key, (num, dim), minval=-8.0, maxval=8.0)


def radial_law(target: Shells, num: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Return radii and the exact density of a sample's radius at them."""
    last = float(jnp.max(target.radii + 5 * target.widths))
    radii = np.linspace(1e-3, last, num)
    along = jnp.zeros((num, target.dim))
    along = along.at[:, 0].set(jnp.asarray(radii, along.dtype))
    log_m = np.asarray(jax.vmap(target.log_density)(along))
    law = radii ** (target.dim - 1) * np.exp(log_m)
    return radii, law / np.trapezoid(law, radii)


def draw(config: ShellsConfig, outcomes: Mapping[str, Outcome]) -> dict:
    target = Shells(config.radii, config.width, config.dim)
    labelled = {
        "exact samples" if name == FLOOR else name: outcome.samples
        for name, outcome in outcomes.items()
    }
    first = {name: x[: config.num_particles] for name, x in labelled.items()}
    figures = {}
    if config.dim == 2:
        contours = density_grid(target.log_density, 10.5)
        flat = {name: (x,) for name, x in first.items()}
        figures["samples"] = planar_samples(flat, ("samples",), contours, 10.5)
    else:
        figures["samples"] = spatial_samples(first, 10.0)
    law = radial_law(target)
    radii = {name: np.linalg.norm(x, axis=-1) for name, x in labelled.items()}
    figures["radii"] = histograms(
        radii, law, "distance from the origin", limits=(0.0, float(law[0][-1]))
    )
    return figures


def _radii(points: Particles):
    return jnp.sqrt(jnp.sum(points**2, axis=-1))


def _sd(values: jax.Array, chosen: jax.Array) -> Scalar:
    count = jnp.maximum(jnp.sum(chosen), 1).astype(values.dtype)
    mean = jnp.sum(jnp.where(chosen, values, 0)) / count
    return jnp.sqrt(jnp.sum(jnp.where(chosen, (values - mean) ** 2, 0)) / count)


_NOTES = {
    "vanilla": "Particles hardly feel one another at the paper's bandwidth: each "
    "climbs to the crest of its ring, and the rings have no width.",
    "invariant": "The paper's scalar kernel, averaged over a sample of rotations: the "
    "forces of an orbit cancel.",
    "equivariant": "Repulsion across whole orbits gives the rings their width. Their "
    "weights are set by the start.",
    "annealed": "From hot to the target in equal factors of the temperature: the "
    "weights no longer depend on the start.",
}
_CAPTIONS = {
    "samples": "The particles of the first seed.",
    "radii": "Distances from the origin over all seeds, with the exact law.",
}
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
    stages=stages,
    draw=draw,
    notes=_NOTES,
    captions=_CAPTIONS,
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
    stages=stages,
    draw=draw,
    notes=_NOTES,
    captions=_CAPTIONS,
)
