"""What chains give of a number: its mean, the error, and whether they agree."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Array, Float, Int

from equistein._check_arguments import check_finite_arguments

_FEWEST = 4  # draws of a chain, two of each half


@check_finite_arguments
def summarize_chains(
    values: Float[Array | np.ndarray, "chain draw *value"],
    superchains: Sequence[int] | Int[np.ndarray, " chain"] | None = None,
) -> dict[str, Any]:
    """Return means of numbers of chains with their errors, and whether chains agree.

    By ArviZ (extra `bayes`). Not defined for particles that interact.

    Args:
        values: The numbers of each draw of each chain.
        superchains: For many short chains, an integer for each, equal for those that
            started at the same point, equally often, for the nested R-hat.

    Returns:
        For each number its `mean`; the Monte Carlo standard `error`; the spread `sd`;
        effective sample sizes `bulk`, which may be more than draws, and `tail`; the
        rank-normalized split `r_hat`. Of constant numbers and of chains of fewer than
        four draws they are NaN, and the `reason` is not empty.

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
    num, reason = values.shape[-1], "constant numbers" if np.any(constant) else ""
    if num < _FEWEST:
        reason = f"chains of {num} draws, of which {_FEWEST} are needed"
    ids = () if superchains is None else (superchains,)
    compare: Any = arviz.rhat_nested if ids else arviz.rhat
    with np.errstate(invalid="ignore", divide="ignore"):
        found = {
            "error": arviz.mcse(values),
            "bulk": arviz.ess(values, method="bulk"),
            "tail": arviz.ess(values, method="tail", prob=(0.05, 0.95)),
            "r_hat": compare(values, *ids),
        }
    constant |= num < _FEWEST
    found = {name: np.where(constant, np.nan, x) for name, x in found.items()}
    mean, sd = np.mean(values, axis=(-2, -1)), np.std(values, axis=(-2, -1))
    return {"mean": mean, "sd": sd, **found, "reason": reason}
