"""Fit an energy that is linear in features, by one solve."""

import dataclasses
import functools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.sharding import Mesh

from equistein._arrays import as_keys
from equistein._numbers import check_positive
from equistein._progress import progress_bar
from equistein._sharding import check_mesh
from equistein._types import AnyKey
from equistein.energies import LinearEnergy, solve_linear
from equistein.samplers import AnnealedSMC, MALA, Normal
from equistein.training._fitted import Fitted
from equistein.training._generators import SamplingGenerator
from equistein.training._initial import Box
from equistein.training._linear_data import LinearData

_LARGE = 0.5  # kT, of the standard error of an energy
_FAR = 20.0  # standard deviations of the reference, where no point of the data is
_NAMED = 3  # features


def fit_linear(
    key: AnyKey,
    energy: LinearEnergy,
    data: Any,
    *,
    forces: Any = None,
    labels: Any = None,
    weights: Any = None,
    noise: float | None = None,
    ridge: float | None = None,
    held_out: float = 0.1,
    mesh: Mesh | None = None,
    progress: bool = True,
) -> Fitted:
    r"""Fit a linear energy to data by one solve.

    The score matching objective of $E_0 + c \cdot F$ is quadratic in c,

    $$\left\langle \tfrac12 |\nabla E|^2 - \Delta E \right\rangle = \tfrac12 c^\top A c
      - b \cdot c + \text{const}, \quad A = \langle J J^\top \rangle, \quad
      b = \langle \Delta F - J \nabla E_0 \rangle,$$

    with J the Jacobian of F. Forces $f = -\nabla U / kT$ add $|\nabla E + f|^2$, with
    the same matrix; the weight of each is the inverse of its scatter.

    Args:
        key: The source of randomness: of the folds, and of the noise.
        energy: The features, and the known part.
        data: The points, stacked on axis 0, also on disk; or a list of such arrays, or
            another iterable of them that can be iterated several times. Then forces,
            labels and weights are lists too.
        forces: Of each point, in kT over the unit of length, NaN where unknown.
        labels: The class of each point, from 0 on; each has its own coefficients.
        weights: The weight of each point; by default 1.
        noise: Blur the data by noise of this standard deviation, and fit by denoising:
            for data that are rounded, or lie on a subspace.
        ridge: The ridge, over the diagonal; None is the best one for points held out.
        held_out: The fraction of a fold; each is held out in turn, or one of them with
            more than 500 features. In the end all points are used.
        mesh: The devices that share the rows.
        progress: Whether to show a progress bar.

    References:
        Hyvärinen (2005), Estimation of non-normalized statistical models by score
        matching; Vincent (2011) for denoising.
    """
    key = as_keys(key)
    if not isinstance(energy, LinearEnergy):
        raise ValueError(
            f"`fit_linear` needs `energy`, a LinearEnergy, but got {energy!r}."
        )
    given = {n: v for n, v in {"noise": noise, "ridge": ridge}.items() if v is not None}
    check_positive("`fit_linear`", **given)  # type: ignore[arg-type]
    if not 0 <= held_out <= 0.5:
        raise ValueError(f"`held_out` must be from 0 to .5, but got {held_out!r}.")
    if noise is not None and forces is not None:
        raise ValueError("`fit_linear` takes `forces` or `noise`, but not both.")
    num_folds = min(round(1 / held_out), 100) if held_out else 1
    source = LinearData(energy.group, data, noise, num_folds, key)
    source.add(forces=forces, weights=weights, labels=labels)
    some = jnp.asarray(source.some, float)
    group = energy.group(some.shape[1:])
    box, spread = Box(some, group), float(np.std(source.some))
    reference = Normal(box.center, 1.5 * spread, group)
    chains = MALA(1e-3 * spread**2, project=group.project)
    sampler = AnnealedSMC(chains, reference=reference, num_runs=1, num_moves=5)
    options = {"num_steps": 2_000, "num_at_once": 1_024, "num_at_least": 256}
    generator = SamplingGenerator(sampler, box, **options)
    fitted = Fitted(energy, {}, [], generator, reference, noise=noise)
    mesh = None if mesh is None else check_mesh("fit_linear", mesh)
    return _solved(fitted, source, ridge=ridge, mesh=mesh, progress=progress)


