"""Posteriors of models that are written in NumPyro."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._gate import gate
from equistein._types import Key, Scalar
from equistein.groups import check_invariance
from equistein.posteriors._bijection import Bijection
from equistein.posteriors._constraints import AbstractConstraint, Simplex, Wrapped
from equistein.posteriors._find_labels import find_labels
from equistein.posteriors._parameters import Parameters
from equistein.posteriors._pilot import are_finite
from equistein.posteriors._posterior import Posterior

_NUM_DRAWS = 8  # of the prior, to look for a symmetry or to check it


@gate
def from_numpyro(
    model: Callable[..., Any],
    *args: Any,
    exchangeable: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Posterior:
    """Return the posterior of a model of NumPyro, given its data.

    The parameters are the latent sites, with NumPyro's own maps from free numbers,
    but for weights with sum 1 (`Simplex`, on which a swap swaps coordinates) and
    angles (`Wrapped`). Chains start at draws of the prior.

    Args:
        model: The model.
        *args: What the model is called with: the data.
        exchangeable: The axis of the labels of each site that has some, as for
            `Parameters`, checked at draws of the prior; {} for no symmetry. By default
            it is found by trial: the largest set of sites whose labels may be swapped
            together, which `posterior.exchangeable` tells. Signs that may change are
            not found.
        **kwargs: What the model is also called with.

    Raises:
        ValueError: If a site is discrete, ordered, without a proper prior, or has a
            support that depends on another site; or if `exchangeable` names none.
        InvarianceError: If the labels may not be swapped, naming the swap.
        ImportError: If NumPyro is not installed: `pip install equistein[bayes]`.
    """
    _import()
    sites = _latent_sites(model, args, kwargs, jr.key(0))
    _check_supports(sites, _latent_sites(model, args, kwargs, jr.key(1)))
    for name in exchangeable or {}:
        if name not in sites:
            raise ValueError(
                f"`exchangeable` names '{name}', which is no latent site of the model: "
                f"it has {', '.join(sites)}."
            )
    constraints = {
        name: _constraint(name, site["fn"].support, exchangeable == {})
        for name, site in sites.items()
    }
    example = {name: jnp.asarray(site["value"]) for name, site in sites.items()}
    density = _joint_density(model, args, kwargs)

    def with_labels(labels: Mapping[str, Any]) -> Posterior:
        parameters = Parameters(example, exchangeable=labels, constraints=constraints)
        draw = _prior(model, args, kwargs, parameters)
        return Posterior(density, parameters, draw)

    posterior = with_labels(exchangeable or {})
    if exchangeable == {}:
        return posterior
    points = _finite_draws(posterior)
    if exchangeable is None:
        return with_labels(
            find_labels(posterior.log_density, posterior.parameters, points)
        )
    check_invariance(posterior.log_density, posterior.group, points)
    return posterior


def _import() -> Any:
    try:
        import numpyro
    except ImportError as error:
        raise ImportError(
            "`from_numpyro` needs NumPyro: pip install equistein[bayes]"
        ) from error
    return numpyro


def _as_written(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPyro's that mixes precisions and ranks as it likes."""

    def call(*args, **kwargs):
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            return function(*args, **kwargs)

    return call


@_as_written
def _latent_sites(model, args, kwargs, key: Key) -> dict[str, dict[str, Any]]:
    """Return the latent sites of a draw of the prior, by name.

    Raises:
        ValueError: If there are none, one is discrete, or a prior cannot be drawn from.
    """
    from numpyro import handlers

    try:
        trace = handlers.trace(handlers.seed(model, key)).get_trace(*args, **kwargs)
    except NotImplementedError as error:
        raise ValueError(
            "the prior of the model cannot be drawn from. Give a proper prior to every "
            "site: `ImproperUniform` is none."
        ) from error
    sites = {
        name: site for name, site in trace.items()
        if site["type"] == "sample" and not site["is_observed"]
    }  # fmt: skip
    for name, site in trace.items():
        if site["type"] == "plate" and site["args"][1] not in (None, site["args"][0]):
            raise ValueError(
                f"the plate '{name}' takes a part of the data at a time: give it all, "
                "without `subsample_size`."
            )
    if not sites:
        raise ValueError("the model has no latent site: there is nothing to sample.")
    for name, site in sites.items():
        if site["fn"].support.is_discrete:
            raise ValueError(
                f"the site '{name}' is discrete. Marginalise it: for the labels of a "
                "mixture, `numpyro.distributions.MixtureSameFamily(Categorical(weight),"
                " components)`; for other sums, `numpyro.factor`."
            )
    return sites


