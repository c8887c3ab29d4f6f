"""What a fit of a user's data is judged by: numbers, samples, pictures, a report."""

import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array

from equistein._check_arguments import check_arguments
from equistein._types import Key, Particles, Point, Scalar
from equistein.data import Dataset
from equistein.diffusion import (
    AbstractNoiseEnergy,
    image_bits,
    MixtureNoiseEnergy,
    NoiseEnergy,
    repeated_denoising_loss,
)
from equistein.energies import AbstractEnergy, values_at
from equistein.features import Coordinates
from equistein.groups import AbstractGroup, PeriodicCloud
from equistein.metrics import (
    accuracy,
    compare_molecules,
    energy_distance,
    expected_calibration_error,
    force_errors,
)
from equistein.models._contrastive import features_of
from equistein.molecules import BOLTZMANN, check_thermal
from equistein.runs import (
    FLOOR,
    Metric,
    Outcome,
    ReportText,
    RunFolder,
    seed_outcome,
    WARNING,
    write_environment,
    write_figures,
    write_report,
    write_results,
)
from equistein.samplers import collect_warnings, warn_of_samples
from equistein.training import Fitted

FIT_METRICS: Mapping[str, Metric] = {
    "validity": Metric("valid molecules", "higher"),
    "num_novel": Metric("new isomers", ""),
    "mean_energy": Metric("mean learned energy", "", "kT"),
    "learned_temperature": Metric("temperature by learned forces", "", "K"),
    "held_out_force_error": Metric("error of held-out forces", "lower", "eV/Å"),
    "held_out_energy_error": Metric("error of held-out energies", "lower", "meV/atom"),
    "held_out_log_likelihood": Metric("held-out log-likelihood", "higher", "nats"),
    "held_out_denoising_loss": Metric("loss of denoising held-out points", "lower"),
    "held_out_accuracy": Metric("accuracy on held-out points", "higher"),
    "same_hand": Metric("chiral molecules with the hand of most data", "higher"),
    "other_stereo_centers": Metric("molecules with other stereo centers", "lower"),
    "molecule_stability": Metric("molecules whose atoms are all stable", "higher"),
    "energy_distance_of_features": Metric("energy distance of features", "lower"),
    "calibration_error": Metric("expected calibration error", "lower"),
    "atom_stability": Metric("atoms whose bonds sum to their valence", "higher"),
    "nats_above_normals": Metric("log p beyond normal distributions", "higher", "nats"),
    "bits_per_dimension": Metric("bits a dimension", "lower"),
    "gain_over_normal": Metric("held-out gain over normal distributions", "higher"),
}

_COMPARED = (
    "Samples are compared with one half of the data by invariant features (a histogram "
    "of distances for a graph network), or by coordinates or pixels once a random "
    "element of the group acted on each."
)
_LIKELIHOOD = " Likelihoods use log Z by annealed importance sampling, with its error."
_MOLECULES = (
    " An atom is stable if its bonds, by a table of lengths, sum to its valence. A "
    "molecule is valid if RDKit accepts it, and novel if its graph is not among the "
    "first 5 000 of the data. Bonds and angles are means, with their widths."
)
_FORCES = (
    " Errors of forces (of a component) and of energies (without their constant) are "
    "mean absolute values over held-out frames; the error of zero forces is beside. "
    "Those of a graph network are for atoms blurred by the least noise."
)
_NO_GAIN = (
    "What was learned adds nothing, {:.2g} ± {:.2g} (nats, or loss of denoising), to "
    "normal distributions: give more epochs or another network, unless data are normal."
)
_LOWER = (
    "The learned energies of samples are {:.3g} below those of the data, which spread "
    "by {:.2g}: the data lack such shapes. Give more data, forces, or a topology."
)
_FAR_SAMPLES = (
    "Samples differ from the data: energy distance {:.2g}, of two halves of the data "
    "{:.2g}{}. Give more points or epochs, another network, or logarithms of tails."
)
_GAIN = ("gain_over_normal", "gain_over_normal_error")
_DISTANCE = "energy_distance_of_features"
_FAR = 6.0  # spreads
_FAR_FLOORS, _FAR_SPREADS = 3.0, 0.05  # an energy distance beyond their sum is far
_LEAST_GAIN = 0.01  # of a loss of denoising
_UNSURE = 0.5  # nats, of an error with which nothing can be said
_CAPTIONS = {
    "features": "All that samples and data are compared by, together.",
    "denoising_loss": "The loss of denoising, in training.",
    "configurations": "Some points of the data, and some samples.",
    "molecules": "New molecules, with bonds inferred from distances.",
    "viewer": "New molecules, which can be rotated with the mouse.",
    "shapes": "Energies at a temperature, and bonds and angles of valid molecules, in "
    "the data and among the samples.",
    "radial_distribution": "How often pairs are at a distance, over particles that do "
    "not see each other.",
    "energy_gap": "The gap that contrastive divergence closes.",
    "columns": "Each column of the table. Where a symmetry mixes columns, samples "
    "follow it and data need not.",
    "samples": "The data, and new samples; those of each class by themselves.",
}
_MAX_MOLECULES = 5_000  # of the data, that new ones are compared with
_MAX_FRAMES = 5_000  # of each part, whose energies are compared
_SHOWN_CLASSES = 4
_SHOWN_COLUMNS = 12
_SAMPLES_OF_CLASS = 128
_MAX_IMAGE_STEPS = 100  # of annealed importance sampling


