"""Posteriors of posteriordb: data, log densities and reference draws.

Densities are those of the Stan models, but for constants. What is ordered there is a
least number and a positive gap, and a simplex of two one number of an interval.
"""

import dataclasses
import functools
import json
import os
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.stats import beta, cauchy, expon, norm
from jaxtyping import Array, Float

from equistein.data import cached_array, DATA_VARIABLE
from equistein.posteriors import Posterior
from experiments._engine import Scalar
from experiments._posteriordb_multimodal import (
    forward,
    MULTIMODAL,
    SIMULATED,
    two_normals,
)
from experiments._posteriordb_regressions import (
    as_named,
    Data,
    finite,
    normal,
    parameters,
    Parts,
    REGRESSIONS,
    Values,
)

_SUBSTEPS = 20  # of the Runge-Kutta method between two measurements
_LEAST = 1e-8  # concentration whose logarithm is taken
_REFERENCE = 1_000_000  # the seed of long runs, far from those of the trials
_EVERY = 12  # their steps a draw


@dataclasses.dataclass(frozen=True)
class Model:
    """A posterior, and the numbers of it that have a reference.

    Attributes:
        posterior: The log density.
        read: From its parameters Stan's, or what does not depend on labels, by name.
    """

    posterior: Posterior
    read: Callable[[Values], Values]

    def numbers(self, points: Float[Array, "chain draw dim"]) -> dict[str, np.ndarray]:
        """Return draws of each number by name, such as "beta[1]"."""
        unflatten = self.posterior.parameters.unflatten
        trees = jax.vmap(jax.vmap(lambda point: self.read(unflatten(point))))(points)
        draws = {}
        for name, values in trees.items():
            values = np.asarray(values)
            for i in np.ndindex(values.shape[2:]):
                index = f"[{','.join(str(k + 1) for k in i)}]" if i else ""
                draws[name + index] = values[(..., *i)]
        return draws


def load_model(name: str) -> Model:
    """Return a posterior by its name.

    Raises:
        ValueError: If the files are not in the folder posteriordb of $EQUISTEIN_DATA.
    """
    source = name.partition("-")[0]
    data = {} if source == SIMULATED else _file(f"data/{source}.json")
    data = {key: np.asarray(value, float) for key, value in data.items()}
    data = {key: jnp.asarray(x) if x.ndim else float(x) for key, x in data.items()}
    flat, density, read = MODELS[name](data)
    return Model(Posterior(density, flat), read)


@functools.cache
def reference(
    name: str, num_chains: int, num_steps: int
) -> dict[str, tuple[float, float]]:
    """Return the mean and the standard deviation of each number of a posterior.

    They are of the 10 000 draws of posteriordb or, where it has none, of a run of
    tempering by itself, so long, which is kept in the cache.
    """
    if name not in MULTIMODAL:
        known = _file("reference.json")[name]["parameters"]
        return {key: (number["mean"], number["sd"]) for key, number in known.items()}
    model = load_model(name)
    names = list(model.numbers(model.posterior.parameters.example[None, None]))

    def long_run() -> np.ndarray:
        samples = model.posterior.run(
            jr.key(_REFERENCE), num_chains=num_chains, num_steps=num_steps,
            num_draws=num_steps // _EVERY,
        )  # fmt: skip
        draws = np.stack(list(model.numbers(samples.points).values()))
        return np.stack([draws.mean(axis=(1, 2)), draws.std(axis=(1, 2))], axis=1)

    settings = {"name": name, "chains": num_chains, "steps": num_steps, "version": 1}
    found = cached_array("posterior", settings, (len(names), 2), long_run)
    return {key: (float(x), float(y)) for key, (x, y) in zip(names, found, strict=True)}


