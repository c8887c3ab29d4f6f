"""Regressions of posteriordb, of which one is hierarchical and one nonparametric."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.stats import cauchy, gamma, norm, t
from jaxtyping import Array

from equistein.posteriors import Parameters
from experiments._engine import Scalar

Data = Mapping[str, Any]
Values = dict[str, Array]
Parts = tuple[Parameters, Callable[[Values], Scalar], Callable[[Values], Values]]
"""Parameters, their log density, and what reads Stan's parameters from them."""


def as_named(values: Values) -> Values:
    return values


def normal(x: Any, mean: Any = 0.0, sd: Any = 1.0) -> Scalar:
    return jnp.sum(norm.logpdf(x, mean, sd))


def finite(value: Scalar) -> Scalar:
    """Return minus infinity in place of what is not finite."""
    return jnp.where(jnp.isfinite(value), value, -jnp.inf)


def parameters(positive: tuple[str, ...] = (), unit: tuple[str, ...] = (), **shapes):
    """Return parameters: numbers where no shape is given, zero where not named."""
    shapes = dict.fromkeys((*positive, *unit), ()) | shapes
    starts = dict.fromkeys(positive, 1.0) | dict.fromkeys(unit, 0.5)
    example = {n: jnp.full(shape, starts.get(n, 0.0)) for n, shape in shapes.items()}
    ends = dict.fromkeys(unit, (0.0, 1.0))
    return Parameters(example, positive=positive, interval=ends)


def _regression(
    columns: list[Any],
    y: Array,
    prior: Callable[[Values], Any] = lambda values: 0.0,
    read: Callable[[Values], Values] = as_named,
) -> Parts:
    """Return the parts of y ~ normal(X beta, sigma)."""
    x = jnp.stack([jnp.broadcast_to(column, y.shape) for column in columns], axis=1)

    def density(values: Values) -> Scalar:
        mean = x @ values["beta"]
        return prior(values) + normal(y, mean, values["sigma"])

    return parameters(("sigma",), beta=(x.shape[1],)), density, read


def _ark(data: Data) -> Parts:
    y, k = data["y"], int(data["K"])
    lags = [y[k - i - 1 : len(y) - i - 1] for i in range(k)]
    prior = lambda v: normal(v["beta"], 0.0, 10.0) + cauchy.logpdf(v["sigma"], 0, 2.5)
    read = lambda v: {"alpha": v["beta"][0], "beta": v["beta"][1:], "sigma": v["sigma"]}
    return _regression([1.0, *lags], y[k:], prior, read)


def _blr(data: Data) -> Parts:
    prior = lambda v: normal(v["beta"], 0.0, 10.0) + normal(v["sigma"], 0.0, 10.0)
    return _regression(list(data["X"].T), data["y"], prior)


def _earnings(data: Data) -> Parts:
    return _regression([1.0, data["height"]], data["earn"])


def _kidscore(data: Data) -> Parts:
    school, iq = data["mom_hs"], data["mom_iq"]
    prior = lambda v: cauchy.logpdf(v["sigma"], 0, 2.5)
    return _regression([1.0, school, iq, school * iq], data["kid_score"], prior)


def _kilpisjarvi(data: Data) -> Parts:
    mean = jnp.asarray([data["pmualpha"], data["pmubeta"]])
    sd = jnp.asarray([data["psalpha"], data["psbeta"]])
    prior = lambda v: normal(v["beta"], mean, sd)
    read = lambda v: {"alpha": v["beta"][0], "beta": v["beta"][1], "sigma": v["sigma"]}
    return _regression([1.0, data["x"]], data["y"], prior, read)


def _mesquite(data: Data) -> Parts:
    logs = ("diam1", "diam2", "canopy_height", "total_height", "density")
    columns = [1.0, *(jnp.log(data[name]) for name in logs), data["group"]]
    return _regression(columns, jnp.log(data["weight"]))


def _nes(data: Data) -> Parts:
    ages = [(data["age_discrete"] == k).astype(float) for k in (2, 3, 4)]
    first = [data["real_ideo"], data["race_adj"]]
    last = [data[name] for name in ("educ1", "gender", "income")]
    return _regression([1.0, *first, *ages, *last], data["partyid7"])


def _diamonds(data: Data) -> Parts:
    x = data["X"][:, 1:]
    x = x - jnp.mean(x, axis=0, keepdims=True)

    def density(v: Values) -> Scalar:
        prior = normal(v["b"]) + t.logpdf(v["Intercept"], 3.0, 8.0, 10.0)
        prior = prior + t.logpdf(v["sigma"], 3.0, 0.0, 10.0)
        return prior + normal(data["Y"], v["Intercept"] + x @ v["b"], v["sigma"])

    flat = parameters(("sigma",), Intercept=(), b=(x.shape[1],))
    return flat, density, as_named


def _eight_schools(data: Data) -> Parts:
    def read(v: Values) -> Values:
        return {
            "theta": v["mu"] + v["tau"] * v["theta_trans"],
            "mu": v["mu"],
            "tau": v["tau"],
        }

    def density(v: Values) -> Scalar:
        seen = normal(data["y"], read(v)["theta"], data["sigma"])
        prior = normal(v["theta_trans"]) + normal(v["mu"], 0.0, 5.0)
        return seen + prior + cauchy.logpdf(v["tau"], 0, 5)

    return parameters(("tau",), mu=(), theta_trans=(8,)), density, read


def _gaussian_process(data: Data) -> Parts:
    x, y = data["x"], data["y"]
    squares, eye = (x[:, None] - x[None]) ** 2, jnp.eye(len(x))

    def density(v: Values) -> Scalar:
        covariance = v["alpha"] ** 2 * jnp.exp(-0.5 * squares / v["rho"] ** 2)
        root = jnp.linalg.cholesky(covariance + v["sigma"] * eye)
        white = jax.scipy.linalg.solve_triangular(root, y, lower=True)
        seen = -0.5 * jnp.sum(white**2) - jnp.sum(jnp.log(jnp.diagonal(root)))
        prior = gamma.logpdf(v["rho"], 25.0, scale=0.25) + normal(v["sigma"])
        return seen + prior + normal(v["alpha"], 0.0, 2.0)

    return parameters(("rho", "alpha", "sigma")), density, as_named


REGRESSIONS: dict[str, Callable[[Data], Parts]] = {
    "arK-arK": _ark,
    "diamonds-diamonds": _diamonds,
    "earnings-earn_height": _earnings,
    "eight_schools-eight_schools_noncentered": _eight_schools,
    "gp_pois_regr-gp_regr": _gaussian_process,
    "kidiq-kidscore_interaction": _kidscore,
    "kilpisjarvi_mod-kilpisjarvi": _kilpisjarvi,
    "mesquite-logmesquite": _mesquite,
    "nes1980-nes": _nes,
    "sblrc-blr": _blr,
}
"""What makes each posterior's parts of its data, by the name in posteriordb."""