@check_arguments
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
        Two outcomes, `model` of the samples and FLOOR of one half of the data, each
        compared with the other half; and the figures by name.
    """
    from equistein.models._figures import figures  # matplotlib is not always needed

    sample_key, metrics_key, class_key, split_key, motion_key = jr.split(key, 5)
    with collect_warnings() as texts:
        drawn = fitted.sample(sample_key, num_samples, progress=progress)
    samples: Any = np.asarray(drawn)
    reasons = list(texts)
    data: Any = np.asarray(fitted.group.project_points(dataset.points))
    energy, feature_map = fitted.energy, _feature_map(motion_key, fitted)
    rng = np.random.default_rng(np.asarray(jr.key_data(split_key)))
    split, half = rng.permutation(len(data)), len(data) // 2
    first, others = (data[split[:half]], data[split[half:]]) if half else (data, data)
    # As many samples as floor points, so that their numbers can be compared.
    num = min(len(first), len(samples))
    other_features, numbers, floor, energies = feature_map(others), {}, {}, []
    spread = float(jnp.sqrt(jnp.sum(jnp.var(other_features, axis=0))))
    for found, points in ((numbers, samples[:num]), (floor, first[:num])):
        found[_DISTANCE] = energy_distance(feature_map(points), other_features)
        energies.append(np.asarray(values_at(energy, points)))
        if dataset.kelvin is not None:
            found["mean_energy"] = float(energies[-1].mean())
        if dataset.kelvin is not None and not fitted.group.is_periodic:  # a molecule
            forces = np.asarray(values_at(jax.grad(energy.log_density), points))
            check = check_thermal(points, BOLTZMANN * dataset.kelvin * forces).estimates
            found["learned_temperature"] = check["displacement virial"].value
    numbers |= _held_out_metrics(metrics_key, fitted, dataset, ais_steps)
    far, near = (float(each[_DISTANCE]) for each in (numbers, floor))
    features = {"data": feature_map(data), "samples": feature_map(samples)}
    of_columns = _column_gap(*features.values()) if data.ndim == 2 else ""
    if of_columns or far > _FAR_FLOORS * near + _FAR_SPREADS * spread:
        reasons.append(_FAR_SAMPLES.format(far, near, of_columns))
    gain, gain_error = (float(numbers.get(name, np.nan)) for name in _GAIN)
    if gain <= gain_error < _UNSURE:
        reasons.append(_NO_GAIN.format(gain, gain_error))
    drawn, known = energies
    gap, spread = float(known.mean() - drawn.mean()), float(known.std())
    if gap > _FAR * spread:
        reasons.append(_LOWER.format(gap, spread))
    for text in reasons:
        warn_of_samples(text)
    numbers |= force_errors(energy, dataset)
    shown, panels = {"data": data, "samples": samples}, {}
    species = dataset.molecule
    if species is not None:
        of_samples, of_data, panels = compare_molecules(
            species, data[:_MAX_MOLECULES], samples, dataset.charge
        )
        numbers, floor = numbers | of_samples, floor | of_data
        panels = _energy_panel(energy, dataset, samples) | panels
    for i, name in enumerate((dataset.columns or ())[:_SHOWN_COLUMNS]):
        panels[name] = {k: x.reshape(len(x), -1)[:, i] for k, x in shown.items()}
    few = min(num_samples, _SAMPLES_OF_CLASS)
    names = list(dataset.classes or range(dataset.num_classes or 0))
    for label, name in enumerate(names[:_SHOWN_CLASSES]):
        drawn = fitted.sample(jr.fold_in(class_key, label), few, label=label)
        shown[f"class {name}"] = np.asarray(drawn)
    events = fitted.events + [{"event": WARNING, "text": text} for text in reasons]
    model = seed_outcome(numbers, samples, history=fitted.history, events=events)
    pictures = figures(fitted.group, model.history, features, shown, panels, species)
    return {"model": model, FLOOR: seed_outcome(floor, first[:num])}, pictures


def _feature_map(key: Key, fitted: Fitted) -> Callable[[Particles], Array]:
    """Return invariant features of points, or coordinates moved at random."""
    features, group = features_of(fitted.energy), fitted.group
    if not isinstance(features, Coordinates):
        return jax.jit(jax.vmap(features))

    @jax.jit
    def of_moved(points):
        elements = group.sample(key, len(points))
        return jax.vmap(lambda g, x: features(group.act(g, x)))(elements, points)

    return of_moved


def _column_gap(x: Array, y: Array) -> str:
    """Return which gap of Kolmogorov and Smirnov a column has, if not by chance."""
    from scipy.stats import ks_2samp

    pairs = zip(np.asarray(x).T, np.asarray(y).T, strict=True)
    gap = max(float(np.asarray(ks_2samp(*pair, method="asymp"))[0]) for pair in pairs)
    limit = (np.log(2 / 1e-3 * x.shape[1]) / 2 * (1 / len(x) + 1 / len(y))) ** 0.5
    return f"; distributions of a column differ by {gap:.2g}" if gap > limit else ""


def _energy_panel(
    energy: AbstractEnergy, dataset: Dataset, samples: Particles
) -> dict[str, dict[str, np.ndarray]]:
    """Return learned energies of data and samples, and the given ones of the data."""
    if dataset.kelvin is None:
        return {}
    rows = slice(0, _MAX_FRAMES)
    learned = np.asarray(values_at(energy, dataset.points[rows]))
    of_samples = np.asarray(values_at(energy, samples))
    shown = {"data": learned - learned.mean(), "samples": of_samples - learned.mean()}
    if dataset.energies is not None:
        given = dataset.energies[rows] / (BOLTZMANN * dataset.kelvin)
        shown["data, as given"] = (given - np.nanmean(given))[np.isfinite(given)]
    return {"energy / kT": shown}


def _held_out_metrics(
    key: Key, fitted: Fitted, dataset: Dataset, num_steps: int
) -> dict[str, Any]:
    """Return what held-out points, and training points beside them, are judged by."""
    energy, held_out = fitted.energy, dataset.held_out()
    points = held_out.points
    numbers: dict[str, Any] = {"rollbacks": len(fitted.events)}
    if isinstance(energy, AbstractNoiseEnergy):
        for name, part in (("train", dataset.train()), ("held_out", held_out)):
            if len(part.points):
                loss = repeated_denoising_loss(key, energy, part.points)
                numbers[f"{name}_denoising_loss"] = loss
        if len(points) and isinstance(energy, NoiseEnergy | MixtureNoiseEnergy):
            zero = _ZeroNetwork(energy.network)
            base = eqx.tree_at(lambda e: e.network, energy, zero)
            keys = jr.split(jr.fold_in(key, 2), 4)
            untrained, loss = (
                np.array([repeated_denoising_loss(each, e, points) for each in keys])
                for e in (base, energy)
            )
            least = _LEAST_GAIN * np.mean(untrained)
            numbers |= _averaged("gain_over_normal", untrained - loss, least)
        if isinstance(energy, MixtureNoiseEnergy) and len(points) > 1:
            steps = min(num_steps, _MAX_IMAGE_STEPS)
            bits = image_bits(jr.fold_in(key, 1), energy, points, num_steps=steps)
            gain = bits["bits_per_dimension_of_normals"] - bits["bits_per_dimension"]
            numbers["nats_above_normals"] = gain * points[0].size * np.log(2)
            if np.min(points) >= 0 and np.max(points) <= 1:
                numbers |= bits
    elif not isinstance(fitted.group, PeriodicCloud):  # the reference has no cell
        numbers |= _likelihood(key, fitted, dataset, num_steps)
    labels, has_classes = held_out.labels, energy.num_classes(points.shape[1:])
    if has_classes and labels is not None and (known := labels >= 0).any():
        logits = values_at(energy.evaluate, points[known]).logits
        right = jnp.asarray(labels[known])
        numbers["held_out_accuracy"] = accuracy(logits, right)
        numbers["calibration_error"] = expected_calibration_error(logits, right)
    return numbers


def _likelihood(
    key: Key, fitted: Fitted, dataset: Dataset, num_steps: int
) -> dict[str, Any]:
    """Return log-likelihoods; the error adds two standard errors to that of log Z."""
    train, held_out = dataset.train().points, dataset.held_out().points
    # Chains that go back from the data bound log Z from above.
    normalizer = fitted.log_normalizer(
        jr.split(key)[0], num_particles=256, num_steps=num_steps, samples=train
    )
    numbers: dict[str, Any] = {
        "log_normalizer": normalizer.value,
        "log_normalizer_error": normalizer.error,
        "train_log_likelihood": np.mean(fitted.log_likelihood(train, normalizer)),
    }
    if len(held_out):
        values = np.asarray(fitted.log_likelihood(held_out, normalizer))
        error = np.asarray(normalizer.error)
        numbers |= _averaged("held_out_log_likelihood", values, error)
        # A normal distribution as wide as the data.
        center, normal = fitted.reference.center, fitted.reference
        gaps = np.asarray(fitted.group.project_points(train)) - np.asarray(center)
        scale = np.sqrt(np.sum(gaps**2) / (len(gaps) * normal.dim))
        scale = jnp.asarray(scale, center.dtype)
        normal = eqx.tree_at(lambda n: n.scale, normal, scale)
        gains = values - np.asarray(values_at(normal.log_density, held_out))
        numbers |= _averaged("gain_over_normal", gains, error)
    return numbers


class _ZeroNetwork(eqx.Module):
    """What a network is before it learns: zero."""

    network: Any

    def __call__(self, point: Point, noise: Scalar) -> Scalar:
        return jnp.zeros((), point.dtype)

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.network.group(shape)


def _averaged(name: str, values: np.ndarray, error: Any) -> dict[str, Any]:
    """Return a mean by its name, with two standard errors of it, and a further one."""
    spread = 2 * np.std(values) / len(values) ** 0.5
    return {name: np.mean(values), f"{name}_error": error + spread}


@check_arguments
def write_fit_report(
    key: Key,
    folder: RunFolder,
    fitted: Fitted,
    dataset: Dataset,
    *,
    num_samples: int = 512,
    title: str = "A learned density",
    lead: str = "",
    seed: int = 0,
    **options: Any,
) -> pathlib.Path:
    """Judge a learned density, write numbers, samples and figures; return the report.

    The folder is `RunFolder.create(path)`. The `options` are those of `judge`.
    """
    if not folder.has("config.json"):
        folder.write_json("config.json", {"fitted": repr(fitted)})
        write_environment(folder)
    outcomes, pictures = judge(key, fitted, dataset, num_samples=num_samples, **options)
    write_results(folder, outcomes, [seed], FIT_METRICS)
    write_figures(folder, pictures)
    metrics = outcomes["model"].metrics
    note = _COMPARED + _LIKELIHOOD * ("held_out_log_likelihood" in metrics)
    note += _MOLECULES * bool(dataset.molecule)
    if {"held_out_force_error", "held_out_energy_error"} & set(metrics):
        note += _FORCES
    text = ReportText(
        title=title, lead=lead, notes={"model": note}, captions=_CAPTIONS, floor="data",
        floor_note="The floor is what real data score: points of one half, at most as "
        "many as samples, against the other half.",
        headlines=[name for name in FIT_METRICS if name in metrics][:5],
        data=str(dataset.summary or "").splitlines(),
    )  # fmt: skip
    return write_report(folder, text)
