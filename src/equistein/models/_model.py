"""An energy with all that it takes to train and sample it; learned ones in files."""

import dataclasses
import functools
import importlib
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._types import AnyKey, Key, Particles, Scalar
from equistein.diffusion import NoiseEnergy
from equistein.energies import AbstractEnergy
from equistein.models._settings import ContrastiveSettings, TrainingSettings
from equistein.molecules import hands, symbols_of
from equistein.runs import RunFolder
from equistein.samplers import identity
from equistein.training import (
    AbstractGenerator,
    AbstractObjective,
    AbstractSource,
    adam,
    Blurred,
    check_data,
    Condition,
    FileFormatError,
    fit,
    Fitted,
    ForceMatching,
    InMemory,
    LIBRARY_PARTS,
    load_tree,
    OnDisk,
    Optimization,
    parts_of,
)

_SHELF = pathlib.Path(__file__).parents[1] / "pretrained"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Model:
    """An energy, untrained, with all that it takes to train and sample it.

    What is in `about` is saved with the learned density; the rest is for `es.fit`.
    """

    energy: AbstractEnergy
    objective: AbstractObjective
    generator: AbstractGenerator
    optimization: Optimization
    num_epochs: int
    epoch_batches: int
    batch_size: int
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @accept_integer_key
    def fit(self, key: AnyKey, data: Any, labels: Any = None, **options: Any) -> Fitted:
        """Fit the energy to data, as `es.fit` does with these parts.

        The `options` are its `checkpoint`, `callbacks`, `mesh` and `progress`.
        """
        if not isinstance(data, AbstractSource):
            kind = OnDisk if isinstance(data, np.memmap) else InMemory
            data = kind(data, labels, self.epoch_batches)
        fitted = fit(
            key, self.energy, data, self.objective, num_epochs=self.num_epochs,
            batch_size=self.batch_size, optimizer=self.optimization,
            generator=self.generator, **options,
        )  # fmt: skip
        return with_about(fitted, self.about)

    @accept_integer_key
    def check(self, key: Key, data: Particles, labels: Any = None) -> None:
        """Raise `ValueError` if data or labels do not fit, as `fit` does."""
        parts = self.energy, data, self.objective, labels, self.batch_size
        self.objective.init(key, self.energy, check_data(*parts))


class OneHanded(AbstractGenerator):
    r"""Samples of molecules, of which mirror images of the data are reflected.

    Where $E(-x) = E(x)$, that is exactly the density restricted to one hand. Molecules
    of another kind are left as they are. The pair are the `stereo_smiles` of the data.
    """

    inner: AbstractGenerator
    species: tuple[str, ...] = eqx.field(static=True)
    pair: tuple[str, str] = eqx.field(static=True)

    @property
    def num_at_once(self) -> int:  # type: ignore
        return self.inner.num_at_once

    def draw(
        self, key: Key, energy: AbstractEnergy, num: int, condition: Condition
    ) -> Particles:
        points = self.inner.draw(key, energy, num, condition)
        if parts_of(condition)[1] is not None:  # held atoms may not be reflected
            return points
        signs = hands(self.species, np.asarray(points), self.pair)
        mirrored = np.where(signs == -1, -1, 1).astype(points.dtype)
        return points * mirrored[:, None, None]

    def scale_steps(self, factor: Scalar) -> AbstractGenerator:
        return dataclasses.replace(self, inner=self.inner.scale_steps(factor))


def with_about(fitted: Fitted, about: Mapping[str, Any]) -> Fitted:
    """Return a fit with what is saved with it, which draws molecules of one hand."""
    generator = fitted.generator
    if generator is not None and "stereo_smiles" in about:
        first, mirrored = about["stereo_smiles"]
        species = symbols_of(about["atomic_numbers"])
        generator = OneHanded(generator, species, (first, mirrored))  # type: ignore
    return dataclasses.replace(fitted, generator=generator, about=dict(about))


def with_forces(model: Model, scores: Any, settings: Any) -> Model:
    """Return a model that learns forces / kT too, where they are known."""
    if scores is None:
        return model
    # Contrastive divergence sums over coordinates, the loss of denoising is a mean.
    weight = 100.0 if isinstance(settings, ContrastiveSettings) else 1.0
    part: AbstractObjective = ForceMatching(scores)
    noise = getattr(settings, "data_noise", 0.0)
    if isinstance(model.energy, NoiseEnergy):  # the score there is the mean force
        noise = float(model.energy.sigma_min)
    if noise:
        part = Blurred(part, noise)
    part = weight / float(np.nanmean(scores**2)) * part
    return dataclasses.replace(model, objective=model.objective + part)


def model_of(
    settings: TrainingSettings, energy: AbstractEnergy, objective: AbstractObjective,
    generator: AbstractGenerator, num_batches: int, epoch_batches: int,
) -> Model:  # fmt: skip
    """Return a model to be trained as settings say, by default for `num_batches`."""
    num_epochs = settings.num_epochs or -(-num_batches // epoch_batches)
    optimizer = adam(
        settings.learning_rate, num_epochs * epoch_batches,
        warm_up=settings.warm_up, gradient_clip=settings.gradient_clip,
    )  # fmt: skip
    names = ("ema", "precision", "energy_limit")
    options = {name: getattr(settings, name) for name in names}
    return Model(
        energy=energy, objective=objective, generator=generator,
        optimization=Optimization(optimizer, **options), num_epochs=num_epochs,
        epoch_batches=epoch_batches, batch_size=settings.batch_size,
    )  # fmt: skip


def setting_or(value: float | None, otherwise: Scalar) -> Scalar:
    """Return a setting as an array, or another value where it is None."""
    return otherwise if value is None else jnp.asarray(value, otherwise.dtype)


@check_arguments
def load(path: pathlib.Path | str, classes: Sequence[Any] = ()) -> Fitted:
    """Return a learned density that `Fitted.save` wrote.

    A file never names code to import: what it is made of must be of equistein, of
    Equinox's common layers, or among the given classes and functions. The path may be
    that of the run folder of `equistein fit`.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        path = path / RunFolder.MODEL
    if not path.is_file():
        raise FileFormatError(f"There is no file {path}.")
    found = load_tree(path, (*_known_parts(), *classes))
    if not isinstance(found, Fitted):
        raise FileFormatError(
            f"{path} holds {type(found).__name__}, no fitted density."
        )
    return found


@check_arguments
def pretrained(name: str) -> Fitted:
    """Return a density of molecules in Angstrom from the package, such as `c5h8o`."""
    known = {path.stem: path for path in sorted(_SHELF.glob("*.eqx"))}
    if name not in known:
        raise ValueError(f"There is no model {name!r}, only {', '.join(known)}.")
    return load(known[name])


@functools.cache
def _known_parts() -> tuple[Any, ...]:
    """Return the classes and functions that a file of equistein's own is made of."""
    for package in ("diffusion", "posteriors", "targets"):  # may not be imported yet
        importlib.import_module(f"equistein.{package}")
    classes = [eqx.Module]
    for cls in classes:  # grows as we walk
        classes += cls.__subclasses__()
    ours = [cls for cls in classes if cls.__module__.startswith("equistein.")]
    return (*ours, *LIBRARY_PARTS, identity)
