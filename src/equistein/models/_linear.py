"""Energies that are linear in features, fitted by one solve, alone or compared."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein._arrays import as_keys
from equistein._check_arguments import accept_integer_key
from equistein._types import AnyKey, Key, Particles
from equistein.diffusion import DenoisingScoreMatching, match_torsions
from equistein.energies import (
    KnownEnergy,
    LinearEnergy,
    PairWall,
    PlainEnergy,
    SummedEnergy,
    values_at,
)
from equistein.features import (
    AbstractFeatures,
    Bonded,
    Concatenated,
    PairBasis,
    Quadratic,
    Radius,
    RandomFeatures,
    TripletBasis,
)
from equistein.groups import (
    AbstractCloud,
    AbstractGroup,
    Molecule,
    Orthogonal,
    PeriodicCloud,
    SpecialOrthogonal,
)
from equistein.metrics import noise_contrastive_estimation
from equistein.models._model import Model, with_about, with_forces
from equistein.models._settings import ComparedSettings, LinearSettings
from equistein.samplers import MALA
from equistein.training import fit_linear, Fitted, SamplesOf, SamplingGenerator

_COPIES = 8  # of points, to find the range of blurred ones
_MOST_TRIPLETS = 20  # atoms of a molecule whose angles are features
_MOST_EMBEDDED = 36  # atoms in a cell whose sums over neighbors are features
_EMBEDDING = (0.5, 2.0, 3.0)
_BEYOND = 0.1  # of the range of a molecule's distance, where its wall begins
_PART = 10  # of the points, which are kept from training to compare by
_REPEATS = 8  # of each of them, with noise and with its mirror image
_DEPENDENT = 1e-9  # of a variance: left by others
_SAME_SCALE = 3_000  # by which widths of coordinates may differ
_SURE = 2.0  # standard errors by which a network must be better than the solve
_SAMPLES = 20  # for each effective parameter, to match moments
_LARGEST = 60  # coordinates, for which samples from nothing are in equilibrium
_STEPS = 1_000  # of chains that begin at samples of the linear energy


def _wall(group: AbstractCloud, pairs: PairBasis, points: np.ndarray) -> PairWall:
    """Return a wall by pairs of species or, of a molecule, by what its bonds tell."""
    kinds = pairs.kind_of_pairs()
    if isinstance(group, Molecule):
        pairs = PairBasis(range(len(group.species)), points)
        kinds = group.orbits(np.column_stack(np.triu_indices(len(group.species), 1)))
    own = pairs.kind_of_pairs()
    least, most = np.full(len(own), np.inf), np.zeros(len(own))
    np.minimum.at(least, kinds, np.array(pairs.least)[own])
    np.maximum.at(most, kinds, np.array(pairs.most)[own])
    gaps = _BEYOND * (most - least) if isinstance(group, Molecule) else 0.0
    least, most = (least - gaps)[kinds], (most + gaps)[kinds]
    return PairWall(pairs, tuple(least.tolist()), tuple(most.tolist()))


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinearModel:
    """A linear energy, how it is fitted and sampled, forces in kT, and `about`."""

    energy: LinearEnergy
    settings: LinearSettings
    batch_size: int
    forces: Any = None
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    num_epochs: int = 1
    epoch_batches: int = 1

    @accept_integer_key
    def fit(
        self, key: AnyKey, data: Any, labels: Any = None, *, mesh: Any = None,
        progress: bool = False, **options: Any,
    ) -> Fitted:  # fmt: skip
        """Fit by one solve, or waves by one regression; no other `options` are used."""
        del options
        settings, energy, normal = self.settings, self.energy, None
        known = {"noise": settings.noise, "mesh": mesh, "progress": progress}
        if isinstance(energy.features, RandomFeatures):
            normal = fit_linear(key, energy.base, data, **known)  # type: ignore
            energy = noise_contrastive_estimation(  # slopes leave far energies free
                as_keys(key), LinearEnergy(energy.features, normal.energy), data,
                labels=labels, blur=settings.noise, ridge=settings.ridge,
            )  # fmt: skip
            fitted = dataclasses.replace(normal, energy=energy, solutions=())
        else:
            known |= {"forces": self.forces, "ridge": settings.ridge}
            fitted = fit_linear(key, energy, data, labels=labels, **known)
        made: Any = fitted.generator
        dim, num = fitted.reference.dim, settings.sample_at_once
        steps = min(max(50 * dim, 100 if normal else 400), 2_000)
        generator = dataclasses.replace(
            made, num_steps=settings.sample_steps or steps, num_at_once=num,
            num_at_least=num if normal else made.num_at_least,
        )  # fmt: skip
        fitted = dataclasses.replace(fitted, generator=generator)
        if isinstance(group := fitted.group, Molecule):
            fitted = match_torsions(key, fitted, data, group)
        if len(found := fitted.solutions) == 1 and dim <= _LARGEST:
            num, needed = settings.moment_samples, _SAMPLES * found[0].num_effective
            if num >= needed and not fitted.group.is_periodic:
                fitted = fitted.match_moments(key, data, num_samples=num)
        return with_about(fitted, self.about)

    @accept_integer_key
    def check(self, key: Key, data: Particles, labels: Any = None) -> None:
        """Raise `ValueError` if the data do not fit."""
        if self.forces is not None and self.settings.noise is not None:
            raise ValueError("`noise` blurs the points, whose forces are then unknown.")
        self.energy.group(data.shape[1:]).check_shape(data.shape[1:])


def linear_model(
    group: AbstractGroup, data: Particles, settings: LinearSettings, has_atoms: bool
) -> LinearModel:
    """Return an energy of pairs, and of bonds or of some atoms; or of waves.

    Waves, for other groups, are added to the normal distribution that fits the data.
    """
    group.check_shape(data.shape[1:])
    if isinstance(group, AbstractCloud | PeriodicCloud):
        energy = _energy_of_pairs(group, np.asarray(data), settings, has_atoms)
    else:
        rows = np.asarray(data, float).reshape(len(data), -1)
        center, widths = rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-30)
        scaled, most = (rows - center) / widths, max(widths.max(), abs(center).max())
        least = np.linalg.eigvalsh(scaled.T @ scaled / len(rows))[0]
        is_flat = least < _DEPENDENT and not settings.noise
        if is_flat or most > _SAME_SCALE * widths.min():
            raise ValueError(
                "Coordinates are constant, sums of others, or too far from 0 or wide "
                "for the narrowest: leave out, shift or scale such, or blur by `noise`."
            )
        on_sphere = isinstance(group, Orthogonal | SpecialOrthogonal)
        symmetry = Radius() if on_sphere and data.ndim == 2 else group
        waves = RandomFeatures(symmetry, settings.num_waves, data)
        energy = LinearEnergy(waves, LinearEnergy(Quadratic(group)))
    return LinearModel(energy=energy, settings=settings, batch_size=len(data))


def _energy_of_pairs(
    group: AbstractCloud | PeriodicCloud, points: np.ndarray, settings: LinearSettings,
    has_atoms: bool,
) -> LinearEnergy:  # fmt: skip
    if not (group.reflections or isinstance(group, Molecule)):
        raise ValueError("`network` linear needs a `group` with reflections.")
    if settings.noise is not None:  # the ranges are those of blurred points
        drawn = np.random.default_rng(0).normal(size=(_COPIES, *points.shape))
        points = (points + settings.noise * drawn).reshape(-1, *points.shape[1:])
    # Pairs of elements, beside the bonds: each two kinds of atoms would be too many.
    species = group.atomic_numbers if isinstance(group, Molecule) else group.species
    options, triplets, most = {}, {}, _MOST_TRIPLETS
    if isinstance(group, PeriodicCloud):  # with sums over neighbors, not angles
        options = {"cutoff": group.longest_cutoff, "cell": group.cell}
        triplets, most = {"num_radial": 0, "embedding": _EMBEDDING}, _MOST_EMBEDDED
    pairs = PairBasis(species, points, num_gaussians=settings.num_gaussians, **options)
    features: AbstractFeatures = pairs
    if isinstance(group, Molecule):
        bonded = Bonded(
            group.bonds, group.atomic_numbers, symmetric=True,
            reflections=group.reflections,
        )  # fmt: skip
        features = Concatenated(pairs, bonded)
    elif has_atoms and 3 <= len(species) <= most:
        basis = TripletBasis(species, points, **options, **triplets)
        features = Concatenated(pairs, basis)
    if isinstance(group, PeriodicCloud):
        return LinearEnergy(features)
    return LinearEnergy(features, KnownEnergy(_wall(group, pairs, points), group))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComparedModel:
    """A linear energy and a graph network, of which `fit` takes the best, or both.

    All are compared at the noise of `linear.settings`; the rest is as in `LinearModel`.
    """

    linear: LinearModel
    graph: Model
    settings: ComparedSettings
    forces: Any = None
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    num_epochs = property(lambda self: self.graph.num_epochs)
    epoch_batches = property(lambda self: self.graph.epoch_batches)
    batch_size = property(lambda self: self.graph.batch_size)

    @accept_integer_key
    def fit(
        self, key: AnyKey, data: Any, labels: Any = None, *,
        checkpoint: Any = None, **options: Any,
    ) -> Fitted:  # fmt: skip
        """Fit all, and take what denoises the last tenth of the points best.

        The losses are in `about["comparison"]`. A solve that is best takes all points.
        """
        num, noise = len(data) - max(1, len(data) // _PART), self.linear.settings.noise
        forces = None if self.forces is None else self.forces[:num]
        linear = self._solve(forces, noise if forces is None else None)
        fits = {"linear": linear.fit(key, data[:num], **options)}
        models = {"linear+graph": self._correction(fits["linear"])}
        if self.settings.takes_best:
            models["graph"] = self.graph
        for name, model in models.items():
            if checkpoint is not None:
                path = pathlib.Path(checkpoint)
                options["checkpoint"] = path.with_stem(f"{path.stem}-{name}")
            model = with_forces(model, forces, self.settings)
            fits[name] = model.fit(key, data[:num], **options)
        best, text = self._choose(_losses(key, fits, jnp.asarray(data[num:]), noise))
        if best == "linear":
            linear = dataclasses.replace(
                self.linear, forces=self.forces, settings=self.settings
            )
            fits["linear"] = linear.fit(key, data, **options)
        return with_about(fits[best], {**self.about, "comparison": text})

    @accept_integer_key
    def check(self, key: Key, data: Particles, labels: Any = None) -> None:
        """Raise `ValueError` if the data do not fit."""
        self._solve(self.forces, self.settings.noise).check(key, data, labels)
        self.graph.check(key, data, labels)

    def _solve(self, forces: Any, noise: float | None) -> LinearModel:
        settings = dataclasses.replace(self.settings, noise=noise, moment_samples=0)
        return dataclasses.replace(self.linear, forces=forces, settings=settings)

    def _correction(self, linear: Fitted) -> Model:
        """Return the graph network as what is added to a linear energy, held fixed."""
        network = PlainEnergy(self.graph.energy.network)  # type: ignore[attr-defined]
        known = KnownEnergy(linear.energy.log_density, linear.group)
        made: Any = linear.generator
        step, project = made.sampler.inner.step_size, linear.group.project
        generator = SamplingGenerator(
            MALA(step, num_adapt=_STEPS // 2, project=project),
            SamplesOf(linear), num_steps=_STEPS, num_at_once=made.num_at_once,
        )  # fmt: skip
        return dataclasses.replace(
            self.graph, generator=generator,
            energy=SummedEnergy([(1.0, known), (1.0, network)], linear.group),
            objective=DenoisingScoreMatching(self.linear.settings.noise),  # type: ignore
        )  # fmt: skip

    def _choose(self, losses: dict[str, np.ndarray]) -> tuple[str, str]:
        """Return what is taken, and why."""
        first = losses["linear"]
        gains, text = {"linear": 0.0}, f"linear {first.mean():.4f}"
        for name, each in losses.items():
            if name != "linear":
                error = np.std(first - each) / len(each) ** 0.5
                gains[name] = np.mean(first - each) - _SURE * error
                text += f", {name} {each.mean():.4f} (+- {error:.4f} from linear)"
        best = max(gains, key=lambda name: gains[name])
        best = best if self.settings.takes_best else "linear+graph"
        return best, (
            f"Mean loss of denoising {len(first)} held-out points at noise "
            f"{self.linear.settings.noise:.3g}: {text}. Taken: {best}."
        )


def _losses(key: Any, fits: Mapping[str, Fitted], points: Particles, noise: Any) -> Any:
    r"""Return $|\sigma s(x + \sigma \xi) + \xi|^2$ a coordinate of each point."""
    group, losses = fits["linear"].group, {}
    points = jnp.concatenate([group.project_points(points)] * _REPEATS)
    drawn = group.project_points(jr.normal(key, points.shape, points.dtype))
    for name, fitted in fits.items():
        score, total = jax.grad(fitted.log_density), 0.0
        for xi in (drawn, -drawn):  # so that all but their second order cancels
            total += (noise * values_at(score, points + noise * xi) + xi) ** 2 / 2
        rows = np.asarray(total).reshape(_REPEATS, -1, drawn[0].size)
        losses[name] = np.mean(rows, axis=(0, 2))
    return losses
