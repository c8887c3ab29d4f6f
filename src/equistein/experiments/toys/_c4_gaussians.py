"""Four Gaussians with the symmetry of the square (paper, section 3, figure esvgd)."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Key, Particles, Point, Scalar
from equistein.experiments.engine._experiment import Entry, Experiment
from equistein.experiments.engine._figures import Own
from equistein.experiments.engine._levels import Shown
from equistein.experiments.toys._sampling import density_grid, Toy, ToyConfig
from equistein.groups import Cyclic
from equistein.kernels import AbstractScalarKernel, Equivariant, IMQ, Invariant, RBF
from equistein.metrics import (
    energy_distance,
    kernel_stein_discrepancy,
    mean_log_likelihood,
    wasserstein_1d,
)
from equistein.plotting import planar_samples
from equistein.targets import RotatedGaussians

_NUM_EXACT = 20_000
_GROUP = Cyclic(4)


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

    def stein_force(
        self,
        targets: Float[Array, "target *shape"],
        sources: Float[Array, "source *shape"],
        scores: Float[Array, "source *shape"],
    ) -> Float[Array, "target *shape"]:
        def on_target(x):
            kernel, slope = jax.vmap(jax.value_and_grad(self), (None, 0))(x, sources)
            return (kernel @ scores - 2 * jnp.sum(slope, axis=0)) / len(sources)

        return jax.vmap(on_target)(targets)


def _start(key: Key, num: int) -> Particles:
    return jnp.sqrt(2.0) * jr.normal(key, (num, 2))


def _toy() -> Toy:
    target = RotatedGaussians(_GROUP)
    exact = _folded(target.sample(jr.key(0), _NUM_EXACT))

    def measure(exact: Float[Array, "exact 2"], points: Particles) -> dict[str, Scalar]:
        folded, ksd_kernel = _folded(points), Equivariant(IMQ(1.0), _GROUP)
        return {
            "w1_folded_x": wasserstein_1d(folded[:, 0], exact[:, 0]),
            "w1_folded_y": wasserstein_1d(folded[:, 1], exact[:, 1]),
            "folded_mean_x": jnp.mean(folded[:, 0]),
            "folded_sd_x": jnp.std(folded[:, 0]),
            "folded_sd_y": jnp.std(folded[:, 1]),
            "energy_distance_folded": energy_distance(folded, exact[:4_000]),
            "mean_log_likelihood": mean_log_likelihood(target.log_density, points),
            "ksd": kernel_stein_discrepancy(target.log_density, points, ksd_kernel),
        }

    return Toy(target=target, start=_start, measure=measure, exact=exact)


def entries(config: ToyConfig) -> list[Entry]:
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
    return _toy().entries(config, samplers)


def _samples(config: ToyConfig, shown: Shown) -> Any:
    views = {}
    for entry, outcome in shown:
        points = jnp.asarray(outcome.samples[: config.num_particles])
        orbits = np.swapaxes(np.asarray(jax.vmap(_GROUP.orbit)(points)), 0, 1)
        views[entry.label] = (np.asarray(points), np.asarray(_folded(points)), orbits)
    contours = density_grid(RotatedGaussians(_GROUP).log_density, 6.5)
    titles = ("samples", "folded to one mode", "all rotations")
    return planar_samples(views, titles, contours, 6.5)


_FIGURES = (
    Own(
        "samples",
        _samples,
        caption="The particles of the first seed: as sampled, folded to one mode, and "
        "with all four rotations (colors). Contours: the exact density at 1, 2 and 3 "
        "standard deviations.",
    ),
)


def _folded(points: Particles) -> Particles:
    return jax.vmap(_GROUP.canonicalize)(points)


C4_GAUSSIANS = Experiment(
    name="c4-gaussians",
    figure="figure esvgd (a, c), section 3",
    summary="four Gaussians with C4 symmetry: the samplers side by side",
    presets={
        "smoke": ToyConfig(num_seeds=2, num_particles=12, num_steps=50),
        "quick": ToyConfig(),
        "paper": ToyConfig(num_seeds=10),
    },
    entries=entries,
    figures=_FIGURES,
)
