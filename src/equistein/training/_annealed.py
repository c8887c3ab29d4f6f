"""New samples of an energy that has one level for each noise."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from equistein._types import Key, Particles
from equistein.energies import NoiseEnergy
from equistein.groups import AbstractGroup
from equistein.kernels import AbstractKernel
from equistein.training._config import FitConfig
from equistein.training._lengths import Lengths
from equistein.training._samplers import negatives_sampler


@eqx.filter_jit
def annealed(
    key: Key,
    energy: NoiseEnergy,
    config: FitConfig,
    lengths: Lengths,
    kernel: AbstractKernel,
    group: AbstractGroup,
    start: Particles,
) -> Particles:
    r"""Move particles while the noise falls, and take off what is left of it.

    Step i of n is one of the settings' sampler on $E_\sigma$, with
    $\sigma = \sigma_{max}^{1-t} \sigma_{min}^t$ and $t = i / (n - 1)$; its lengths grow
    with $\sigma$. The last step is Tweedie's rule.

    Args:
        key: The source of randomness.
        energy: The energies.
        config: The settings.
        lengths: Their lengths, at the least noise.
        kernel: The kernel.
        group: The symmetry.
        start: Particles as wide as the data with the largest noise.
    """
    one = jnp.ones((), start.dtype)

    def sampler(level):
        return negatives_sampler(config, lengths.at(level), kernel, group, one)

    def step(i, state):
        share = i / max(1, config.sample_steps - 1)
        level = energy.level(share.astype(start.dtype))
        log_density = energy.at(level).log_density
        return sampler(level).step(jr.fold_in(key, i), state, log_density)[0]

    state = sampler(energy.noise_max).init(start)
    state = jax.lax.fori_loop(0, config.sample_steps, step, state)
    denoised = jax.vmap(energy.denoised)(state.particles)
    return jax.vmap(group.project)(denoised)
