"""A posterior: a log density of parameters that have names."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, PyTree

from equistein._types import Scalar
from equistein.groups import AbstractGroup
from equistein.posteriors._parameters import Parameters


class Posterior(eqx.Module):
    r"""A log density of parameters that have names, as one of a flat point.

    $$\log p(u) = \log p(x(u)) + \log |\partial x / \partial u|$$

    for the values x of the free numbers u: what samplers move.

    Args:
        function: The log density of a tree of values, as `Parameters` holds them: the
            log likelihood and the log prior, normalized where the evidence matters.
        parameters: What the flat point holds.

    Raises:
        ValueError: If the arguments are not these.
    """

    function: Callable[[PyTree], Scalar]
    parameters: Parameters

    def __init__(self, log_density: Callable[[PyTree], Scalar], parameters: Any):
        if not callable(log_density):
            raise ValueError(
                "Posterior needs `log_density`, a function of a tree of parameters, "
                f"but got {log_density!r}."
            )
        if not isinstance(parameters, Parameters):
            raise ValueError(
                "Posterior needs `parameters`, as Parameters({'mean': jnp.zeros(3)}, "
                f"exchangeable={{'mean': 0}}), but got {parameters!r}."
            )
        self.function = log_density
        self.parameters = parameters

    @property
    def group(self) -> AbstractGroup:
        """The symmetry, on flat points."""
        return self.parameters.group

    def log_density(self, point: Float[Array, " dim"]) -> Scalar:
        """Return the log density of a flat point."""
        value = self.function(self.parameters.unflatten(point))
        return value + self.parameters.log_jacobian(point)