def _file(path: str) -> dict[str, Any]:
    """Return what a file of posteriordb holds."""
    folder = pathlib.Path(os.environ.get(DATA_VARIABLE, "")) / "posteriordb"
    try:
        return json.loads((folder / path).read_text())
    except OSError as error:
        raise ValueError(
            "the posteriors of posteriordb are not available: put its data and "
            f"reference into the folder posteriordb of ${DATA_VARIABLE} ({error})."
        ) from None


def _arma(data: Data) -> Parts:
    y = data["y"]

    def density(v: Values) -> Scalar:
        first = y[0] - v["mu"] * (1 + v["phi"])

        def step(error, pair):
            old, new = pair
            error = new - (v["mu"] + v["phi"] * old + v["theta"] * error)
            return error, error

        _, errors = jax.lax.scan(step, first, (y[:-1], y[1:]))
        prior = normal(v["mu"], 0.0, 10.0) + cauchy.logpdf(v["sigma"], 0, 2.5)
        prior = prior + normal(v["phi"], 0.0, 2.0) + normal(v["theta"], 0.0, 2.0)
        return prior + normal(jnp.append(first, errors), 0.0, v["sigma"])

    return parameters(("sigma",), mu=(), phi=(), theta=()), density, as_named


def _garch(data: Data) -> Parts:
    y = data["y"]

    def read(v: Values) -> Values:
        rest = {name: v[name] for name in ("mu", "alpha0", "alpha1")}
        return rest | {"beta1": (1 - v["alpha1"]) * v["fraction"]}

    def density(v: Values) -> Scalar:
        old, first = read(v)["beta1"], jnp.asarray(data["sigma1"] ** 2)

        def step(variance, last):
            shock = v["alpha1"] * (last - v["mu"]) ** 2
            variance = v["alpha0"] + shock + old * variance
            return variance, variance

        _, variances = jax.lax.scan(step, first, y[:-1])
        sds = jnp.sqrt(jnp.append(first, variances))
        return jnp.log1p(-v["alpha1"]) + normal(y, v["mu"], sds)

    return parameters(("alpha0",), ("alpha1", "fraction"), mu=()), density, read


def _ordered(v: Values, name: str) -> Array:
    """Return the least number and the one a gap above it."""
    return jnp.stack([v[name], v[name] + v[f"{name}_gap"]])


def _chain(v: Values) -> Array:
    """Return the transition matrix of two states."""
    first = jnp.stack([v["from_1"], v["from_2"]])
    return jnp.stack([first, 1 - first], axis=1)


def _hmm(data: Data) -> Parts:
    def read(v: Values) -> Values:
        theta = _chain(v)
        return {"theta1": theta[0], "theta2": theta[1], "mu": _ordered(v, "mu")}

    def density(v: Values) -> Scalar:
        mu = _ordered(v, "mu")
        emissions = norm.logpdf(data["y"][:, None], mu[None])
        prior = normal(mu, jnp.asarray([3.0, 10.0]))
        return prior + forward(emissions, _chain(v))

    return parameters(("mu", "mu_gap"), ("from_1", "from_2")), density, read


def _drives(data: Data) -> Parts:
    def read(v: Values) -> Values:
        theta, pairs = _chain(v), {n: _ordered(v, n) for n in ("phi", "lambda")}
        return {"theta1": theta[0], "theta2": theta[1]} | pairs

    def density(v: Values) -> Scalar:
        rates = {name: _ordered(v, name)[None] for name in ("phi", "lambda")}
        emissions = expon.logpdf(data["u"][:, None], scale=1 / rates["phi"])
        emissions += expon.logpdf(data["v"][:, None], scale=1 / rates["lambda"])
        prior = beta.logpdf(v["from_1"], 4.0, 2.0) + beta.logpdf(v["from_2"], 2.0, 4.0)
        for pair in rates.values():
            prior += normal(pair[0], jnp.asarray([0.0, 3.0]))
        return prior + forward(emissions, _chain(v))

    positive = ("phi", "phi_gap", "lambda", "lambda_gap")
    return parameters(positive, ("from_1", "from_2")), density, read


