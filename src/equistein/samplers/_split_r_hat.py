"""Whether several chains are where the others are."""

import numpy as np
from jaxtyping import Float

from equistein._gate import gate


@gate
def split_r_hat(values: Float[np.ndarray, "chain draw"]) -> float:
    r"""The potential scale reduction of chains, each split in two halves.

    $$\hat R = \sqrt{\frac{n - 1}{n} + \frac{B}{n W}}$$

    for halves of n draws, where W is the mean of their variances and B is n times the
    variance of their means: near 1 where all halves draw from one density, larger where
    some have not got there. Infinite if every chain stands still, in another place; 1
    if all stand in the same.

    Args:
        values: A number of each draw of each chain, at least four draws.

    References:
        Gelman et al. (2013), Bayesian Data Analysis, section 11.4.
    """
    n = values.shape[1] // 2
    halves = np.concatenate([values[:, :n], values[:, -n:]]).astype(float)
    within = np.mean(np.var(halves, axis=1, ddof=1))
    between = n * np.var(np.mean(halves, axis=1), ddof=1)
    if within == 0:
        return 1.0 if between == 0 else float("inf")
    return float(np.sqrt((n - 1) / n + between / (n * within)))
