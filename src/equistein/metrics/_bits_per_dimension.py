"""Log-likelihoods of images in bits."""

import math
from collections.abc import Sequence

from jaxtyping import Array, Float

from equistein._gate import finite_gate
from equistein._numbers import check_positive


@finite_gate
def bits_per_dimension(
    log_likelihood: Float[Array, "*batch"], shape: Sequence[int], num_levels: int = 256
) -> Float[Array, "*batch"]:
    r"""Return the bits that a coordinate costs.

    $$b = \log_2 L - \frac{\log p(x)}{d \log 2}$$

    for pixels of L levels that were scaled to [0, 1] and made continuous by noise as
    wide as a level. A bound of the log-likelihood gives one of the bits.

    Args:
        log_likelihood: $\log p(x)$ in nats, normalized, for pixels from 0 to 1.
        shape: The shape of an image.
        num_levels: The number L of grey levels.

    Raises:
        ValueError: If there are no levels.

    References:
        Theis, van den Oord and Bethge (2016), A note on the evaluation of generative
        models, section 3.1.
    """
    check_positive("`bits_per_dimension`", num_levels=num_levels)
    size = math.prod(shape)
    return math.log2(num_levels) - log_likelihood / (size * math.log(2))