def _mixture(data: Data) -> Parts:
    _, free, _ = two_normals(data)

    def read(v: Values) -> Values:
        return {"mu": _ordered(v, "mu"), "sigma": v["sigma"], "theta": v["theta"]}

    def density(v: Values) -> Scalar:
        weight = jnp.stack([v["theta"], 1 - v["theta"]])
        return free(read(v) | {"weight": weight})

    flat = parameters(("mu_gap", "sigma"), ("theta",), mu=(), sigma=(2,))
    return flat, density, read


def _solve(rate: Callable, start: Array, step: float, num: int) -> Array:
    """Return the solution of an equation at `num` times, a step apart, by RK4."""
    h = step / _SUBSTEPS

    def inner(state, index):
        time = index * h
        a = rate(time, state)
        b = rate(time + h / 2, state + h / 2 * a)
        c = rate(time + h / 2, state + h / 2 * b)
        d = rate(time + h, state + h * c)
        state = state + h / 6 * (a + 2 * b + 2 * c + d)
        return state, state

    indices = jnp.arange(num * _SUBSTEPS, dtype=start.dtype)
    return jax.lax.scan(inner, start, indices)[1][_SUBSTEPS - 1 :: _SUBSTEPS]


def _lotka_volterra(data: Data) -> Parts:
    logs, first = jnp.log(data["y"]), jnp.log(data["y_init"])

    def density(v: Values) -> Scalar:
        theta, start = v["theta"], jnp.log(v["z_init"])

        def rate(time, z):  # of the logarithms
            prey, predators = jnp.exp(z)
            return jnp.stack(
                [theta[0] - theta[1] * predators, theta[3] * prey - theta[2]]
            )

        z = _solve(rate, start, 1.0, len(logs))
        prior = normal(theta, jnp.asarray([1, 0.05, 1, 0.05]),
                        jnp.asarray([0.5, 0.05, 0.5, 0.05]))  # fmt: skip
        log_sigma = jnp.log(v["sigma"])
        prior += normal(log_sigma, -1.0) - jnp.sum(log_sigma)
        prior += normal(start, np.log(10)) - jnp.sum(start)
        seen = normal(first, start, v["sigma"]) + normal(logs, z, v["sigma"][None])
        return finite(prior + seen)

    positive = ("theta", "z_init", "sigma")
    flat = parameters(positive, theta=(4,), z_init=(2,), sigma=(2,))
    return flat, density, as_named


def _elimination(data: Data) -> Parts:
    dose, volume, logs = data["D"], data["V"], jnp.log(data["C_hat"])

    def density(v: Values) -> Scalar:
        def rate(time, c):
            taken = jnp.exp(-v["k_a"] * time) * dose * v["k_a"] / volume
            return taken - v["V_m"] / volume * c / (v["K_m"] + c)

        c = _solve(rate, jnp.zeros_like(v["k_a"]), 0.5, len(logs))
        prior = sum(cauchy.logpdf(v[name]) for name in positive)
        mean = jnp.log(jnp.maximum(c, _LEAST))
        return finite(prior + normal(logs, mean, v["sigma"]))

    positive = ("k_a", "K_m", "V_m", "sigma")
    return parameters(positive), density, as_named


MODELS: dict[str, Callable[[Data], Parts]] = dict(
    sorted(
        {
            **REGRESSIONS,
            **MULTIMODAL,
            "arma-arma11": _arma,
            "bball_drive_event_0-hmm_drive_0": _drives,
            "garch-garch11": _garch,
            "hmm_example-hmm_example": _hmm,
            "hudson_lynx_hare-lotka_volterra": _lotka_volterra,
            "low_dim_gauss_mix-low_dim_gauss_mix": _mixture,
            "one_comp_mm_elim_abs-one_comp_mm_elim_abs": _elimination,
        }.items()
    )
)
"""What makes each posterior's parts of its data, by the name in posteriordb."""
