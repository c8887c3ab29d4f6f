"""Posteriors of models that are written in NumPyro."""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._check_arguments import check_arguments
from equistein._extras import require
from equistein._types import Key, LogDensity, Scalar
from equistein.groups import check_invariance
from equistein.posteriors._constraints import AbstractConstraint, Simplex, Wrapped
from equistein.posteriors._parameters import Parameters
from equistein.posteriors._pilot import are_finite
from equistein.posteriors._posterior import Posterior

_NUM_DRAWS = 8  # of the prior, to find a symmetry or to check it
_MOST_SETS = 512  # tried for a number of labels
_ROUNDING = 100.0  # in units of the last place


@check_arguments
def from_numpyro(
    model: Callable[..., Any],
    *args: Any,
    exchangeable: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Posterior:
    """Return the posterior of a model of NumPyro, given its data.

    The parameters are the latent sites, with NumPyro's maps from free numbers, except
    for weights with sum 1 (`Simplex`) and angles (`Wrapped`). Chains start at draws of
    the prior.

    Args:
        model: The model.
        *args: The arguments of the model: the data.
        exchangeable: The axis of the labels of each site that has some, as for
            `Parameters`, checked at draws of the prior; {} for no symmetry. By default
            it is found by trial: the largest set of sites whose labels can be permuted
            together. Changes of sign are not found.
        **kwargs: Named arguments of the model.

    Raises:
        ValueError: If a site is discrete, ordered, without a proper prior, or has a
            support that depends on another site; or if `exchangeable` names none.
        InvarianceError: If the density lacks the symmetry, naming the permutation.
    """
    require("numpyro", "NumPyro", "bayes")
    sites = _latent_sites(model, args, kwargs, jr.key(0))
    _check_supports(sites, _latent_sites(model, args, kwargs, jr.key(1)))
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
            _find_labels(posterior.log_density, posterior.parameters, points)
        )
    check_invariance(posterior.log_density, posterior.group, points)
    return posterior


