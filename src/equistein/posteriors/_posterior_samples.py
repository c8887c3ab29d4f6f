"""The draws of a posterior, as trees of parameters."""

import math
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from equistein.samplers import Samples


class LabelSwitchingWarning(UserWarning):
    """A mean that is meaningless, since labels are exchangeable."""


class PosteriorSamples(eqx.Module):
    """The draws of a posterior.

    Each was moved by a random element of the group, so that all copies of a mode have
    equal weights.

    Attributes:
        points: The draws as flat points, of shape (chain, draw, dim).
        log_density: The log density of the flat points.
        log_evidence: The log of the integral of the density; NaN where the sampler
            does not estimate it.
        log_evidence_error: Its standard error.
        evaluations: The evaluations of the score by all chains, the pilot's included.
        samples: The result of `es.run`, in the coordinates of the sampler.
        posterior: The posterior.
        relabelled: Whether these are draws of `es.relabel`.
    """

    points: Float[Array, "chain draw dim"]
    log_density: Float[Array, "chain draw"]
    log_evidence: float
    log_evidence_error: float
    evaluations: int
    samples: Samples
    posterior: Any
    relabelled: bool = False

    def __repr__(self) -> str:
        chains, draws, dim = self.points.shape
        parameters = self.posterior.parameters
        parts = [
            f"{chains} chains of {draws} draws of {dim} numbers, {self.points.dtype}",
            f"parameters {', '.join(parameters.names)}",
            f"symmetry {parameters.group!r}",
            f"{self.evaluations} evaluations",
        ]
        if math.isfinite(self.log_evidence):
            error = self.log_evidence_error
            parts.append(f"log evidence {self.log_evidence:.4g} ± {error:.2g}")
        if self.relabelled:
            parts.append("relabelled")
        return f"PosteriorSamples({'; '.join(parts)})"

    @property
    def parameters(self) -> PyTree:
        """The tree of the parameters' draws, each of shape (chain, draw, ...)."""
        unflatten = self.posterior.parameters.unflatten
        return jax.vmap(jax.vmap(unflatten))(self.points)

    @property
    def named(self) -> dict[str, Float[Array, "chain draw *value"]]:
        """The parameters' draws by name, those inside a dict as "layer/bias"."""
        leaves = jax.tree.leaves(self.parameters)
        return dict(zip(self.posterior.parameters.names, leaves, strict=True))

    def invariants(self) -> dict[str, Float[Array, "chain draw *value"]]:
        """Return what does not depend on the labels, by name, as for R-hat.

        The "log_density"; order statistics of parameters with labels, as
        "mean (sorted)", of absolute values where signs may change, of the diagonal of a
        matrix with labels along both axes; then the parameters without labels. Periodic
        ones give cosine and sine.
        """
        with_labels, without = {"log_density": self.log_density}, {}
        parameters = self.posterior.parameters
        for i, (name, values) in enumerate(self.named.items()):
            period, axes = parameters.constraints[i].period, parameters.axes[i]
            for label, array in charts(name, values, period):
                if axes:
                    label, array = _ordered(label, array, axes, parameters.signed)
                    with_labels[label] = array
                else:
                    without[label] = array
        return with_labels | without

    def mean(self, name: str) -> Float[Array, "*value"]:
        """Return the mean of a parameter over all draws.

        Warns (`LabelSwitchingWarning`) where it has labels: all of them have the same
        mean.

        Raises:
            ValueError: If there is no parameter of this name.
        """
        parameters, values = self.posterior.parameters, self.named
        if name not in values:
            raise ValueError(
                f"`name` must be one of {', '.join(values)}, but got {name!r}."
            )
        if name in parameters.exchangeable and not self.relabelled:
            warnings.warn(
                f"the labels of '{name}' are exchangeable, so that all have the same "
                "mean: ask for it after `es.relabel(samples)`, or use "
                "`samples.invariants()`.",
                LabelSwitchingWarning,
                stacklevel=2,
            )
        return jnp.mean(values[name], axis=(0, 1))


def charts(name: str, array: Array, period: float) -> list[tuple[str, Array]]:
    """Return numbers by name: those of the line, or cosine and sine on a circle."""
    if period == float("inf"):
        return [(name, array)]
    angle = array * (2 * jnp.pi / period)
    return [(f"{name} (cos)", jnp.cos(angle)), (f"{name} (sin)", jnp.sin(angle))]


def _ordered(
    name: str, array: Array, axes: tuple[int, ...], signed: bool
) -> tuple[str, Array]:
    """Return order statistics along the axes of the labels, after chain and draw."""
    if signed:
        name, array = f"|{name}|", jnp.abs(array)
    if len(axes) == 1:
        return f"{name} (sorted)", jnp.sort(array, axis=axes[0] + 2)
    diagonal = jnp.diagonal(array, axis1=axes[0] + 2, axis2=axes[1] + 2)
    return f"{name} (diagonal, sorted)", jnp.sort(diagonal, axis=-1)