def update(fitted: Fitted, more: Any, **known: Any) -> Fitted:
    """Return the fit of the data so far and more."""
    first = (*fitted.solutions, None)[0]
    if len(fitted.solutions) != 1 or first is None:
        raise ValueError("Only a fit by `fit_linear`, without classes, is updated.")
    if known["forces"] is not None and not (first.shares[1] and not fitted.noise):
        raise ValueError("`forces` need a first fit that had some: fit all together.")
    ridge, num = known.pop("ridge"), sum(int(fold.count) for fold in first.folds)
    group, num_folds = fitted.energy.group, len(first.folds)
    source = LinearData(group, more, fitted.noise, num_folds, jr.key(num))
    source.add(**known)
    return _solved(fitted, source, ridge=ridge)


def check_escape(fitted: Fitted, points: Any, label: Any) -> None:
    """Raise `ValueError`, with the features to blame, if points left the data."""
    energy: Any = fitted.energy
    reference = fitted.reference
    gaps = np.nan_to_num(np.asarray(points, np.float64) - np.asarray(reference.center))
    lengths = np.abs(gaps).reshape(len(gaps), -1).max(axis=1)
    far, limit = lengths > _FAR * reference.scale, _FAR * float(reference.scale)
    if not far.any():
        return
    features = energy.features
    coefficients = np.atleast_2d(energy.coefficients)[label or 0]
    ways = (limit * gaps[far].T / lengths[far]).T
    slope = lambda x, way: jax.jvp(features, (x,), (way,))[1]
    ways = jnp.asarray(ways, reference.center.dtype)
    slopes = jax.lax.map(lambda way: slope(reference.center + way, way), ways)
    terms = coefficients * np.mean(np.asarray(slopes), axis=0)
    worst = [i for i in np.argsort(terms)[:_NAMED].tolist() if terms[i] < 0]
    named = ", ".join(
        f"{_name(features, i, points.shape[1:])} ({coefficients[i]:.3g})" for i in worst
    )
    raise ValueError(
        f"The learned energy is not normalizable: {far.sum()} of {len(far)} chains ran "
        f"away, up to {lengths.max() / float(reference.scale):.2g} times as far as the "
        "data are wide. What falls most on the way, with its coefficient: "
        f"{named or 'no feature, all end'}. Leave it out, or give the LinearEnergy a "
        "`base` that holds points, such as a fit of Quadratic or a wall."
    )


def _name(features: Any, index: int, shape: tuple[int, ...]) -> str:
    for part in getattr(features, "parts", ()):
        if index < part.size(shape):
            return _name(part, index, shape)
        index -= part.size(shape)
    return f"number {index} of {type(features).__name__}"


def _solved(
    fitted: Fitted, source: LinearData, *, progress: bool = False, **options: Any
) -> Fitted:
    """Return a fit with the data of a source added to what it has."""
    energy: Any = fitted.energy  # a linear one
    shares = (0.0, 1.0) if fitted.noise else None
    features = energy.features.in_double(source.some)
    before = fitted.solutions or (None,) * (source.num_classes or 1)
    solutions = []
    for label, earlier in enumerate(progress_bar(before, disable=not progress)):
        blocks = functools.partial(source.rows, label if source.num_classes else None)
        solutions.append(
            solve_linear(energy, blocks, shares=shares, before=earlier, **options)
        )
        error = np.median(solutions[-1].errors(features - features.mean(axis=0)))
        if error > _LARGE:
            text = f"The standard error of a typical point's energy is {error:.2g} kT"
            warnings.warn(f"{text}: give more points, or fewer features.", stacklevel=3)
    rows = np.array([each.coefficients for each in solutions])
    biases = source.biases(energy.features, rows)
    energy = energy.with_coefficients(rows[0] if biases is None else rows, biases)
    return dataclasses.replace(fitted, energy=energy, solutions=tuple(solutions))
