"""Four Gaussians with the symmetry of the square (paper, figures 2 and 3)."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein.groups import Cyclic
from equistein.kernels import (
    AbstractScalarKernel,
    Equivariant,
    IMQ,
    Invariant,
    Prepared,
    RBF,
)
from equistein.metrics import (
    energy_distance,
    kernel_stein_discrepancy,
    mean_log_likelihood,
    mode_weights,
    wasserstein_1d,
)
from equistein.samplers import annealed_svgd
from equistein.targets import RotatedGaussians
from experiments._engine import (
    Entry,
    Experiment,
    Figure,
    Key,
    Particles,
    Point,
    Scalar,
    Shown,
)
from experiments._figures import boxes
from experiments._toys import drawn, planar_figure, Toy, ToyConfig

_GROUP = Cyclic(4)
_REACH = 6.5  # of a panel


@jax.jit
def _folded(points: Particles) -> Particles:
    """Return points moved to one mode."""
    return jax.vmap(_GROUP.canonicalize)(points)


class AuthorsRule(AbstractScalarKernel):
    r"""The update of the authors' code, which is not the paper's.

    Their code differentiates $\sum_{ab} k_G(x_a, x_b)$ in both arguments, which makes
    the repulsion $-2 \nabla_{x} \frac1n \sum_j k_G(x, x_j)$: twice that of SVGD, and
    for the invariant kernel an equivariant direction, where the paper's formula,
    $\nabla_{x_j} k_G$, is an invariant one.
    """

    invariant: Invariant

    def __call__(self, x: Point, y: Point) -> Scalar:
        return self.invariant(x, y)

    def force(
        self, targets: Float[Array, "target *shape"], prepared: Prepared
    ) -> Float[Array, "target *shape"]:
        copies = jax.vmap(self.invariant.group.orbit, out_axes=1)(prepared.points)
        # Of a radial kernel -grad_x k is grad_2 k: attraction repulsion twice.
        force = jax.vmap(self.invariant.base.stein_force, (None, 0, None))
        return 2 * jnp.mean(force(targets, copies, prepared.scores / 2), axis=0)


def _measure(
    target: RotatedGaussians, exact: Float[Array, "exact 2"], points: Particles
) -> dict[str, Scalar]:
    folded, ksd_kernel = _folded(points), Equivariant(IMQ(1.0), _GROUP)
    modes = _GROUP.orbit(target.mean)
    return {
        "w1_folded_x": wasserstein_1d(folded[:, 0], exact[:, 0]),
        "w1_folded_y": wasserstein_1d(folded[:, 1], exact[:, 1]),
        "folded_mean_x": jnp.mean(folded[:, 0]),
        "folded_sd_x": jnp.std(folded[:, 0]),
        "folded_sd_y": jnp.std(folded[:, 1]),
        "energy_distance_folded": energy_distance(folded, exact[:4_000]),
        "mean_log_likelihood": mean_log_likelihood(target.log_density, points),
        "ksd": kernel_stein_discrepancy(target.log_density, points, ksd_kernel),
        "largest_mode_weight": jnp.max(mode_weights(points, modes)),
    }


def _toy(start: Callable[[Key, int], Particles]) -> Toy:
    """Return the four Gaussians, from some starts."""
    target = RotatedGaussians(_GROUP)
    exact = lambda: _folded(drawn(target, jr.key(0), 20_000))
    return Toy(target, start, _measure, exact)


def c4_entries(config: ToyConfig) -> list[Entry]:
    """Return SVGD with each kernel."""
    toy = _toy(lambda key, num: jnp.sqrt(2.0) * jr.normal(key, (num, 2)))
    fixed = RBF(config.bandwidth)
    samplers = {
        "vanilla": (
            fixed,
            "Too few particles a mode: they collapse towards the crests.",
        ),
        "vanilla-median": (RBF(), ""),
        "invariant": (
            Invariant(fixed, _GROUP),
            "The paper's formula fails: the scalar invariant kernel gives psi(gx) = "
            "psi(x), so over an orbit the scores cancel and the particles stay near "
            "radius 1.8, whatever the target says (its mean radius is 3).",
        ),
        "authors": (
            AuthorsRule(Invariant(fixed, _GROUP)),
            "The rule of the authors' code, which differentiates the kernel in both "
            "arguments: it spreads over the modes, and too far.",
        ),
        "equivariant": (
            Equivariant(fixed, _GROUP),
            "The paper's Example 3, K(x, y) = mean_g k(x, gy) R_g, at the paper's "
            "bandwidth.",
        ),
        "equivariant-median": (
            Equivariant(RBF(), _GROUP),
            "The same with the default bandwidth, the median rule between orbits.",
        ),
    }
    return toy.entries(config, samplers)


def _samples(config: ToyConfig, shown: Shown) -> Any:
    def views(samples: np.ndarray) -> list[np.ndarray]:
        points = jnp.asarray(samples)
        seen = points, _folded(points), jax.vmap(_GROUP.orbit, out_axes=1)(points)
        return [np.asarray(each) for each in seen]

    titles = ("samples", "folded to one mode", "all rotations")
    return planar_figure(config, shown, RotatedGaussians(_GROUP), _REACH, views, titles)


C4_GAUSSIANS = Experiment(
    name="c4-gaussians",
    figure="figure 3 (a, c), section 3",
    headlines=("energy_distance_folded", "ksd", "w1_folded_x"),
    summary="four Gaussians with C4 symmetry: the samplers side by side",
    presets={
        "smoke": ToyConfig(num_seeds=2, num_particles=12, num_steps=50),
        "quick": ToyConfig(),
        "paper": ToyConfig(num_seeds=10),
    },
    entries=c4_entries,
    figures=(
        Figure(
            "samples",
            _samples,
            "The particles of the first seed: as sampled, folded to one mode, "
            "and with all four rotations (colors). Contours: the exact density at 1, 2 "
            "and 3 standard deviations.",
        ),
    ),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RobustnessConfig(ToyConfig):
    """Settings of `robustness`.

    Attributes:
        num_seeds: The number of random starts N(mu, v), mu ~ U[-5, 5)^2, v ~ U[0, 4).
    """

    num_seeds: int = 25
    num_particles: int = 25
    num_steps: int = 5_000
    step_size: float = 0.1
    bandwidth: float = 0.25


def _random_start(key: Key, num: int) -> Particles:
    mean_key, variance_key, normal_key = jr.split(key, 3)
    mean = jr.uniform(mean_key, (1, 2), minval=-5.0, maxval=5.0)
    variance = jr.uniform(variance_key, (), maxval=4.0)
    return mean + jnp.sqrt(variance) * jr.normal(normal_key, (num, 2))


def robustness_entries(config: RobustnessConfig) -> list[Entry]:
    """Return SVGD from many starts."""
    kernel, median = RBF(config.bandwidth), Equivariant(RBF(), _GROUP)
    samplers = {
        "vanilla": (
            kernel,
            "Collapses to the crests of the modes nearest to the start.",
        ),
        "equivariant": (Equivariant(kernel, _GROUP), ""),
        "annealed": (
            annealed_svgd(median, config.num_steps, 0.05),
            "The median bandwidth between orbits, and the target reached from a high "
            "temperature.",
        ),
    }
    return _toy(_random_start).entries(config, samplers)


ROBUSTNESS = Experiment(
    name="robustness",
    figure="figure 2, section 3",
    headlines=("energy_distance_folded", "mean_log_likelihood", "largest_mode_weight"),
    summary="25 random starts of 25 particles on the four Gaussians",
    presets={
        "smoke": RobustnessConfig(num_seeds=3, num_particles=8, num_steps=50),
        "quick": RobustnessConfig(),
        "paper": RobustnessConfig(),
    },
    entries=robustness_entries,
    figures=(
        boxes(
            "mean-log-likelihood",
            "mean_log_likelihood",
            "mean log-likelihood",
            caption="Mean log-likelihood of the final particles, a point a start, with "
            "that of exact samples. Higher than exact is collapsed.",
        ),
        boxes(
            "energy-distance-folded",
            "energy_distance_folded",
            "energy distance of the folded samples",
            caption="Energy distance of the folded particles to exact samples: lower "
            "is better, and the line is what exact samples reach.",
        ),
    ),
)