def _as_written(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of NumPyro mix precisions and ranks."""

    def call(*args, **kwargs):
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            return function(*args, **kwargs)

    return call


@_as_written
def _latent_sites(model, args, kwargs, key: Key) -> dict[str, dict[str, Any]]:
    """Return the latent sites of a draw of the prior, by name."""
    from numpyro import distributions, handlers

    try:
        trace = handlers.trace(handlers.seed(model, key)).get_trace(*args, **kwargs)
    except NotImplementedError as error:
        raise ValueError(
            "the prior of the model cannot be drawn from: give a proper prior to every "
            "site, not `ImproperUniform`."
        ) from error
    sites = {
        name: site for name, site in trace.items()
        if site["type"] == "sample" and not site["is_observed"]
    }  # fmt: skip
    for name, site in trace.items():
        if site["type"] == "plate" and site["args"][1] not in (None, site["args"][0]):
            raise ValueError(
                f"the plate '{name}' subsamples the data: leave out `subsample_size`."
            )
    if not sites:
        raise ValueError("the model has no latent site: there is nothing to sample.")
    for name, site in sites.items():
        base = getattr(site["fn"], "base_dist", site["fn"])
        if isinstance(base, distributions.Delta):
            raise ValueError(f"the site '{name}' has one value: use it, not `Delta`.")
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
        other = others[name]["fn"].support if name in others else None
        if not eqx.tree_equal(site["fn"].support, other):
            raise ValueError(
                f"the support of the site '{name}' depends on another site. Draw it "
                "from a fixed one, as Uniform(0, 1), and scale it by the other site."
            )


def _constraint(name: str, support: Any, takes_order: bool) -> AbstractConstraint:
    from numpyro.distributions import biject_to, constraints

    base = getattr(support, "base_constraint", support)
    ordered = (constraints.ordered_vector, constraints.positive_ordered_vector)
    if isinstance(base, tuple(map(type, ordered))) and not takes_order:
        raise ValueError(
            f"the site '{name}' is ordered, so that its labels cannot be permuted: "
            "give the components an unordered prior, or `exchangeable={}`."
        )
    if isinstance(base, type(constraints.simplex)):
        return Simplex()
    if isinstance(base, type(constraints.circular)):
        return Wrapped(2 * math.pi, low=-math.pi)
    return _Bijection(_as_written(biject_to)(base))


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

    def one(key):
        sites = _latent_sites(model, args, kwargs, key)
        return parameters.flatten({name: site["value"] for name, site in sites.items()})

    return lambda key, num: jax.jit(jax.vmap(one))(jr.split(key, num))


def _finite_draws(posterior: Posterior) -> Float[Array, "n dim"]:
    """Return draws of the prior where the density is finite."""
    assert posterior.draw_start is not None
    points = posterior.draw_start(jr.key(2), 4 * _NUM_DRAWS)
    good = are_finite(posterior.log_density, points)
    if not np.any(good):
        raise ValueError(
            "the model's density is not finite at any draw of its prior, where its "
            "symmetry is checked: narrow the priors, or give `exchangeable={}`."
        )
    return points[good][:_NUM_DRAWS]


class _Bijection(AbstractConstraint):
    """A map of `numpyro.distributions.biject_to` onto a support."""

    meaning: ClassVar[str] = "a value of the site's support"
    transform: Any

    def __init__(self, transform: Any):
        self.transform = jax.tree.map(
            lambda x: jnp.asarray(x) if isinstance(x, np.ndarray) else x, transform
        )

    def forward(self, free: Float[Array, "*free"]) -> Float[Array, "*value"]:
        return self.transform(free)

    def inverse(self, value: Float[Array, "*value"]) -> Float[Array, "*free"]:
        return self.transform._inverse(value)

    def log_jacobian(self, free: Float[Array, "*free"]) -> Scalar:
        return jnp.sum(self.transform.log_abs_det_jacobian(free, self.transform(free)))


def _find_labels(
    log_density: LogDensity, parameters: Parameters, points: Float[Array, "n dim"]
) -> dict[str, tuple[int, ...]]:
    """Return the axes of exchangeable labels by name, for the most parameters."""
    # For each length of an axis, sets of axes of this length are tried, the largest
    # first: the density must not change under permutations that generate all others.
    best: list[tuple[str, int]] = []
    for num, axes in sorted(_axes_by_length(parameters).items()):
        sizes = range(len(axes), 0, -1)
        every = itertools.chain.from_iterable(
            map(list, itertools.combinations(axes, size)) for size in sizes
        )
        sets = list(itertools.islice(every, _MOST_SETS))
        swap, shift = np.arange(num), np.roll(np.arange(num), 1)
        swap[:2] = 1, 0
        moves = [
            np.stack([_moved(parameters, some, order) for some in sets])
            for order in (swap, shift)
        ]
        holds = _holds(log_density, points, jnp.asarray(np.stack(moves, axis=1)))
        valid = np.flatnonzero(np.asarray(holds))
        if len(valid) and len(sets[valid[0]]) >= len(best):
            best = sets[valid[0]]
    named: dict[str, tuple[int, ...]] = {}
    for name, axis in best:
        named[name] = (*named.get(name, ()), axis)
    return named


def _axes_by_length(parameters: Parameters) -> dict[int, list[tuple[str, int]]]:
    """Return the axes of parameters by their length, two or more."""
    by_length: dict[int, list[tuple[str, int]]] = {}
    names, shapes = parameters.names, parameters.shapes
    for name, shape, free in zip(names, shapes, parameters.free_shapes, strict=True):
        for axis, num in enumerate(free):
            if num >= 2 and shape[axis : axis + 1] == (num,):
                by_length.setdefault(num, []).append((name, axis))
    return by_length


def _moved(
    parameters: Parameters, axes: list[tuple[str, int]], order: np.ndarray
) -> Int[np.ndarray, " dim"]:
    """Return where each coordinate comes from when labels along axes are permuted."""
    places = parameters.places
    for name, axis in axes:
        places[name] = np.take(places[name], order, axis=axis)
    return np.concatenate([part.ravel() for part in places.values()])


@eqx.filter_jit
def _holds(
    log_density: LogDensity,
    points: Float[Array, "n dim"],
    moves: Int[Array, "set move dim"],
) -> Array:
    """Return for each set whether the density is invariant under all its moves."""
    before = jax.lax.map(log_density, points)
    limit = _ROUNDING * jnp.finfo(before.dtype).eps * (1 + jnp.abs(before))

    def stays(move):
        after = jax.vmap(log_density)(points[:, move])
        return jnp.all(jnp.abs(after - before) <= limit)

    flat = jax.lax.map(stays, moves.reshape(-1, moves.shape[-1]))
    return jnp.all(flat.reshape(moves.shape[:2]), axis=1)