def _check_supports(sites: Mapping[str, Any], others: Mapping[str, Any]) -> None:
    """Raise `ValueError` if two draws of the prior have other sites or supports."""
    for name, site in sites.items():
        if name not in others or not _same(
            site["fn"].support, others[name]["fn"].support
        ):
            raise ValueError(
                f"the support of the site '{name}' depends on another site. Draw it "
                "from a fixed one, as Uniform(0, 1), and scale it by the other site."
            )


def _same(support: Any, other: Any) -> bool:
    leaves, others = jax.tree.leaves(support), jax.tree.leaves(other)
    return len(leaves) == len(others) and all(
        np.shape(a) == np.shape(b) and np.array_equal(a, b)
        for a, b in zip(leaves, others, strict=True)
    )


def _constraint(name: str, support: Any, takes_order: bool) -> AbstractConstraint:
    """Return the map onto a support.

    Raises:
        ValueError: If it is ordered, where labels may have to be swapped.
    """
    from numpyro.distributions import biject_to, constraints

    base = getattr(support, "base_constraint", support)
    ordered = (constraints.ordered_vector, constraints.positive_ordered_vector)
    if isinstance(base, tuple(map(type, ordered))) and not takes_order:
        raise ValueError(
            f"the site '{name}' is ordered, so that its labels cannot be swapped. Drop "
            "the ordering: give the components an unordered prior, equistein handles "
            "the labels. Or give `exchangeable={}`, for no symmetry."
        )
    if isinstance(base, type(constraints.simplex)):
        return Simplex()
    if isinstance(base, type(constraints.circular)):
        return Wrapped(2 * math.pi, low=-math.pi)
    return Bijection(_as_written(biject_to)(base))


def _joint_density(model, args, kwargs) -> Callable[[Mapping[str, Array]], Scalar]:
    """Return the log density of data and values as a function of the values."""
    from numpyro import handlers
    from numpyro.infer.util import log_density

    seeded = handlers.seed(model, 0)  # for what is drawn and has no density

    @_as_written
    def density(tree):
        value, _ = log_density(seeded, args, kwargs, tree)
        return jnp.asarray(value, jax.tree.leaves(tree)[0].dtype)

    return density


def _prior(
    model, args, kwargs, parameters: Parameters
) -> Callable[[Key, int], Float[Array, "chain dim"]]:
    """Return a function that draws flat points of the prior."""

    def one(key):
        sites = _latent_sites(model, args, kwargs, key)
        return parameters.flatten({name: site["value"] for name, site in sites.items()})

    return lambda key, num: jax.jit(jax.vmap(one))(jr.split(key, num))


def _finite_draws(posterior: Posterior) -> Float[Array, "n dim"]:
    """Return draws of the prior where the density is finite.

    Raises:
        ValueError: If there are none.
    """
    assert posterior.draw_start is not None
    points = posterior.draw_start(jr.key(2), 4 * _NUM_DRAWS)
    good = are_finite(posterior.log_density, points)
    if not np.any(good):
        raise ValueError(
            "the model's density is not finite at any draw of its prior, so that its "
            "symmetry cannot be looked at: narrow the priors, or give "
            "`exchangeable={}`."
        )
    return points[good][:_NUM_DRAWS]
