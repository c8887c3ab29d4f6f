"""Many different starts (paper, figure init)."""

import dataclasses

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._types import Key, Particles, Scalar
from equistein.experiments.engine._experiment import Entry, Experiment
from equistein.experiments.engine._figures import Boxes
from equistein.experiments.toys._sampling import annealed_svgd, Toy, ToyConfig
from equistein.groups import Cyclic
from equistein.kernels import Equivariant, RBF
from equistein.metrics import energy_distance, mean_log_likelihood, mode_weights
from equistein.targets import RotatedGaussians

_GROUP = Cyclic(4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RobustnessConfig(ToyConfig):
    """Settings of `robustness`.

    Attributes:
        num_seeds: The number of random starts N(mu, v), mu ~ U[-5, 5)^2, v ~ U[0, 4).
        annealed_step_size: The step size of `annealed`, at the target.
    """

    num_seeds: int = 25
    num_particles: int = 25
    num_steps: int = 5_000
    step_size: float = 0.1
    bandwidth: float = 0.25
    annealed_step_size: float = 0.05


def _start(key: Key, num: int) -> Particles:
    mean_key, variance_key, normal_key = jr.split(key, 3)
    mean = jr.uniform(mean_key, (1, 2), minval=-5.0, maxval=5.0)
    variance = jr.uniform(variance_key, (), maxval=4.0)
    return mean + jnp.sqrt(variance) * jr.normal(normal_key, (num, 2))


def _toy() -> Toy:
    target = RotatedGaussians(_GROUP)
    exact = jax.vmap(_GROUP.canonicalize)(target.sample(jr.key(0), 4_000))

    def measure(exact: Float[Array, "exact 2"], points: Particles) -> dict[str, Scalar]:
        folded, modes = jax.vmap(_GROUP.canonicalize)(points), _GROUP.orbit(target.mean)
        return {
            "mean_log_likelihood": mean_log_likelihood(target.log_density, points),
            "energy_distance_folded": energy_distance(folded, exact),
            "largest_mode_weight": jnp.max(mode_weights(points, modes)),
        }

    return Toy(target=target, start=_start, measure=measure, exact=exact)


def entries(config: RobustnessConfig) -> list[Entry]:
    kernel, median = RBF(config.bandwidth), Equivariant(RBF(), _GROUP)
    samplers = {
        "vanilla": (
            kernel,
            "Collapses to the crests of the modes nearest to the start.",
        ),
        "equivariant": (Equivariant(kernel, _GROUP), ""),
        "annealed": (
            annealed_svgd(median, config.num_steps, config.annealed_step_size),
            "The median bandwidth between orbits, and the target reached from a high "
            "temperature.",
        ),
    }
    return _toy().entries(config, samplers)


_FIGURES = (
    Boxes(
        "mean-log-likelihood",
        "mean_log_likelihood",
        "mean log-likelihood",
        caption="Mean log-likelihood of the final particles, a point a start, with "
        "that of exact samples. Higher than exact is collapsed.",
    ),
    Boxes(
        "energy-distance-folded",
        "energy_distance_folded",
        "energy distance of the folded samples",
        caption="Energy distance of the folded particles to exact samples: lower "
        "is better, and the line is what exact samples reach.",
    ),
)


ROBUSTNESS = Experiment(
    name="robustness",
    figure="figure init, section 3",
    summary="25 random starts of 25 particles on the four Gaussians",
    presets={
        "smoke": RobustnessConfig(num_seeds=3, num_particles=8, num_steps=50),
        "quick": RobustnessConfig(),
        "paper": RobustnessConfig(),
    },
    entries=entries,
    figures=_FIGURES,
)
