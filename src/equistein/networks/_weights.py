"""How many weights a network has, before it is made."""

import itertools

from equistein._limits import check_made

_BYTES = 20  # of a weight, its gradient, Adam's two numbers and a running mean


def check_weights(owner: str, name: str, *sizes: int, layers: int = 1) -> None:
    """Raise unless the weights between layers of some sizes can be trained in memory.

    Args:
        owner: The network.
        name: The argument that sets the sizes.
        sizes: The numbers of units, from layer to layer.
        layers: How often all of this comes.

    Raises:
        LimitError: If they cannot, with an estimate.
    """
    num = layers * sum(first * second for first, second in itertools.pairwise(sizes))
    what = f"The {num} weights of {owner} in training"
    check_made(what, _BYTES * num, f"take a smaller `{name}`")
