"""SVGD that cools: a recipe for targets with several modes."""

from typing import Any

from jaxtyping import Array, Int

from equistein._gate import gate
from equistein.kernels import AbstractKernel
from equistein.samplers._annealing import Geometric, thermal
from equistein.samplers._svgd import SVGD
from equistein.samplers._vector_adam import vector_adam


@gate
def annealed_svgd(
    kernel: AbstractKernel,
    num_steps: int | Int[Array, ""],
    step_size: float,
    annealing: Geometric | None = None,
    **more: Any,
) -> SVGD:
    """Return SVGD from hot to the target in equal factors of the temperature.

    While hot, the modes overlap: mass moves between them and the start is forgotten.
    Their weights freeze where the barrier closes, by when the tempered weights are
    close to the exact ones. Normalized steps (no momentum) of a fixed fraction of the
    thermal width keep the particles moving at every temperature.

    Args:
        kernel: The kernel.
        num_steps: The number of steps of the whole run.
        step_size: The step size at the target, in the units of the points.
        annealing: The temperatures; by default 80 % of the steps anneal.
        more: Further arguments of `SVGD`.
    """
    if annealing is None:
        annealing = Geometric(max(1, round(0.8 * num_steps)), start=0.01)
    rate = thermal(step_size, annealing, num_steps)
    adam = vector_adam(rate, b1=0.0, b2=0.9)
    return SVGD(kernel, adam, annealing=annealing, **more)
