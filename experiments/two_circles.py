"""Concentric circles and spheres (paper, section 3, figures 1 and 3)."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Bool, Float

from equistein.features import Radius
from equistein.groups import SpecialOrthogonal
from equistein.kernels import IMQ, Invariant, Pullback, RBF
from equistein.metrics import (
    kernel_stein_discrepancy,
    mean_log_likelihood,
    wasserstein_1d,
)
from equistein.plotting import spatial_samples
from equistein.runs import Outcome
from equistein.samplers import annealed_svgd, SVGD
from equistein.targets import Shells
from experiments._engine import Entry, Experiment, Figure, Particles, Scalar, Shown
from experiments._figures import boxes, curves, histograms
from experiments._toys import drawn, planar_figure, Toy, ToyConfig

_REACH = 10.5  # of a panel


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShellsConfig(ToyConfig):
    """Settings of `two-circles` and `two-spheres`.

    Attributes:
        dim: The dimension of space.
        radii: The radii of the two shells.
        width: Their standard deviation.
        bandwidth: The bandwidth of `vanilla` and `invariant`, as in the paper.
        radial_bandwidth: The bandwidth in the radius of `equivariant` and `annealed`.
    """

    dim: int = 2
    radii: tuple[float, float] = (4.0, 8.0)
    width: float = 0.5
    bandwidth: float = 0.005
    radial_bandwidth: float = 0.3

    @property
    def target(self) -> Shells:
        """The density."""
        return Shells(self.radii, self.width, self.dim)


def _toy(target: Shells) -> Toy:
    """Return a toy that measures radii, from starts uniform in the box [-8, 8)."""
    return Toy(
        target=target,
        start=lambda key, num: jr.uniform(
            key, (num, target.dim), minval=-8.0, maxval=8.0
        ),
        measure=_measure,
        exact=lambda: _radii(drawn(target, jr.key(0), 20_000)),
    )


def _measure(
    target: Shells, exact_radii: Float[Array, " exact"], points: Particles
) -> dict[str, Scalar]:
    radii, ksd_kernel = _radii(points), Pullback(IMQ(1.0), Radius())
    inside = radii < jnp.mean(target.radii)
    weight = jnp.mean(inside.astype(points.dtype))
    return {
        "inner_weight": weight,
        "inner_weight_error": jnp.abs(weight - target.weights[0]),
        "inner_sd": _sd(radii, inside),
        "outer_sd": _sd(radii, ~inside),
        "w1_radius": wasserstein_1d(radii, exact_radii),
        "mean_log_likelihood": mean_log_likelihood(target.log_density, points),
        "ksd": kernel_stein_discrepancy(target.log_density, points, ksd_kernel),
    }


def _radii(points: Particles) -> Float[Array, " particle"]:
    return jnp.linalg.norm(points, axis=-1)


def _sd(values: Float[Array, " n"], chosen: Bool[Array, " n"]) -> Scalar:
    """Return the standard deviation of those chosen; 0 where none is."""
    return jnp.where(jnp.any(chosen), jnp.std(values, where=chosen), 0)


def shell_entries(config: ShellsConfig) -> list[Entry]:
    """Return SVGD with each kernel."""
    plain = RBF(config.bandwidth)
    radial = Pullback(RBF(config.radial_bandwidth), Radius())
    rotations = SpecialOrthogonal(config.dim)
    samplers = {
        "vanilla": (
            plain,
            "Particles hardly interact at the paper's bandwidth: each climbs "
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
            annealed_svgd(radial, config.num_steps, 0.03),
            "From hot to the target in equal factors of the temperature: the weights "
            "no longer depend on the start.",
        ),
    }
    return _toy(config.target).entries(config, samplers)


def _samples(config: ShellsConfig, shown: Shown) -> Any:
    if config.dim == 2:
        return planar_figure(config, shown, config.target, _REACH)
    first = {e.label: out.samples[: config.num_particles] for e, out in shown}
    return spatial_samples(first, 10.0)


_SPHERES = ShellsConfig(dim=3, radii=(4.0, 9.0), width=0.3, num_particles=100,
                        bandwidth=0.001)  # fmt: skip
_SMOKE: dict[str, Any] = {"num_seeds": 2, "num_particles": 16, "num_steps": 60}

TWO_CIRCLES = Experiment(
    name="two-circles",
    figure="figure 3 (b, d), section 3",
    headlines=("w1_radius", "inner_weight_error", "ksd"),
    summary="two rings with SO(2) symmetry: widths and weights of the rings",
    presets={
        "smoke": ShellsConfig(**_SMOKE),
        "quick": ShellsConfig(),
        "paper": ShellsConfig(num_seeds=10, radial_bandwidth=0.005),
    },
    entries=shell_entries,
    figures=(
        Figure("samples", _samples, "The particles of the first seed."),
        histograms(
            "radii",
            lambda outcome: np.linalg.norm(outcome.samples, axis=-1),
            "distance from the origin",
            exact=lambda config: eqx.filter_jit(config.target.radial_density)(),
        ),
    ),
)

TWO_SPHERES = dataclasses.replace(
    TWO_CIRCLES,
    name="two-spheres",
    figure="figure 8, appendix C.1",
    summary="two spheres with SO(3) symmetry: widths and weights of the spheres",
    presets={
        "smoke": dataclasses.replace(_SPHERES, **_SMOKE),
        "quick": _SPHERES,
        "paper": dataclasses.replace(_SPHERES, num_seeds=10, radial_bandwidth=0.001),
    },
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleEfficiencyConfig(ToyConfig):
    """Settings of `sample-efficiency`; step size and bandwidth are those of `vanilla`.

    Attributes:
        multiples: How many times as many particles vanilla SVGD has.
    """

    num_particles: int = 20
    multiples: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    num_steps: int = 5_000
    step_size: float = 0.05
    bandwidth: float = 0.1


def efficiency_entries(config: SampleEfficiencyConfig) -> list[Entry]:
    """Return few equivariant particles, and more and more plain ones."""
    num = config.num_particles
    radial, hot = (Pullback(RBF(width), Radius()) for width in (0.3, 0.5))
    samplers: dict[str, tuple[Any, str]] = {
        f"equivariant-{num}": (
            SVGD(radial, optax.sgd(0.2)),
            "Converges within 100 steps; the weights of the rings are those of the "
            "start.",
        ),
        f"annealed-{num}": (
            annealed_svgd(hot, config.num_steps, 0.15),
            "Its weights do not depend on the start.",
        ),
    }
    sizes = {f"vanilla-{num * many}": num * many for many in config.multiples}
    plenty = (
        "A log-likelihood above the exact line is no merit: the particles have "
        "collapsed towards the crests of the rings."
    )
    for name, size in sizes.items():
        most = size == max(sizes.values())
        samplers[name] = (RBF(config.bandwidth), plenty if most else "")
    toy = _toy(Shells((4.0, 8.0), 0.5, 2))
    return toy.entries(config, samplers, sizes=sizes, record_every=10)


def gaps(config: SampleEfficiencyConfig, outcomes: Mapping[str, Outcome]) -> dict:
    """Return how far each mean log-likelihood is from its end after 100 steps."""
    found = {}
    for name, outcome in outcomes.items():
        if outcome.history:
            curve, steps = outcome.history["log_density"], outcome.history["step"]
            at_100 = curve[:, np.argmin(np.abs(steps[0] - 100))]
            found[name] = {"gap_after_100_steps": np.abs(at_100 - curve[:, -1])}
    return found


SAMPLE_EFFICIENCY = Experiment(
    name="sample-efficiency",
    figure="figure 1, section 3",
    headlines=("w1_radius", "inner_weight_error", "gap_after_100_steps"),
    summary="20 equivariant particles against up to 640 plain ones on two circles",
    presets={
        "smoke": SampleEfficiencyConfig(
            num_seeds=2, num_particles=8, multiples=(1, 2), num_steps=120
        ),
        "quick": SampleEfficiencyConfig(),
        "paper": SampleEfficiencyConfig(num_seeds=10),
    },
    entries=efficiency_entries,
    figures=(
        curves(
            "log-likelihood",
            "log_density",
            "mean log-likelihood",
            level="mean_log_likelihood",
            log_x=True,
            limits=(-8.0, 0.0),
            caption="Mean log-likelihood against the step: mean and range over the "
            "seeds. Collapsed particles lie above the exact line.",
        ),
        boxes("wasserstein", "w1_radius", "Wasserstein-1 of the radii"),
    ),
    compare=gaps,
)
