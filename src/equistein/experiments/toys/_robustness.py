"""Many different starts (paper, figure init)."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Float

from equistein._types import Key, Particles, Scalar
from equistein.experiments.engine._checks import AbstractConfig
from equistein.experiments.engine._experiment import Entry, Experiment
from equistein.experiments.engine._figures import Boxes
from equistein.experiments.toys._sampling import annealed_svgd, floor_of, sampled
from equistein.groups import Cyclic
from equistein.kernels import Equivariant, RBF
from equistein.metrics import energy_distance, mean_log_likelihood, mode_weights
from equistein.samplers import SVGD
from equistein.targets import RotatedGaussians

_GROUP = Cyclic(4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RobustnessConfig(AbstractConfig):
    """Settings of `robustness`.

    Attributes:
        num_seeds: The number of random starts N(mu, v), mu ~ U[-5, 5)^2, v ~ U[0, 4).
        num_particles: The number of particles.
        num_steps: The number of SVGD steps.
        step_size: That of `vanilla` and `equivariant`.
        bandwidth: The kernel's bandwidth.
        annealed_step_size: That of `annealed`, at the target.
    """

    num_seeds: int = 25
    num_particles: int = 25
    num_steps: int = 5_000
    step_size: float = 0.1
    bandwidth: float = 0.25
    annealed_step_size: float = 0.05


def entries(config: RobustnessConfig) -> list[Entry]:
    target = RotatedGaussians(_GROUP)
    modes = _GROUP.orbit(target.mean)
    folded = jax.vmap(_GROUP.canonicalize)

    def measure_against(
        folded_exact: Float[Array, "exact 2"], points: Particles
    ) -> dict[str, Scalar]:
        return {
            "mean_log_likelihood": mean_log_likelihood(target.log_density, points),
            "energy_distance_folded": energy_distance(folded(points), folded_exact),
            "largest_mode_weight": jnp.max(mode_weights(points, modes)),
        }

    measure = eqx.filter_jit(
        eqx.Partial(measure_against, folded(target.sample(jr.key(0), 4_000)))
    )

    def start(key: Key) -> Particles:
        mean_key, variance_key, normal_key = jr.split(key, 3)
        mean = jr.uniform(mean_key, (1, 2), minval=-5.0, maxval=5.0)
        variance = jr.uniform(variance_key, (), maxval=4.0)
        normal = jr.normal(normal_key, (config.num_particles, 2))
        return mean + jnp.sqrt(variance) * normal

    def entry(name: str, sampler: SVGD, note: str = "") -> Entry:
        stage = sampled(
            sampler, target.log_density, start, measure, num_steps=config.num_steps
        )
        return Entry(name=name, stage=stage, note=note)

    kernel, step = RBF(config.bandwidth), optax.sgd(config.step_size)
    return [
        entry(
            "vanilla",
            SVGD(kernel, step),
            "Collapses to the crests of the modes nearest to the start.",
        ),
        entry("equivariant", SVGD(Equivariant(kernel, _GROUP), step)),
        entry(
            "annealed",
            annealed_svgd(
                Equivariant(RBF(), _GROUP), config.num_steps, config.annealed_step_size
            ),
            "The median bandwidth between orbits, and the target reached from a high "
            "temperature.",
        ),
        floor_of(lambda key: target.sample(key, config.num_particles), measure),
    ]


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
