"""From one solve towards maximum likelihood: samples get the data's mean features."""

import dataclasses
from typing import Any

import jax.random as jr
import numpy as np
from scipy.special import softmax

from equistein.energies import LinearSolution
from equistein.training._fit_linear import LinearData
from equistein.training._fitted import Fitted

_SURE = 0.1  # kT, of the standard error of an energy
_LEAST = 0.3  # effective share of reweighted samples, and of reweighted data
_ROUNDS, _STEPS = 5, 20


def match_moments(
    fitted: Fitted, key: Any, data: Any, weights: Any, num_samples: int
) -> Fitted:
    """Return a fit of larger likelihood, as `Fitted.match_moments` does."""
    energy: Any = fitted.energy  # a linear one
    source = LinearData(energy.group, data, fitted.noise, 1, key)
    source.add(weights=weights)
    total, mean = 0.0, 0.0
    for _, rows in source.rows(None):
        total += np.sum(rows.weights)
        mean += rows.weights @ energy.features.in_double(rows.points)
    first = found = fitted.solutions[0]
    num = 1 / (1 / sum(fold.count for fold in first.folds) + 1 / num_samples)
    # Samples may lack a region: the effective share of data limits steps as well.
    known = energy.features.in_double(source.some) - mean / total
    if np.median(first.errors(known)) < _SURE:
        return fitted
    for number in range(_ROUNDS):
        points = fitted.sample(jr.fold_in(key, number), num_samples)
        gaps = energy.features.in_double(points) - mean / total
        covariance, shape = first.covariance, points.shape[1:]
        while True:
            stepped, is_whole = _stepped(first, found, (gaps, known), covariance, num)
            worse = energy.features.unbounded(stepped.coefficients, shape)
            worse &= np.diag(covariance) > 0
            if not worse.any():
                break
            covariance = covariance * np.outer(~worse, ~worse)  # held from now on
        found, energy = stepped, energy.with_coefficients(stepped.coefficients)
        fitted = dataclasses.replace(fitted, energy=energy, solutions=(found,))
        if is_whole:
            break
    return fitted


def _stepped(
    first: LinearSolution, before: LinearSolution, gaps: Any, covariance: Any, num: Any
) -> tuple[LinearSolution, bool]:
    """Return the solution after Newton's steps, and whether the last one was whole."""
    values, vectors = np.linalg.eigh(covariance)
    roots = vectors * np.sqrt(np.maximum(values, 0))
    begin = np.linalg.lstsq(roots, before.coefficients - first.coefficients)[0]
    along = [each @ roots for each in gaps]
    share = lambda z: min(
        1 / np.sum(softmax(-each @ z) ** 2) / len(each) for each in along
    )
    moved, hessian, is_whole = np.zeros(len(roots)), np.eye(len(roots)), False
    for _ in range(_STEPS):
        weights = softmax(-along[0] @ moved)
        center = weights @ along[0]
        hessian = (along[0].T * weights) @ along[0] - np.outer(center, center)
        hessian += np.eye(len(roots)) / num
        step, is_whole = np.linalg.solve(hessian, center - (begin + moved) / num), True
        while share(moved + step) < _LEAST:
            step, is_whole = step / 2, False
        moved = moved + step
    return dataclasses.replace(
        first, coefficients=before.coefficients + roots @ moved,
        covariance=roots @ np.linalg.inv(num * hessian) @ roots.T,
    ), is_whole  # fmt: skip
