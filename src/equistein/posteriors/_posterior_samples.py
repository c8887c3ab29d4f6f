"""The draws of a posterior, and what does not depend on their labels."""

import math
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from equistein.metrics import summarize_chains
from equistein.posteriors._parameters import Parameters
from equistein.samplers import Samples, split_r_hat, warn_of_samples

_FEWEST = 20  # draws of a chain, for R-hat
_SHORT = 0.05  # length of a mean of cosine and sine


class LabelSwitchingWarning(UserWarning):
    """A mean that is meaningless, since labels are exchangeable."""


class PosteriorSamples(eqx.Module):
    """The draws of a posterior, spread over the copies of each mode.

    Attributes:
        points: The draws as flat points, of shape (chain, draw, dim).
        log_density: The log density of the flat points.
        log_evidence: The log of the integral of the density; NaN where the sampler
            does not estimate it.
        log_evidence_error: Its standard error.
        evaluations: The evaluations of the score by all chains, the pilot's included.
        samples: The result of `es.run`, in the coordinates of the sampler.
        posterior: The posterior.
        mixing: Of chains, the largest R-hat of the invariants, and whose it is.
        relabelled: Whether these are draws of `es.relabel`.
        choice: Where no evidence is asked for, the sampler that was chosen, and why.
    """

    points: Float[Array, "chain draw dim"]
    log_density: Float[Array, "chain draw"]
    log_evidence: float
    log_evidence_error: float
    evaluations: int
    samples: Samples
    posterior: Any
    mixing: tuple[float, str] = (1.0, "")
    relabelled: bool = False
    choice: str = ""

    def __repr__(self) -> str:
        chains, draws, dim = self.points.shape
        parameters, evidence = self.posterior.parameters, ""
        if math.isfinite(self.log_evidence):
            error = self.log_evidence_error
            evidence = f"; log evidence {self.log_evidence:.4g} ± {error:.2g}"
        return (
            f"PosteriorSamples({chains} chains of {draws} draws of {dim} numbers, "
            f"{self.points.dtype}; parameters {', '.join(parameters.names)}; symmetry "
            f"{parameters.group!r}; {self.evaluations} evaluations{evidence}"
            f"{'; relabelled' * self.relabelled}{self.choice and '; '}{self.choice})"
        )

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
        return invariants_of(self.posterior.parameters, self.points, self.log_density)

    def summary(self) -> dict[str, dict[str, Any]]:
        """Return `summarize_chains` of each of the `invariants`: mean, error, R-hat."""
        return {name: summarize_chains(x) for name, x in self.invariants().items()}

    def mean(self, name: str) -> Float[Array, "*value"]:
        """Return the mean of a parameter over all draws; of an angle, on the circle.

        Warns (`LabelSwitchingWarning`) where it has labels: all of them have the same
        mean.
        """
        parameters, values = self.posterior.parameters, self.named
        if name not in values:
            raise ValueError(
                f"`name` must be one of {', '.join(values)}, not {name!r}."
            )
        if name in parameters.exchangeable and not self.relabelled:
            warnings.warn(
                f"the labels of '{name}' are exchangeable, so that all have the same "
                "mean: ask for it after `es.relabel(samples)`, or use "
                "`samples.invariants()`.",
                LabelSwitchingWarning,
                stacklevel=2,
            )
        where = parameters.names.index(name)
        period = parameters.constraints[where].period
        parts = [
            jnp.mean(x, axis=(0, 1)) for _, x in charts(name, values[name], period)
        ]
        if len(parts) == 1:
            return parts[0]
        if jnp.any(jnp.hypot(parts[0], parts[1]) < _SHORT):
            warn_of_samples(f"'{name}' is spread over its circle: it has no mean.")
        angle = jnp.arctan2(parts[1], parts[0]) * (period / (2 * jnp.pi))
        return parameters.constraints[where].forward(angle)


def invariants_of(
    parameters: Parameters, points: Array, log_density: Array
) -> dict[str, Array]:
    """Return what does not depend on the labels, by name."""
    with_labels, without = {"log_density": log_density}, {}
    trees = jax.vmap(jax.vmap(parameters.unflatten))(points)
    for i, values in enumerate(jax.tree.leaves(trees)):
        name, axes = parameters.names[i], parameters.axes[i]
        for label, array in charts(name, values, parameters.constraints[i].period):
            if axes:
                label, array = _order_statistics(label, array, axes, parameters.signed)
                with_labels[label] = array
            else:
                without[label] = array
    return with_labels | without


def worst_r_hat(invariants: dict[str, Array]) -> tuple[float, str]:
    """Return the largest R-hat, and its name; 1 of chains of few draws."""
    worst = (1.0, "")
    for name, x in invariants.items():
        columns = np.moveaxis(np.asarray(x).reshape(*x.shape[:2], -1), -1, 0)
        if not np.all(np.isfinite(columns)):
            return np.inf, name
        if x.shape[1] >= _FEWEST:
            worst = max(worst, (max(map(split_r_hat, columns)), name))
    return worst


def charts(name: str, array: Array, period: float) -> list[tuple[str, Array]]:
    """Return numbers by name: those of the line, or cosine and sine on a circle."""
    if period == float("inf"):
        return [(name, array)]
    angle = array * (2 * jnp.pi / period)
    return [(f"{name} (cos)", jnp.cos(angle)), (f"{name} (sin)", jnp.sin(angle))]


def _order_statistics(
    name: str, array: Array, axes: tuple[int, ...], signed: bool
) -> tuple[str, Array]:
    """Return order statistics along the axes of the labels, after chain and draw."""
    if signed:
        name, array = f"|{name}|", jnp.abs(array)
    if len(axes) == 1:
        return f"{name} (sorted)", jnp.sort(array, axis=axes[0] + 2)
    diagonal = jnp.diagonal(array, axis1=axes[0] + 2, axis2=axes[1] + 2)
    return f"{name} (diagonal, sorted)", jnp.sort(diagonal, axis=-1)
