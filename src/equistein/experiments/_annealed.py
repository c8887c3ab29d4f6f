"""The annealed sampler of the experiments on shells and on robustness."""

from equistein.kernels import AbstractKernel
from equistein.samplers import Geometric, SVGD, thermal, vector_adam


def annealed_svgd(kernel: AbstractKernel, num_steps: int, length: float) -> SVGD:
    """SVGD from hot to the target in equal factors of the temperature.

    While hot, the modes overlap: mass moves between them and the start is forgotten.
    Their weights freeze where the barrier closes, by when the tempered weights are
    close to the exact ones. Normalized steps (no momentum) of a fixed share of the
    thermal width keep the particles moving at every temperature.

    Args:
        kernel: The kernel.
        num_steps: The number of steps of the whole run; 80 % of them anneal.
        length: The step length at the target, in the units of the points.
    """
    annealing = Geometric(max(1, round(0.8 * num_steps)), start=0.01)
    rate = thermal(length, annealing, num_steps)
    return SVGD(kernel, vector_adam(rate, b1=0.0, b2=0.9), annealing=annealing)
