"""Herding: few points that represent many."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def herd(
    features: Float[Array, "n feature"],
    num: int,
    order: Float[Array, " n"] | None = None,
) -> Int[Array, " num"]:
    r"""Choose points whose mean features are those of all points.

    Greedily, without replacement: with $\mu$ the mean over all points and $S_t$ the sum
    over the first t chosen, the next is

    $$\arg\min_i \lVert S_t + F_i - (t + 1)\, \mu \rVert^2.$$

    The error of the means of the features falls like $1/t$ where that of independent
    points falls like $1/\sqrt t$, until it meets the error of the pool itself. Choose
    from the snapshots of chains, say twenty of each, by invariant features such as a
    `PairHistogram`. Points far from the mean are chosen last; with `order` the points
    are cut into `num` strata of equal size along it, and one is taken from each, so
    that the law of that number, tails and all, is the pool's. What neither sees is as
    good as chance.

    Args:
        features: One row a point; scale the columns by what an error in them costs.
        num: The number of points to choose.
        order: A number a point, such as the log density.

    Returns:
        Their indices, in the order of choice.

    Raises:
        ValueError: If there are fewer points than `num`.

    References:
        Chen, Welling and Smola (2010), Super-Samples from Kernel Herding.
    """
    if not 1 <= num <= len(features):
        raise ValueError(
            f"`herd` needs `num` between 1 and the {len(features)} points to choose "
            f"from, but got {num!r}."
        )
    return _herd(features, num) if order is None else _stratified(features, num, order)


@eqx.filter_jit
def _herd(features: Float[Array, "n feature"], num: int) -> Int[Array, " num"]:
    centred = features - jnp.mean(features, axis=0, keepdims=True)

    def choose(carry, _):
        total, cost = carry
        index = jnp.argmin(cost + centred @ total)
        # A point that was chosen is not chosen again.
        return (total + centred[index], cost.at[index].set(jnp.inf)), index

    carry = (jnp.zeros_like(centred[0]), jnp.sum(centred**2, axis=1) / 2)
    return jax.lax.scan(choose, carry, length=num)[1]


@eqx.filter_jit
def _stratified(
    features: Float[Array, "n feature"], num: int, order: Float[Array, " n"]
) -> Int[Array, " num"]:
    centred = features - jnp.mean(features, axis=0, keepdims=True)
    costs = jnp.sum(centred**2, axis=1) / 2
    size = len(features) // num
    # What does not divide is left out evenly.
    kept = jnp.linspace(0, len(features) - 1, num * size).astype(int)
    strata = jnp.argsort(order)[kept].reshape(num, size)
    # Strata take turns all over the range: multiples of the golden ratio.
    turns = jnp.argsort((jnp.arange(num) * 0.6180339887) % 1)

    def choose(total, stratum):
        best = stratum[jnp.argmin(costs[stratum] + centred[stratum] @ total)]
        return total + centred[best], best

    return jax.lax.scan(choose, jnp.zeros_like(centred[0]), strata[turns])[1]
