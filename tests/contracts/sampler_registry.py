"""All samplers, and what their tests share."""

import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from registries import normal, some_slow

from equistein.groups import Cyclic
from equistein.kernels import Equivariant, IMQ, RBF
from equistein.samplers import (
    AnnealedSMC,
    from_blackjax,
    Geometric,
    HMC,
    Langevin,
    MALA,
    Normal,
    ParallelTempering,
    SVGD,
    vector_adam,
)
from equistein.targets import RotatedGaussians

TARGET = RotatedGaussians(Cyclic(4))
log_density = TARGET.log_density
SAMPLERS = {  # adding a sampler to the library means adding a line here
    "svgd": SVGD(RBF(0.7), optax.sgd(0.1)),
    "adam": SVGD(IMQ(0.7), optax.adam(0.1)),
    "equivariant": SVGD(Equivariant(RBF(0.7), Cyclic(4)), vector_adam(0.1)),
    "median": SVGD(RBF(), optax.sgd(0.1)),
    "annealed": SVGD(RBF(0.7), vector_adam(0.1), annealing=Geometric(8)),
    "noisy": SVGD(RBF(0.7), optax.sgd(0.1), langevin=0.01, score_clip=5.0),
    "langevin": Langevin(0.05, score_clip=5.0),
    "mala": MALA(0.05, num_adapt=5, score_clip=5.0),
    "annealed mala": MALA(0.05, annealing=Geometric(8)),
    "hmc": from_blackjax(blackjax.hmc, step_size=0.2, num_integration_steps=3),
    "leapfrogs": HMC(0.2, num_leapfrogs=2, num_adapt=5),
    "tempering": ParallelTempering(MALA(0.05), num_temperatures=3, num_adapt=4),
    "smc": AnnealedSMC(
        MALA(0.05), reference=Normal(jnp.zeros(2), 3.0), num_runs=2, num_moves=2
    ),
}
QUIET = {
    name: SAMPLERS[name]
    for name in ("svgd", "adam", "equivariant", "median", "annealed")
}
NOISY = [sampler for name, sampler in SAMPLERS.items() if name not in QUIET]
EVALUATIONS = {  # at the start and in a step, where they are not 0 and 1
    "mala": (1, 1),
    "annealed mala": (1, 1),
    "hmc": (1, 3),
    "leapfrogs": (1, 2),
    "tempering": (1, 3),
    "smc": (2, 2),
}
every_sampler = pytest.mark.parametrize(
    "sampler",
    some_slow(SAMPLERS, ["hmc"]),  # BlackJAX's own code takes long to compile
)


def start(key, num=8, dtype=jnp.float64):
    return jax.device_put(2 * np.asarray(normal(key, (num, 2), dtype)))


@eqx.filter_jit
def one_step(sampler, key, state):
    return sampler.step(key, state, log_density)
