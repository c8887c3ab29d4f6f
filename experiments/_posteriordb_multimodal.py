"""Five posteriors with several modes, which exchanging labels or signs makes.

What is read of their draws does not depend on labels or signs. Two have the data of
posteriordb, whose models order the means; the data of the others are simulated.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve
from jax.scipy.special import logsumexp
from jax.scipy.stats import beta, norm
from jaxtyping import Array, Float

from equistein.posteriors import Parameters
from experiments._engine import Scalar
from experiments._posteriordb_regressions import Data, finite, normal, Parts, Values

SIMULATED = "simulated"
"""What names begin with whose data are simulated."""


def forward(emissions: Float[Array, "time state"], transitions: Array) -> Scalar:
    """Return the log likelihood of a chain whose first state is free."""

    def step(table, emission):
        table = logsumexp(table[:, None] + jnp.log(transitions), axis=0) + emission
        return table, None

    return logsumexp(jax.lax.scan(step, emissions[0], emissions[1:])[0])


def _mixture(
    y: Float[Array, " datum"], start: Array, prior: Callable[[Values], Scalar]
) -> Parts:
    """Return the parts of a mixture of normal densities, sorted by their means."""

    def density(v: Values) -> Scalar:
        each = norm.logpdf(y[:, None], v["mu"][None], v["sigma"][None])
        return prior(v) + jnp.sum(logsumexp(each + jnp.log(v["weight"])[None], axis=1))

    def read(v: Values) -> Values:
        order, logs = jnp.argsort(v["mu"]), jnp.log(v["sigma"])
        found = {"mu": v["mu"], "log_sigma": logs, "weight": v["weight"]}
        return {name: values[order] for name, values in found.items()}

    ones = jnp.ones_like(start)
    example = {"mu": start, "sigma": ones, "weight": ones / len(start)}
    flat = Parameters(
        example, exchangeable=dict.fromkeys(example, 0), positive=["sigma"],
        simplex=["weight"],
    )  # fmt: skip
    return flat, density, read


def two_normals(data: Data) -> Parts:
    """Return the parts of `low_dim_gauss_mix`, whose means are not ordered."""

    def prior(v: Values) -> Scalar:
        widths = normal(v["sigma"], 0.0, 2.0)
        return widths + normal(v["mu"], 0.0, 2.0) + beta.logpdf(v["weight"][0], 5, 5)

    return _mixture(data["y"], jnp.zeros(2), prior)


def _five_normals(_: Data) -> Parts:
    draw = np.random.default_rng(0)
    mean, sd = np.array([-6, -2.5, 0, 2, 6]), np.array([0.6, 0.8, 0.5, 1, 0.7])
    component = draw.integers(0, 5, 200)

    def prior(v: Values) -> Scalar:
        logs = jnp.log(v["sigma"])
        return normal(v["mu"], 0.0, 5.0) + normal(logs) - jnp.sum(logs)

    y = jnp.asarray(draw.normal(mean[component], sd[component]))
    return _mixture(y, jnp.linspace(-1.0, 1.0, 5), prior)


def _hidden_states(data: Data) -> Parts:
    """Return the parts of `hmm_example`, its prior the mean over both labelings."""

    def density(v: Values) -> Scalar:
        each = norm.logpdf(v["mu"][None], jnp.asarray([[3.0, 10.0], [10.0, 3.0]]))
        emissions = norm.logpdf(data["y"][:, None], v["mu"][None])
        prior = logsumexp(jnp.sum(each, axis=1)) - jnp.log(2.0)
        return prior + forward(emissions, v["theta"])

    def read(v: Values) -> Values:
        order = jnp.argsort(v["mu"])
        theta = v["theta"][order][:, order]
        return {"theta1": theta[0], "theta2": theta[1], "mu": v["mu"][order]}

    example = {"theta": jnp.full((2, 2), 0.5), "mu": jnp.asarray([5.0, 7.0])}
    labels = {"theta": (0, 1), "mu": 0}
    return Parameters(example, exchangeable=labels, simplex=["theta"]), density, read


def _factors(_: Data) -> Parts:
    """Return the parts of two factors of six numbers, which rotations mix.

    Its density is that of the numbers' covariance, which is what is read.
    """
    draw = np.random.default_rng(0)
    loadings, scores = draw.normal(size=(2, 6)), draw.normal(size=(100, 2))
    y = scores @ loadings + 0.5 * draw.normal(size=(100, 6))
    products, upper = jnp.asarray(y.T @ y), np.triu_indices(6)

    def covariance(v: Values) -> Float[Array, "number number"]:
        return v["loadings"].T @ v["loadings"] + jnp.diag(v["psi"] ** 2)

    def density(v: Values) -> Scalar:
        root, logs = jnp.linalg.cholesky(covariance(v)), jnp.log(v["psi"])
        seen = len(y) * jnp.sum(jnp.log(jnp.diagonal(root)))
        seen += 0.5 * jnp.trace(cho_solve((root, True), products))
        return finite(normal(v["loadings"]) + normal(logs) - jnp.sum(logs) - seen)

    def read(v: Values) -> Values:
        return {"covariance": covariance(v)[upper], "psi": v["psi"]}

    example = {"loadings": 0.1 * jnp.asarray(draw.normal(size=(2, 6)))}
    flat = Parameters(
        example | {"psi": jnp.ones(6)}, exchangeable={"loadings": 0}, positive=["psi"],
        signed=True,
    )  # fmt: skip
    return flat, density, read


def _topics(_: Data) -> Parts:
    """Return the parts of two topics of eight words, in twelve texts of forty."""
    draw = np.random.default_rng(0)
    topics = np.array([[0.3, 0.3, 0.2, 0.1, 0.05, 0.03, 0.01, 0.01],
                       [0.01, 0.02, 0.02, 0.05, 0.1, 0.2, 0.3, 0.3]])  # fmt: skip
    texts = draw.dirichlet([0.8, 0.8], 12) @ topics
    counts = jnp.asarray(draw.multinomial(40, texts), float)

    def density(v: Values) -> Scalar:
        seen = jnp.sum(counts * jnp.log(v["theta"] @ v["phi"]))
        return seen - 0.2 * jnp.sum(jnp.log(v["theta"]))

    def read(v: Values) -> Values:
        order = jnp.argsort(v["phi"][:, 0])
        return {"phi": v["phi"][order], "theta": v["theta"][:, order[0]]}

    example = {"theta": jnp.full((12, 2), 1 / 2), "phi": jnp.full((2, 8), 1 / 8)}
    labels = {"theta": 1, "phi": 0}
    flat = Parameters(example, exchangeable=labels, simplex=["theta", "phi"])
    return flat, density, read


MULTIMODAL: dict[str, Callable[[Data], Parts]] = {
    "hmm_example-free_hmm": _hidden_states,
    "low_dim_gauss_mix-free_gauss_mix": two_normals,
    f"{SIMULATED}-factor_model": _factors,
    f"{SIMULATED}-lda": _topics,
    f"{SIMULATED}-normal_mixture_5": _five_normals,
}
"""What makes each posterior's parts of its data, none for those that are simulated."""
