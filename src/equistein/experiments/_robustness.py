"""Many different starts (paper, figure init)."""

import dataclasses
from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Float

from equistein._types import Particles, Scalar
from equistein.experiments._annealed import annealed_svgd
from equistein.experiments._base import Experiment, Stage
from equistein.experiments._toy import measured, sample_each, seed_keys
from equistein.groups import Cyclic
from equistein.kernels import Equivariant, RBF
from equistein.metrics import energy_distance, mean_log_likelihood, mode_weights
from equistein.plotting import boxes
from equistein.runs import FLOOR, Outcome
from equistein.samplers import SVGD
from equistein.targets import RotatedGaussians

_GROUP = Cyclic(4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RobustnessConfig:
    """Settings of `robustness`.

    Attributes:
        num_starts: The number of random starts N(mu, v), mu ~ U[-5, 5)^2, v ~ U[0, 4).
        num_particles: The number of particles.
        num_steps: The number of SVGD steps.
        step: The step size of `vanilla` and `equivariant`.
        bandwidth: The kernel's length.
        annealed_step: The step length of `annealed`.
    """

    num_starts: int = 25
    num_particles: int = 25
    num_steps: int = 5_000
    step: float = 0.1
    bandwidth: float = 0.25
    annealed_step: float = 0.05


def stages(config: RobustnessConfig, seed: int) -> dict[str, Stage]:
    target = RotatedGaussians(_GROUP)
    exact = target.sample(jr.key(0), 4_000)
    modes = _GROUP.orbit(target.mean)
    num = config.num_starts

    folded = jax.vmap(_GROUP.canonicalize)

    def measure_against(
        folded_exact: Float[Array, "exact 2"], points: Particles
    ) -> dict[str, Scalar]:
        return {
            "mean_log_likelihood": mean_log_likelihood(target.log_density, points),
            "energy_distance_folded": energy_distance(folded(points), folded_exact),
            "largest_mode_weight": jnp.max(mode_weights(points, modes)),
        }

    measure = eqx.Partial(measure_against, folded(exact))

    def start(key) -> Particles:
        mean_key, variance_key, normal_key = jr.split(key, 3)
        mean = jr.uniform(mean_key, (1, 2), minval=-5.0, maxval=5.0)
        variance = jr.uniform(variance_key, (), maxval=4.0)
        normal = jr.normal(normal_key, (config.num_particles, 2))
        return mean + jnp.sqrt(variance) * normal

    def sampled(sampler: SVGD) -> Stage:
        def stage() -> Outcome:
            return sample_each(
                sampler,
                target.log_density,
                [start(key) for key in seed_keys(seed, num, 0)],
                seed_keys(seed, num, 1),
                measure,
                num_steps=config.num_steps,
            )

        return stage

    def floor() -> Outcome:
        keys = seed_keys(seed, 100, 2)
        draws = [target.sample(key, config.num_particles) for key in keys]
        return measured(draws, measure)

    step = optax.sgd(config.step)
    kernel = RBF(config.bandwidth)
    equivariant = Equivariant(kernel, _GROUP)
    median = Equivariant(RBF(), _GROUP)
    return {
        "vanilla": sampled(SVGD(kernel, step)),
        "equivariant": sampled(SVGD(equivariant, step)),
        "annealed": sampled(
            annealed_svgd(median, config.num_steps, config.annealed_step)
        ),
        FLOOR: floor,
    }


def draw(config: RobustnessConfig, outcomes: Mapping[str, Outcome]) -> dict:
    del config
    runs = {name: out for name, out in outcomes.items() if name != FLOOR}
    floor = outcomes.get(FLOOR)
    labels = {
        "mean_log_likelihood": "mean log-likelihood",
        "energy_distance_folded": "energy distance of the folded samples",
    }
    return {
        name.replace("_", "-"): boxes(
            {run: out.metrics[name] for run, out in runs.items()},
            label,
            exact=float(floor.metrics[name].mean()) if floor else None,
            exact_label="exact samples, as many",
        )
        for name, label in labels.items()
    }


ROBUSTNESS = Experiment(
    name="robustness",
    figure="figure init, section 3",
    summary="25 random starts of 25 particles on the four Gaussians",
    presets={
        "smoke": RobustnessConfig(num_starts=3, num_particles=8, num_steps=50),
        "quick": RobustnessConfig(),
        "paper": RobustnessConfig(),
    },
    stages=stages,
    draw=draw,
    notes={
        "vanilla": "Collapses to the crests of the modes nearest to the start.",
        "annealed": "The median bandwidth between orbits, and the target reached from "
        "a high temperature.",
    },
    captions={
        "mean-log-likelihood": "Mean log-likelihood of the final particles, a point a "
        "start, with that of exact samples. Higher than exact is collapsed.",
        "energy-distance-folded": "Energy distance of the folded particles to exact "
        "samples: lower is better, and the line is what exact samples reach.",
    },
)
