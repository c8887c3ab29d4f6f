"""What chains give of a number: its mean, the error, and whether they agree."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Array, Float, Int

from equistein._check_arguments import check_finite_arguments

_FEWEST = 4  # draws of a chain, two of each half
_TAILS = (0.05, 0.95)


@dataclasses.dataclass(frozen=True)
class ChainSummary:
    """Statistics of numbers of chains, each of the shape of the number.

    Attributes:
        mean: The mean.
        error: Its Monte Carlo standard error.
        sd: The standard deviation.
        bulk_size: The effective sample size in the bulk; antithetic chains have more
            than draws.
        tail_size: The smaller of those of the 5 % and 95 % quantiles.
        r_hat: The rank-normalized split R-hat, or the nested one.
        reason: Why some are NaN, or empty.
    """

    mean: Float[np.ndarray, "*value"]
    error: Float[np.ndarray, "*value"]
    sd: Float[np.ndarray, "*value"]
    bulk_size: Float[np.ndarray, "*value"]
    tail_size: Float[np.ndarray, "*value"]
    r_hat: Float[np.ndarray, "*value"]
    reason: str


@check_finite_arguments
def summarize_chains(
    values: Float[Array | np.ndarray, "chain draw *value"],
    superchains: Sequence[int] | Int[np.ndarray, " chain"] | None = None,
) -> ChainSummary:
    """Return the mean of numbers with its error, and whether the chains agree.

    All are ArviZ's. They are NaN, but for mean and spread, of a number that is constant
    and of chains of fewer than four draws. They are not defined for particles that
    interact.

    Args:
        values: The numbers of each draw of each chain.
        superchains: For many short chains, an integer for each, equal for those that
            started at the same point, equally often: `r_hat` is then the nested one.

    Raises:
        ImportError: If ArviZ is not installed: `pip install equistein[bayes]`.

    References:
        Vehtari et al. (2021), Rank-normalization, folding, and localization; Margossian
        et al. (2024), Nested R-hat.
    """
    try:
        from arviz_stats.base.array import array_stats as arviz
    except ImportError as error:
        raise ImportError(
            "`summarize_chains` needs ArviZ: pip install equistein[bayes]"
        ) from error
    values = np.moveaxis(np.asarray(values, float), (0, 1), (-2, -1))
    constant = np.all(values == values[..., :1, :1], axis=(-2, -1))
    short = values.shape[-1] < _FEWEST
    few = f"chains of {values.shape[-1]} draws, of which 4 are needed" if short else ""
    reason = few or ("numbers that are constant" if np.any(constant) else "")
    with np.errstate(invalid="ignore", divide="ignore"):
        found = [
            arviz.mcse(values),
            arviz.ess(values, method="bulk"),
            arviz.ess(values, method="tail", prob=_TAILS),
            arviz.rhat(values)
            if superchains is None
            else arviz.rhat_nested(values, superchains),
        ]
    error, bulk, tail, r_hat = (np.where(constant | short, np.nan, x) for x in found)
    mean, sd = (np.asarray(f(values, axis=(-2, -1))) for f in (np.mean, np.std))
    return ChainSummary(mean, error, sd, bulk, tail, r_hat, reason)


def effective_sample_size(values: Float[Array, "chain draw"]) -> float:
    """Return the `bulk_size` of a number, of `summarize_chains`."""
    return float(summarize_chains(values).bulk_size)
