"""From one solve towards the likelihood of the torsions that data have."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.transform import Rotation
from scipy.special import expit

from equistein._arrays import check_particles
from equistein._check_arguments import accept_integer_key
from equistein._types import AnyKey
from equistein.energies import values_at
from equistein.groups import Molecule
from equistein.samplers import HMC, ParallelTempering
from equistein.training import DataPoints, Fitted, SamplingGenerator

_MOST_PAIRS, _MOST_NUMBERS = 50_000, 50_000_000  # the latter: times features
_ROTATED = 2.0  # bonds of a copy, on average
_CAP = 50.0  # kT: larger gaps, with those of their features, are scaled down to it
_UNSURE = 10.0  # times the solve's errors, which do not know its features' bias
_TEMPERATURES, _HOTTEST = 8, 4.0  # times that of the data, where torsions change
_STARTS, _LEAPFROGS, _EVERY, _AT_ONCE = 1_000, 16, 5, 8_192


@accept_integer_key
def match_torsions(
    key: AnyKey, fitted: Fitted, data: Any, molecule: Molecule
) -> Fitted:
    r"""Return a fit by `fit_linear`, moved towards the likelihood of its torsions.

    The solve sees slopes alone, and nothing of torsions that no data have. A copy y of
    a point x is rotated about random bonds by random angles, which keeps volume. So
    which of both is of the data depends on the density alone, and without $\log Z$:

    $$\max_c \; n \langle \log \sigma(E(y) - E(x)) \rangle
      - \tfrac12 (c - c_0)^\top (100 \Sigma)^{-1} (c - c_0),$$

    for n points, with the solve's $c_0$ and covariance $\Sigma$, which knows no bias of
    features that are too few. Samples are of tempering then, up to four times the
    temperature, which starts at points of the data. The fit stays if the `molecule` has
    no rotatable bond.

    References:
        Ceylan and Gutmann (2018), Conditional noise-contrastive estimation of
        unnormalised models.
    """
    if len(fitted.solutions) != 1:
        raise ValueError("`match_torsions` needs a fit by `fit_linear`, no classes.")
    check_particles(data, "data")
    molecule.check_shape(data.shape[1:])
    if not (bonds := _rotatable_bonds(molecule)):
        return fitted
    energy: Any = fitted.energy  # a linear one
    first = fitted.solutions[0]
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    most = min(_MOST_PAIRS, _MOST_NUMBERS // len(first.coefficients))
    rows = rng.permutation(len(data))[: max(1, most // 4)]
    points = np.asarray(data[rows], float)
    points += (fitted.noise or 0) * rng.normal(size=points.shape)
    num_copies = max(1, most // len(points))
    copies = _rotated(rng, np.repeat(points, num_copies, axis=0), bonds)
    change = lambda f: np.asarray(f(copies)) - np.repeat(f(points), num_copies, axis=0)
    features = change(energy.features.in_double)
    offsets = features @ first.coefficients
    if energy.base is not None:
        with jax.enable_x64(True):
            offsets += change(jax.jit(lambda x: values_at(energy.base, x)))
    scales = _CAP / np.maximum(abs(offsets), _CAP)
    parts = features * scales[:, None], offsets * scales
    covariance = first.covariance
    while True:
        found = _regression(first, covariance, parts, len(data))
        worse = energy.features.unbounded(found.coefficients, points.shape[1:])
        worse &= np.diag(covariance) > 0
        if not worse.any():
            break
        covariance = covariance * np.outer(~worse, ~worse)  # held from now on
    energy = energy.with_coefficients(found.coefficients)
    chains = HMC(num_leapfrogs=_LEAPFROGS, project=fitted.group.project)
    generator = SamplingGenerator(
        ParallelTempering(chains, np.geomspace(1, 1 / _HOTTEST, _TEMPERATURES)),
        DataPoints(jnp.asarray(points[:_STARTS], float), fitted.group), every=_EVERY,
        num_steps=fitted.generator.num_steps, num_at_once=_AT_ONCE,  # type: ignore
    )  # fmt: skip
    return dataclasses.replace(
        fitted, energy=energy, solutions=(found,), generator=generator
    )


def _rotatable_bonds(molecule: Molecule) -> list[tuple[int, int, np.ndarray]]:
    """Return bonds that are in no ring, and which atoms are beyond their second."""
    num, found = len(molecule.atomic_numbers), []
    for j, k in molecule.bonds:
        others = np.array([bond for bond in molecule.bonds if bond != (j, k)], int)
        ends = tuple(others.reshape(-1, 2).T)
        graph = coo_array((np.ones(len(others)), ends), (num, num))
        parts = connected_components(graph, directed=False)[1]
        if parts[j] != parts[k] and min(np.bincount(parts)[parts[[j, k]]]) > 1:
            found.append((j, k, parts == parts[k]))
    return found


def _rotated(rng: Any, points: np.ndarray, bonds: Any) -> np.ndarray:
    """Return points that are rotated about random bonds by random angles."""
    points = points.copy()
    for j, k, moves in bonds:
        axes = points[:, k] - points[:, j]
        axes /= np.linalg.norm(axes, axis=1, keepdims=True)
        angles = rng.uniform(-np.pi, np.pi, len(points))
        angles *= rng.random(len(points)) < _ROTATED / len(bonds)
        turns = Rotation.from_rotvec(angles[:, None] * axes).as_matrix()
        ends = points[:, None, k]
        points[:, moves] = ends + (points[:, moves] - ends) @ turns.swapaxes(1, 2)
    return points


def _regression(first: Any, covariance: np.ndarray, parts: Any, num: int) -> Any:
    """Return the solution where the likelihood of pairs, worth `num`, is largest."""
    features, offsets = parts
    values, vectors = np.linalg.eigh(covariance)
    roots = vectors * np.sqrt(np.maximum(values, 0))
    design, weight = features @ roots, num / len(features)
    coarse = design.astype(np.float32)
    gaps = lambda z: offsets + design @ z

    def hessian(z: np.ndarray, prior: float = _UNSURE**-2) -> np.ndarray:
        chances = expit(gaps(z))
        curvatures = (weight * chances * (1 - chances)).astype(np.float32)
        return (coarse.T * curvatures) @ coarse + prior * np.eye(len(z))

    moved = minimize(
        lambda z: weight * np.sum(np.logaddexp(0, -gaps(z))) + z @ z / 2 / _UNSURE**2,
        np.zeros(len(roots)), hess=hessian, method="trust-exact",
        jac=lambda z: z / _UNSURE**2 - weight * expit(-gaps(z)) @ design,
        options={"gtol": 1e-3 * num**0.5, "initial_trust_radius": 10 * _UNSURE},
    ).x  # fmt: skip
    return dataclasses.replace(
        first, coefficients=first.coefficients + roots @ moved,
        covariance=roots @ np.linalg.inv(hessian(moved, 1.0)) @ roots.T,
    )  # fmt: skip
