"""The draws of a posterior, as trees of parameters."""

import math
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from equistein.posteriors._invariants import invariants
from equistein.samplers import Samples


class LabelSwitchingWarning(UserWarning):
    """A number was asked for that says nothing, since labels may be swapped."""


def check_samples(owner: str, samples: Any) -> None:
    """Raise `ValueError` unless samples are draws of a posterior."""
    if not isinstance(samples, PosteriorSamples):
        raise ValueError(
            f"`{owner}` needs `samples`, what `posterior.run` returned, but got "
            f"{type(samples).__name__}."
        )


class PosteriorSamples(eqx.Module):
    """The draws of a posterior.

    Each was moved by a random element of the group: all copies of a mode by a swap of
    labels have equal weights by construction, whatever the chains did.

    Attributes:
        points: The draws as flat points, of shape (chain, draw, dim).
        log_density: The log density of the flat points.
        log_evidence: The log of the integral of the density that was given; nan where
            the sampler does not tell.
        log_evidence_error: Its standard error; nan where the sampler does not tell.
        evaluations: The number of scores that all chains took, the pilot's included.
        samples: What `es.run` gave, in the coordinates of the sampler.
        posterior: What was sampled.
        relabelled: Whether the draws were moved to be read, by `es.relabel`.
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
        """Tell how many draws of which parameters, and what they took."""
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
        """Return what does not depend on the labels, by name.

        The "log_density", the order statistics of parameters that have labels, as
        "mean (sorted)", and the parameters that have none. Where signs may change, of
        absolute values; of a matrix with labels along both axes, of the diagonal; of
        what is periodic, cosine and sine. What diagnostics such as R-hat are to be
        asked of.
        """
        found = invariants(self.posterior.parameters, self.named)
        return {"log_density": self.log_density} | found

    def mean(self, name: str) -> Float[Array, "*value"]:
        """Return the mean of a parameter over all draws.

        Warns (`LabelSwitchingWarning`) where it has labels: then all of them have the
        same mean, and what is between them is noise.

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
                f"the labels of '{name}' may be swapped, so that all have the same "
                "mean and it tells nothing of a component: ask for it after "
                "`es.relabel(samples)`, or look at `samples.invariants()`.",
                LabelSwitchingWarning,
                stacklevel=2,
            )
        return jnp.mean(values[name], axis=(0, 1))
