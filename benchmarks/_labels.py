"""What an update costs with exchangeable labels, beside the vanilla one."""

import jax
import jax.random as jr

from benchmarks._timing import Contestant, print_times
from equistein.groups import Permutations, SignedPermutations
from equistein.kernels import Equivariant, IMQ, RBF

_NUM_PARTICLES = 200
_WIDTH = 3  # coordinates of a label
_CALLS = 20


def labels() -> None:
    """Print the milliseconds of a Stein force on 200 particles, for 3 to 8 labels."""
    for num in (3, 5, 6, 8):
        x = jr.normal(jr.key(0), (_NUM_PARTICLES, num * _WIDTH))
        kernels = {
            "RBF": RBF(1.0),
            f"Equivariant, {num} labels": Equivariant(RBF(1.0), Permutations(num)),
        }
        if num == 5:
            signed = Equivariant(RBF(1.0), SignedPermutations(num))
            enumerated = Equivariant(IMQ(1.0), Permutations(num))
            kernels |= {"with signs": signed, "IMQ, all 120 copies": enumerated}
        rows = {name: _contestant(kernel, x) for name, kernel in kernels.items()}
        print(f"\nA Stein force on {_NUM_PARTICLES} particles with {num} labels of")
        print(f"{_WIDTH} coordinates each; the ratio is to the vanilla kernel")
        print_times(rows, "RBF")


def _contestant(kernel, x: jax.Array) -> Contestant:
    force = jax.jit(lambda x: kernel.stein_force(x, x, -x))

    def run() -> None:
        for _ in range(_CALLS):
            jax.block_until_ready(force(x))

    return Contestant(run, calls=_CALLS)
