"""Free energies along collective variables, and averages over temperature, by MBAR."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers

_BLOCKS = 20


class FreeEnergy(NamedTuple):
    r"""The free energy $-\log p(\xi)$ over bins of one or two variables, in kT.

    `edges` are those of the bins for each variable, `values` the free energy, 0 where
    it is least, with standard `errors`, NaN in empty bins. `probabilities` are those of
    the bins, and `replicates` without each block of chains.
    """

    edges: tuple[np.ndarray, ...]
    values: np.ndarray
    errors: np.ndarray
    probabilities: np.ndarray
    replicates: np.ndarray

    @property
    def centers(self) -> list[np.ndarray]:
        """The centers of the bins, for each variable an array like `values`."""
        middle = [(edges[1:] + edges[:-1]) / 2 for edges in self.edges]
        return list(np.meshgrid(*middle, indexing="ij"))

    def difference(self, first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
        """Return F(second) - F(first) of two sets of bins, in kT, and its error.

        The sets are truth values of the bins, such as `free.centers[0] < 0`.
        """
        shapes = [np.shape(bins) for bins in (first, second)]
        if shapes != [self.values.shape] * 2:
            raise ValueError(
                f"`difference` needs a truth value for each of {self.values.shape} "
                f"bins, but got {shapes}."
            )
        chances = [self.probabilities[bins].sum() for bins in (first, second)]
        left = [self.replicates[:, bins].sum(axis=1) for bins in (first, second)]
        with np.errstate(divide="ignore", invalid="ignore"):  # of a set without points
            error = _error(left[0] / chances[0] - left[1] / chances[1])
            return float(np.log(chances[0] / chances[1])), float(error)


@check_arguments
def free_energy(
    samples: Any,
    collective_variable: Callable[..., Any],
    bins: int | Sequence[float | Sequence[float] | np.ndarray] | np.ndarray,
) -> FreeEnergy:
    r"""Return the free energy $F(\xi) = -\log p(\xi)$ of one or two variables.

    The standard errors are the jackknife's over blocks of chains.

    Args:
        samples: Points, each independent; `Weighted` ones; or the `Samples` of a run,
            or of consecutive runs, each from the `state` of the one before. Of
            `ParallelTempering` each run gives the points of all temperatures at its
            end; of others, those of the history, if it has any, or the last.
        collective_variable: A function of one point, such as `torsions.angles`.
        bins: Their number, or their edges; of two variables also a pair of these.
    """
    points, *draws = _gather(samples)
    every = eqx.filter_jit(jax.lax.map)
    values = every(collective_variable, jnp.asarray(points), batch_size=256)
    values = np.asarray(values, float).reshape(len(points), -1)
    num = values.shape[1]
    is_pair = num == 2 and not isinstance(bins, int) and len(bins) == 2
    if num not in (1, 2) or not np.isfinite(values).all():
        raise ValueError(
            "`collective_variable` must return one or two finite numbers of a point, "
            f"but returned {num}, or some are not finite."
        )
    each: Any = bins if is_pair else [bins] * num
    for one in each:
        widths = np.diff(np.asarray(one, float)) if np.ndim(one) else np.ones(1)
        if not widths.size or not np.all((widths > 0) & (widths < np.inf)):
            raise ValueError(f"`bins` must be a number, or rising edges, not {one}.")
        if not np.ndim(one):
            check_integers("`free_energy`", bins=one)
    edges = np.histogramdd(values, each)[1]
    histogram = lambda w: np.histogramdd(values, edges, weights=w[0])[0]
    whole, left = _jackknife(histogram, np.ones(1), *draws)
    if not whole.sum() > 0:
        raise ValueError("`bins` must hold some of the values, but all are outside.")
    spans = np.array([each[-1] - each[0] for each in edges])
    if whole.sum() < 0.05 or np.any(spans > 30 * np.ptp(values, axis=0)):
        warnings.warn(
            f"free_energy: values of {values.min(axis=0)} to {values.max(axis=0)} are "
            "mostly outside `bins`, or in few: are both in one unit, as radians?",
            stacklevel=3,
        )
    axes = tuple(range(-num, 0))
    whole, left = (p / p.sum(axis=axes, keepdims=True) for p in (whole, left))
    volumes = np.prod(np.meshgrid(*map(np.diff, edges), indexing="ij"), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        energies, errors = -np.log(whole / volumes), _error(left) / whole
    return FreeEnergy(tuple(edges), energies - energies.min(), errors, whole, left)


@check_arguments
def thermal_averages(
    samples: Any, inverse_temperatures: Sequence[float] | Float[np.ndarray, " beta"]
) -> dict[str, np.ndarray]:
    r"""Return means of $u = -\log p$ in kT, and $\beta^2\, \mathrm{var}\, u$ in k.

    `energies`, `heat_capacities` of the potential energy, and the errors of both.

    Args:
        samples: Of `ParallelTempering`, as for `free_energy`.
        inverse_temperatures: Relative to the target's, which is 1; within the ladder.
    """
    draws, betas = _gather(samples)[1:], np.ravel(inverse_temperatures)
    if len(draws[-1]) < 2:
        raise ValueError("`samples` must be those of runs of ParallelTempering.")
    if not np.all((betas > 0.999 * draws[-1].min() - 1e-9) & (betas < 1.001)):
        raise ValueError(
            "`inverse_temperatures` must be within the ladder, from 1 down to "
            f"{draws[-1].min():.4g}, as 300 / kelvin, but got {inverse_temperatures}."
        )

    def moments(weights):
        mean = -weights @ draws[1]
        squares = weights * (draws[1] + mean[:, None]) ** 2
        return np.stack([mean, betas**2 * squares.sum(axis=1)])

    whole, left = _jackknife(moments, betas, *draws)
    names = "energies", "heat_capacities", "energy_errors", "heat_capacity_errors"
    return dict(zip(names, (*whole, *_error(left)), strict=True))


def _gather(samples: Any) -> tuple[np.ndarray, ...]:
    r"""Return points, their chains, log p and log b, and the ladder.

    As many are of each density $b^{1 - \beta_k} p^{\beta_k}$, weighted ones of b.
    """
    many = samples if isinstance(samples, list | tuple) else [samples]
    states: Any = [getattr(each, "state", None) for each in many]
    if states and all(hasattr(state, "replicas") for state in states):
        walkers = [state.replicas.walker for state in states]
        names = "point", "value", "reference_value"
        stack = lambda name: np.stack([np.asarray(getattr(w, name)) for w in walkers])
        ladder = lambda s: jax.tree.leaves((s.inverse_temperatures, s.reference))
        ladders = {tuple(np.asarray(x).tobytes() for x in ladder(s)) for s in states}
        if len(ladders) > 1 or any(state.step < state.num_adapt for state in states):
            raise ValueError(
                "`samples` need one ladder and reference throughout: give runs that "
                "began after the adaptation, each from the last one's `state`."
            )
        points, values, references = map(stack, names)  # (run, temperature, chain)
        betas = np.asarray(states[0].inverse_temperatures, float)
    else:
        last = lambda s: np.asarray(getattr(s, "particles", s))[None]
        kept = lambda s: getattr(s, "history", {}).get("particles", last(s))
        arrays = [np.asarray(kept(each)) for each in many]
        if not arrays or any(x.dtype.kind != "f" or x.ndim < 3 for x in arrays):
            raise ValueError("`samples` must be points, or the `Samples` of runs.")
        points, betas = np.concatenate(arrays)[:, None], np.zeros(1)
        if not points.size or not np.all(np.isfinite(points)):
            raise ValueError("`samples` must be points of finite numbers.")
        weights = getattr(samples, "weights", np.ones(points.shape[:3]))
        values = np.log(np.maximum(weights, 1e-300)).reshape(points.shape[:3])
        references = np.zeros(points.shape[:3])
    chains = np.broadcast_to(np.arange(points.shape[2]), points.shape[:3]).ravel()
    flat = lambda x: np.nan_to_num(x.ravel().astype(float), neginf=-1e30)
    points = points.reshape(-1, *points.shape[3:])
    return points, chains, flat(values), flat(references), betas


def _jackknife(
    statistic: Callable[[np.ndarray], np.ndarray], betas: np.ndarray,
    chains: np.ndarray, values: np.ndarray, references: np.ndarray, ladder: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    r"""Return a statistic of the weights at some $\beta$, and without each block.

    With $r_n = \log p(x_n) / b(x_n)$ the points are a sample of a mixture of density
    $b\, D_n$, so that the weight in $p^\beta$ is $p(x_n)^\beta / b(x_n) D_n$:

    $$D_n = \sum_k e^{f_k + \beta_k r_n}, \; e^{-f_k} = \sum_n e^{\beta_k r_n} / D_n.$$

    References:
        Shirts and Chodera (2008), Statistically optimal analysis of samples from
        multiple equilibrium states, equations 11 and 15.
    """
    num = int(chains.max()) + 1
    if num < 2:
        raise ValueError("`samples` need at least two chains, for the errors.")
    powers = (values - references)[:, None] * ladder
    full = lambda offsets: powers + np.append(0, offsets)

    def weigh(used, start):
        def convex(offsets):  # least where the equations hold, with its gradient
            terms = full(offsets)[used]
            value = np.mean(logsumexp(terms, axis=1)) - np.mean(np.append(0, offsets))
            return value, np.mean(softmax(terms, axis=1), axis=0)[1:] - 1 / len(ladder)

        if len(ladder) > 1:
            start = minimize(convex, start, jac=True, options={"gtol": 1e-8}).x
        logs = np.outer(betas, values) - references - logsumexp(full(start), axis=1)
        return statistic(softmax(np.where(used, logs, -np.inf), axis=1)), start

    blocks = chains * min(num, _BLOCKS) // num
    start = np.cumsum(-np.median(np.diff(powers, axis=1), axis=0))
    whole, start = weigh(blocks >= 0, start)
    left = [weigh(blocks != block, start)[0] for block in range(blocks.max() + 1)]
    return whole, np.stack(left)


def _error(replicates: np.ndarray) -> Any:
    """Return the jackknife's standard error, of values without each block."""
    return np.sqrt((len(replicates) - 1) * np.var(replicates, axis=0))
