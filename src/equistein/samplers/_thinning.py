"""Thinning: few points that represent many."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._gate import gate
from equistein._products import matmul
from equistein._types import Key


@gate
def thin(
    key: Key, features: Float[Array, "n feature"], order: Float[Array, " n"], num: int
) -> Int[Array, " num"]:
    r"""Choose points with the mean features, and distribution of a number, of all.

    By halving: points next to each other in `order` are paired, and of each pair one is
    kept, with the signs of $F_{kept} - F_{left}$ chosen so that their sum stays small,

    $$S \leftarrow S \pm (F_a - F_b), \qquad \pm = -\mathrm{sign}\,
      S \cdot (F_a - F_b),$$

    until `num` are left; $F_a$ is either of the pair by chance. The errors of the means
    of the features, and of the distribution of `order`, fall faster than those of
    independent points. Every point has the same chance, so nothing else is biased.

    Args:
        key: The source of the chance.
        features: Finite invariant features of each point, such as a `PairHistogram`;
            scale the columns by what an error in them costs.
        order: A number of each point, such as the log density.
        num: The number of points to choose.

    Returns:
        Their indices, sorted along `order`.

    References:
        Dwivedi and Mackey (2021), Kernel Thinning, for thinning by halving; Harvey and
        Samadi (2014), Near-optimal herding, for the signs.
    """
    if not 1 <= num <= len(features) or len(order) != len(features):
        raise ValueError(
            f"`thin` needs `num` between 1 and the {len(features)} points to choose "
            f"from, and one number of `order` for each, but got num={num!r} and "
            f"{len(order)} numbers."
        )
    rounds = (len(features) // num).bit_length() - 1
    return _thin(key, features, order, num, rounds)


@eqx.filter_jit
def _thin(
    key: Key,
    features: Float[Array, "n feature"],
    order: Float[Array, " n"],
    num: int,
    rounds: int,
) -> Int[Array, " num"]:
    size = num * 2**rounds
    kept = jnp.argsort(order)[_systematic(key, len(features), size)]
    for index in range(rounds):
        pairs = kept.reshape(-1, 2)
        swapped = jr.bernoulli(jr.fold_in(key, index), shape=(len(pairs), 1))
        pairs = jnp.where(swapped, pairs[:, ::-1], pairs)
        first, second = pairs[:, 0], pairs[:, 1]

        def choose(total, gap):
            sign = jnp.where(matmul(total, gap) > 0, -1, 1).astype(gap.dtype)
            return total + sign * gap, sign > 0

        gaps = features[first] - features[second]
        _, taken = jax.lax.scan(choose, jnp.zeros_like(gaps[0]), gaps)
        kept = jnp.where(taken, first, second)
    return kept


def _systematic(key: Key, total: int, size: int) -> Int[Array, " size"]:
    r"""Return `size` of `total` places, evenly spaced from a random start.

    The i-th is $\lfloor (i\, total + r) / size \rfloor$ with $r < total$ uniform: over
    all i and r each place comes up `size` times, so each has the same chance.
    """
    start = jr.randint(jr.fold_in(key, total), (), 0, total)
    whole, part = np.divmod(np.arange(size) * total, size)
    return jnp.asarray(whole) + (part + start) // size
