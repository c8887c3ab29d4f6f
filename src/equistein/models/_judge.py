"""What a fit of a user's data is judged by: numbers, samples, pictures."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array

from equistein._gate import gate
from equistein._numbers import check_integers
from equistein._types import Key, Particles, Scalar
from equistein.diffusion import AbstractNoiseEnergy, denoising_loss, MixtureNoiseEnergy
from equistein.energies import AbstractEnergies, AbstractEnergy
from equistein.features import Coordinates
from equistein.metrics import (
    accuracy,
    annealed_importance_sampling,
    auroc,
    bits_per_dimension,
    energy_distance,
    expected_calibration_error,
    outlier_scores,
    wasserstein_1d,
)
from equistein.models._dataset import Dataset
from equistein.models._energies import features_of, values_at
from equistein.models._molecules import report_molecules
from equistein.molecules import BOLTZMANN
from equistein.runs import FLOOR, Outcome, seed_outcome, WARNING
from equistein.samplers import collect_warnings, warn_of_samples
from equistein.training import Box, Fitted

_KNOWN = 5_000  # molecules of the data that new ones are compared with
_COMPARED = 5_000  # training frames that set the constant of the energies
_SHOWN_CLASSES = 4
_SHOWN_COLUMNS = 12
_SAMPLES_OF_CLASS = 128
_DENOISED = 512  # points to judge denoising by
_STEPS_OF_IMAGES = 100  # temperatures, at most
_NUM_CHAINS = 16
_MOST_JUDGED = 256  # images


@gate
def judge(
    key: Key,
    fitted: Fitted,
    dataset: Dataset,
    *,
    num_samples: int = 512,
    ais_steps: int = 1_000,
    progress: bool = False,
) -> tuple[dict[str, Outcome], dict[str, Any]]:
    """Draw samples of a learned density, and compare them with its data.

    Annealed importance sampling of log Z has `ais_steps` temperatures.

    Returns:
        The outcomes of the `model`, its samples, and of the floor, one half of the
        data; both are compared with the other half. And figures by name.
    """
    from equistein.models._figures import figures  # matplotlib is not always needed

    sample_key, metrics_key, class_key, split_key, turn_key = jr.split(key, 5)
    with collect_warnings() as reasons:
        samples = fitted.sample(sample_key, num_samples, progress=progress)
    for text in reasons:
        warn_of_samples(text)
    warned = [{"event": WARNING, "text": text} for text in reasons]
    data = jax.vmap(fitted.group.project)(dataset.points)
    feature_map = _feature_map(turn_key, fitted)
    split, half = jr.permutation(split_key, len(data)), len(data) // 2
    first, others = (data[split[:half]], data[split[half:]]) if half else (data, data)
    # The same numbers of points on both sides, so that the rows can be compared.
    num = min(len(first), len(samples))
    numbers, floor = (
        _compared(fitted.energy, feature_map, points[:num], others)
        for points in (samples, first)
    )
    numbers |= _held_out_metrics(metrics_key, fitted, dataset, ais_steps)
    numbers |= force_errors(fitted.energy, dataset)
    shown, panels = {"data": np.asarray(data), "samples": np.asarray(samples)}, {}
    features = {"data": feature_map(data), "samples": feature_map(samples)}
    if dataset.species is not None:
        more, least, panels = report_molecules(
            dataset.species, shown["data"][:_KNOWN], shown["samples"]
        )
        numbers, floor = numbers | more, floor | least
    for i, name in enumerate((dataset.columns or ())[:_SHOWN_COLUMNS]):
        panels[name] = {k: x.reshape(len(x), -1)[:, i] for k, x in shown.items()}
    events = [*fitted.events, *warned]
    model = seed_outcome(numbers, samples, history=fitted.history, events=events)
    shown |= _of_classes(class_key, fitted, dataset, num_samples)
    pictures = figures(
        fitted.group, model.history, features, shown, panels, dataset.species
    )
    outcomes = {"model": model, FLOOR: seed_outcome(floor, first[:num])}
    return outcomes, pictures


def _feature_map(key: Key, fitted: Fitted) -> Callable[[Particles], Array]:
    """Return what describes points: their invariant features.

    Coordinates tell orientations apart, so each point is moved at random before.
    """
    features, group = features_of(fitted.energy), fitted.group
    feature_map = jax.jit(jax.vmap(features))
    if not isinstance(features, Coordinates):
        return feature_map

    def of_moved(points):
        elements = group.sample(key, len(points))
        return feature_map(jax.vmap(group.act)(elements, points))

    return of_moved


def _compared(
    energy: AbstractEnergies, feature_map: Callable, points: Any, others: Any
) -> dict[str, Any]:
    """Return how far points are from others, in their invariant features."""
    mine, theirs = feature_map(points), feature_map(others)
    gaps = [wasserstein_1d(a, b) for a, b in zip(mine.T, theirs.T, strict=True)]
    return {
        "energy_distance_of_features": energy_distance(mine, theirs),
        "w1_of_a_feature": np.mean(np.array(gaps)),
        "median_model_energy": jnp.median(values_at(energy, points)),
    }


def _of_classes(
    key: Key, fitted: Fitted, dataset: Dataset, num_samples: int
) -> dict[str, np.ndarray]:
    """Return samples of each class, of the first few."""
    found, num = {}, min(num_samples, _SAMPLES_OF_CLASS)
    for label in range(min(dataset.num_classes or 0, _SHOWN_CLASSES)):
        drawn = fitted.sample(jr.fold_in(key, label), num, label=label)
        name = dataset.classes[label] if dataset.classes else f"class {label}"
        found[name] = np.asarray(drawn)
    return found


def _held_out_metrics(
    key: Key, fitted: Fitted, dataset: Dataset, num_steps: int
) -> dict[str, Any]:
    """Return how good a learned density is on data that was held out.

    An energy of all noise levels is judged by the loss that it was trained with, and
    one of images with pixels from 0 to 1 by their bits too; any other by likelihood.
    """
    energy, held_out = fitted.energy, dataset.held_out()
    assert isinstance(energy, AbstractEnergy)
    numbers: dict[str, Any] = {"rollbacks": len(fitted.events)}
    if isinstance(energy, AbstractNoiseEnergy):
        for name, part in (("train", dataset.train()), ("held_out", held_out)):
            if len(part.points):
                loss = _denoising_loss(key, energy, part.points)
                numbers[f"{name}_denoising_loss"] = loss
        images = held_out.points
        if isinstance(energy, MixtureNoiseEnergy) and len(images) > 1:
            if jnp.min(images) >= 0 and jnp.max(images) <= 1:
                steps = min(num_steps, _STEPS_OF_IMAGES)
                bits_key = jr.fold_in(key, 1)
                numbers |= image_bits(bits_key, energy, images, num_steps=steps)
    else:
        numbers |= _likelihood(key, energy, fitted, dataset, num_steps)
    return numbers | _classification(energy, held_out)


def _likelihood(
    key: Key, energy: AbstractEnergy, fitted: Fitted, dataset: Dataset, num_steps: int
) -> dict[str, Any]:
    """Return log-likelihoods and AUROC.

    The error adds two standard errors of the mean over the points to the bound of the
    error of log Z, which is found by annealing both ways.
    """
    normalizer_key, box_key = jr.split(key)
    train, held_out = dataset.train().points, dataset.held_out().points
    # Chains that go back from the data bound log Z from above.
    normalizer = fitted.log_normalizer(
        normalizer_key, num_particles=256, num_steps=num_steps, samples=train
    )
    numbers: dict[str, Any] = {
        "log_normalizer": normalizer.value,
        "log_normalizer_error": normalizer.error,
        "ais_effective_sample_size": normalizer.effective_sample_size,
        "train_log_likelihood": jnp.mean(fitted.log_likelihood(train, normalizer)),
    }
    if len(held_out):
        points = jax.vmap(fitted.group.project)(held_out)
        values = fitted.log_likelihood(points, normalizer)
        numbers["held_out_log_likelihood"] = jnp.mean(values)
        spread = 2 * jnp.std(values) / len(values) ** 0.5
        numbers["held_out_log_likelihood_error"] = normalizer.error + spread
        box = Box(train, fitted.group).sample(box_key, 1_000)
        inside, outside = (outlier_scores(energy, x) for x in (points, box))
        for name, values in inside.items():
            numbers[f"auroc_by_{name}"] = auroc(values, outside[name])
    return numbers


@gate
def image_bits(
    key: Key, energy: MixtureNoiseEnergy, images: Particles, *, num_steps: int = 100
) -> dict[str, Scalar]:
    r"""Return the bits a pixel of images with the least noise $\sigma$.

    $$b = \log_2 256 + \frac{\hat E\,[E_\sigma(x + \sigma \xi)] + \log Z}{d \log 2}$$

    for pixels from 0 to 1. $\log Z$ is found by annealing from the normal distributions
    of the energy, where it is 0, and back from the images: the mean of both ways.

    At least two images that were held out are judged, the first 256, with `num_steps`
    temperatures each way.

    Returns:
        `bits_per_dimension`; `bits_per_dimension_gap`, half of what is between the two
        ways, which vanishes as the annealing slows down; and
        `bits_per_dimension_of_normals`, those of the normal distributions alone.

    References:
        Grosse, Ancha and Roy (2016), Measuring the reliability of MCMC inference;
        Theis, van den Oord and Bethge (2016), A note on the evaluation of generative
        models, section 3.1.
    """
    check_integers("`image_bits`", num_steps=num_steps)
    noise_key, anneal_key = jr.split(key)
    points = jnp.asarray(images)[:_MOST_JUDGED]
    points = points + energy.sigma_min * jr.normal(
        noise_key, points.shape, points.dtype
    )
    normals, shape = energy.normals.at(energy.sigma_min), points.shape[1:]
    found = annealed_importance_sampling(
        anneal_key, energy.log_density, normals, samples=points,
        num_particles=_NUM_CHAINS, num_steps=num_steps,
    )  # fmt: skip

    def bits(density: Any, log_normalizer: Any) -> Scalar:
        mean = jnp.mean(values_at(density, points))
        return bits_per_dimension(mean - log_normalizer, shape)

    between = jnp.abs(found.upper - found.lower) / 2
    return {
        "bits_per_dimension": bits(energy.log_density, found.value),
        "bits_per_dimension_gap": between / (points[0].size * np.log(2)),
        "bits_per_dimension_of_normals": bits(normals.log_density, 0.0),
    }


def _classification(energy: AbstractEnergy, held_out: Dataset) -> dict[str, Any]:
    """Return accuracy and calibration on held-out points whose class is known."""
    labels = held_out.labels
    if labels is None or energy.num_classes(held_out.points.shape[1:]) is None:
        return {}
    known = labels >= 0
    if not known.any():
        return {}
    logits = values_at(energy.evaluate, held_out.points[known]).logits
    right = jnp.asarray(labels[known])
    return {
        "held_out_accuracy": accuracy(logits, right),
        "calibration_error": expected_calibration_error(logits, right),
        "num_held_out_labels": known.sum(),
    }


def _denoising_loss(key: Key, energy: AbstractNoiseEnergy, points: Particles) -> Array:
    """Return the loss of denoising, of each point several times if there are few."""
    repeats = -(-_DENOISED // len(points))
    some = jnp.concatenate([jax.vmap(energy.project)(points)] * repeats)
    order_key, level_key, noise_key = jr.split(key, 3)
    some = jr.permutation(order_key, some)[:_DENOISED]
    noise = energy.random_levels(level_key, len(some))
    return denoising_loss(noise_key, energy, some, noise)


def force_errors(energy: AbstractEnergies, dataset: Dataset) -> dict[str, float]:
    """Return how far energies and forces of held-out frames are from the file's.

    The mean absolute error of a component of the forces in eV / Angstrom, beside what
    zero forces would have, and that of the energies in meV an atom, once the mean gap
    in training frames is taken off, which a density does not determine. Empty without
    a temperature.
    """
    found, held_out = {}, dataset.held_out()
    if dataset.kelvin is None or not isinstance(energy, AbstractEnergy):
        return found
    unit = BOLTZMANN * dataset.kelvin
    if held_out.forces is not None:
        known = np.isfinite(held_out.forces).all(axis=(1, 2))
        if known.any():
            forces = held_out.forces[known]
            learned = values_at(jax.grad(energy.log_density), held_out.points[known])
            gaps = unit * np.asarray(learned) - forces
            found["held_out_force_error"] = float(np.abs(gaps).mean())
            found["held_out_force_error_of_zero"] = float(np.abs(forces).mean())

    def gaps_of(part: Dataset) -> np.ndarray:
        """Return how far energies are from those known, in eV."""
        assert part.energies is not None
        rows = np.flatnonzero(np.isfinite(part.energies))[:_COMPARED]
        if not len(rows):
            return np.zeros(0)
        learned = np.asarray(values_at(energy, part.points[rows]))
        return unit * learned - part.energies[rows]

    if held_out.energies is not None:
        before, after = gaps_of(dataset.train()), gaps_of(held_out)
        if len(before) and len(after):
            error = np.abs(after - before.mean()).mean() / dataset.points.shape[1]
            found["held_out_energy_error"] = 1_000 * float(error)
    return found
