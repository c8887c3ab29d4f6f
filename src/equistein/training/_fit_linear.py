"""Fit an energy that is linear in features, by one solve over blocks of data."""

import dataclasses
import functools
import warnings
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.sharding import Mesh

from equistein._arrays import as_keys, check_particles
from equistein._numbers import check_positive
from equistein._progress import progress_bar
from equistein._sharding import check_mesh
from equistein._types import AnyKey
from equistein.energies import count_classes, LinearEnergy, Rows, solve_linear
from equistein.samplers import AnnealedSMC, HMC, MALA, Normal
from equistein.training._fitted import Fitted
from equistein.training._generators import SamplingGenerator
from equistein.training._initial import Box

_LARGE = 0.5  # kT, of the standard error of an energy
_FAR = 20.0  # standard deviations of the reference, where no point of the data is
_NAMED = 3  # features
_SETTLED = 250  # steps in which a liquid forgets its start
_EVERY = 50  # steps in which it forgets a sample
_BLOCK = 8_192  # points that are read together
_COPIES = 8  # of each point, with other noise
_SOME = 1_000
_ROUNDS = 500  # of the biases


class LinearData:
    """The rows of a fit, a block at a time, as often as they are asked for."""

    def __init__(self, group: Any, data: Any, noise: Any, num_folds: int, key: Any):
        self._group, self._noise, self._num_folds = group, noise, num_folds
        self._seed = np.asarray(jr.key_data(as_keys(key))).ravel().tolist()
        self._is_array = hasattr(data, "__array__")
        self._parts: dict[str, Any] = {}
        self.add(data=data)
        first = next(iter(self._parts["data"]), np.zeros(0))
        self.some = self._checked(first[:: max(1, len(first) // _SOME)])
        self.num_classes = None

    def add(self, **parts: Any) -> None:
        """Add what is known of each point."""
        for name, part in parts.items():
            if part is not None and self._is_array:
                part = part if isinstance(part, np.memmap) else np.asarray(part)
                part = [part[i : i + _BLOCK] for i in range(0, len(part), _BLOCK)]
            elif part is not None and iter(part) is part:
                raise ValueError(f"`{name}` are read several times: give a list.")
            if part is not None:
                self._parts[name] = part
        if parts.get("labels") is not None:
            blocks = [*map(np.asarray, self._parts["labels"])]
            self.num_classes = count_classes(np.concatenate(blocks))

    def _checked(self, points: Any) -> np.ndarray:
        """Return finite points in double precision, on the group's subspace."""
        points = np.asarray(points, np.float64)
        check_particles(points, "data")
        return self._projected(points)

    def _projected(self, rows: Any) -> np.ndarray:
        with jax.enable_x64(True):
            rows = np.asarray(rows, np.float64)
            return np.asarray(self._group(rows.shape[1:]).project_points(rows))

    def rows(self, label: int | None) -> Iterator[tuple[int, Rows]]:
        """Yield the rows of a class, or all, each with its fold."""
        drawn, begin = np.random.default_rng(self._seed), 0
        for parts in zip(*self._parts.values(), strict=True):
            known = dict(zip(self._parts, map(np.asarray, parts), strict=True))
            points, forces = self._checked(known["data"]), known.get("forces")
            weights = known.get("weights", np.ones(len(points))).astype(float)
            shapes = {name: part.shape for name, part in known.items()}
            good = (weights >= 0) & np.isfinite(weights)
            if (
                len({shape[0] for shape in shapes.values()} | {weights.size}) > 1
                or (forces is not None and forces.shape != points.shape)
                or not good.all()
            ):
                raise ValueError(
                    "`fit_linear` needs a label and a weight from 0 on for each point, "
                    f"finite, and forces like the points, but got shapes {shapes}."
                )
            forces = None if forces is None else self._projected(forces)
            rows = Rows(points, forces, weights)
            folds = (drawn.permutation(len(points)) + begin) % self._num_folds
            begin += len(points)
            for fold in range(self._num_folds):
                chosen = folds == fold
                if label is not None:
                    chosen &= known["labels"] == label
                if chosen.any():
                    part = rows[chosen]
                    yield fold, part if not self._noise else self._blurred(drawn, part)

    def biases(self, features: Any, rows: np.ndarray) -> np.ndarray | None:
        """Return b, by which softmax(b - c F) fits labels best; None without them."""
        if self.num_classes is None:
            return None
        columns: list[Any] = []
        for label in range(len(rows)):
            for _, part in self.rows(label):
                energies = features.in_double(part.points) @ rows.T
                columns.append((energies, part.weights, np.full(len(part), label)))
        values, weights, labels = map(np.concatenate, zip(*columns, strict=True))
        counts = np.bincount(labels, weights)
        own = np.bincount(labels, weights * values[np.arange(len(labels)), labels])
        biases = np.log(counts) + own / counts
        for _ in range(_ROUNDS):
            logits = biases - values
            shares = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
            expected = np.logaddexp.reduce(shares + np.log(weights)[:, None], axis=0)
            biases += np.log(counts) - expected
        return biases

    def _blurred(self, drawn: np.random.Generator, rows: Rows) -> Rows:
        """Return copies of rows with noise, and the scores of the noise as forces."""
        noise = drawn.normal(size=(len(rows), _COPIES // 2, *rows.points.shape[1:]))
        noise = np.concatenate([noise, -noise], axis=1)
        noise = self._checked(noise.reshape(-1, *rows.points.shape[1:]))
        points = np.repeat(rows.points, _COPIES, axis=0) + self._noise * noise
        weights = np.repeat(rows.weights / _COPIES, _COPIES)
        return Rows(points, -noise / self._noise, weights, _COPIES)


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
    if group.is_periodic:  # a liquid forgets its start by itself
        sampler: Any = HMC(1e-3 * spread, num_leapfrogs=8, num_adapt=_SETTLED)
        options = {"num_steps": 2 * _SETTLED, "every": _EVERY}
    else:
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
    ridge, counts = known.pop("ridge"), [float(fold.count) for fold in first.folds]
    num, group = int(sum(counts)), fitted.energy.group
    num_folds = round(num / counts[0])  # some of them may be one by now
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
