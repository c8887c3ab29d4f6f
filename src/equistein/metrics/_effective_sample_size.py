"""How many independent samples the samples of some chains are worth."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._gate import finite_gate
from equistein._types import Scalar


@finite_gate
def effective_sample_size(values: Float[Array, "chain draw"]) -> Scalar:
    r"""The number of independent samples with the same error of the mean.

    $$n_{\mathrm{eff}} = m\, \frac{s^2}{s_{\mathrm{between}}^2}$$

    for m chains, where $s^2$ is the variance of all values and
    $s_{\mathrm{between}}^2$ that of the chains' means: m where a chain's draws are all
    alike, the number of draws where they are independent. At most the number of draws.
    Its relative error is about $\sqrt{2/m}$, so it takes many chains, not long ones. It
    is not defined for particles that interact.

    Args:
        values: A number, such as the energy, of each draw of each independent chain.

    Raises:
        ValueError: If there is only one chain.

    References:
        Gelman et al. (2013), Bayesian Data Analysis, section 11.4 and 11.5.
    """
    num_chains, num_draws = values.shape
    if num_chains < 2:
        raise ValueError(
            "`effective_sample_size` needs at least two chains along axis 0, but got "
            f"values of shape {values.shape}."
        )
    between = jnp.var(jnp.mean(values, axis=1), ddof=1)
    floor = float(jnp.finfo(values.dtype).tiny)
    size = num_chains * jnp.var(values) / jnp.maximum(between, floor)
    return jnp.clip(size, 1.0, num_chains * num_draws)
