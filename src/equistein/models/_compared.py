"""An energy by one solve, a graph network, and both: what denoises best is taken."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein._check_arguments import accept_integer_key
from equistein._types import AnyKey, Key, Particles
from equistein.diffusion import DenoisingScoreMatching
from equistein.energies import KnownEnergy, PlainEnergy, SummedEnergy, values_at
from equistein.models._linear import LinearModel
from equistein.models._model import Model, with_about, with_forces
from equistein.models._settings import ComparedSettings
from equistein.samplers import MALA
from equistein.training import Fitted, SamplesOf, SamplingGenerator

_PART = 10  # of the points, which are kept from training to compare by
_REPEATS = 8  # of each of them, with noise and with its mirror image
_SURE = 2.0  # standard errors by which a network must be better than the solve
_STEPS = 1_000  # of chains that begin at samples of the linear energy


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
            linear = self._solve(self.forces, self.settings.noise)
            fits["linear"] = linear.fit(key, data, **options)
        return with_about(fits[best], {**self.about, "comparison": text})

    @accept_integer_key
    def check(self, key: Key, data: Particles, labels: Any = None) -> None:
        """Raise `ValueError` if the data do not fit."""
        self._solve(self.forces, self.settings.noise).check(key, data, labels)
        self.graph.check(key, data, labels)

    def _solve(self, forces: Any, noise: float | None) -> LinearModel:
        settings = dataclasses.replace(self.settings, noise=noise)
        return dataclasses.replace(self.linear, forces=forces, settings=settings)

    def _correction(self, linear: Fitted) -> Model:
        """Return the graph network as what is added to a linear energy, held fixed."""
        network = PlainEnergy(self.graph.energy.network)  # type: ignore[attr-defined]
        known = KnownEnergy(linear.energy.log_density, linear.group)
        made: Any = linear.generator
        step, project = made.sampler.inner.step_size, linear.group.project
        generator = SamplingGenerator(
            MALA(step, num_adapt=_STEPS // 2, project=project),
            SamplesOf(dataclasses.replace(linear, solutions=(), about={})),
            num_steps=_STEPS, num_at_once=made.num_at_once,
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
        noise = f"{self.linear.settings.noise:.3g}"
        return best, (
            f"Mean loss of denoising {len(first)} held-out points at noise {noise}: "
            f"{text}. Taken: {best}."
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
