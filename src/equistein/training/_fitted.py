"""The result of a fit: a learned density to sample and to judge."""

import dataclasses
import importlib
import pathlib
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._arrays import as_keys
from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._limits import check_sample_memory
from equistein._numbers import check_integers
from equistein._types import AnyKey, Key, Particles, Point, Scalar
from equistein.energies import AbstractEnergy, check_class, LinearSolution, values_at
from equistein.groups import AbstractGroup
from equistein.metrics import annealed_importance_sampling, LogNormalizer
from equistein.samplers import NonFiniteError, Normal
from equistein.training._generators import AbstractGenerator, Clamp
from equistein.training._initial import AbstractInitial
from equistein.training._tree_file import pack_tree, save_tree, unpack_tree


class Fitted(eqx.Module):
    r"""A learned density, $p(x) = e^{-E(x)} / Z$.

    Attributes:
        energy: The energy with the running mean of its weights.
        history: For each name a value per epoch: the mean over its batches, or of
            `largest_...` the maximum, of `num_...` the sum; NaN where unknown.
        events: Roll-backs, with the factor of the step sizes from then on, and a stop.
        generator: How samples are drawn, or None.
        reference: Where `log_normalizer` starts: a normal distribution around the
            center of `Box(data, group)`, with half its reach as standard deviation.
        about: What is saved with it, such as the atomic numbers.
        solutions: Of `fit_linear`, for each class: coefficients and their errors.
        noise: Of `fit_linear`, the noise that the data are blurred by.
    """

    energy: AbstractEnergy
    history: dict[str, np.ndarray]
    events: list[dict[str, Any]]
    generator: AbstractGenerator | None
    reference: Normal
    about: dict[str, Any] = dataclasses.field(default_factory=dict)
    solutions: tuple[LinearSolution, ...] = ()
    noise: float | None = None

    def __repr__(self) -> str:
        """Return what was learned, for how long, and how it is sampled."""
        losses = self.history.get("loss", np.zeros(0))
        rollbacks = sum(each["event"] == "roll-back" for each in self.events)
        if self.solutions:
            num = len(self.solutions[0].coefficients)
            numbers = ", ".join(f"{s.num_effective:.0f}" for s in self.solutions)
            return f"Fitted({self.group!r}; {num} features, effectively {numbers})"
        last = f", loss {losses[-1]:.4g} at the end" if len(losses) else ""
        return (
            f"Fitted({type(self.energy).__name__} with symmetry {self.group!r}; points "
            f"of shape {self.reference.center.shape}; {len(losses)} epochs{last}; "
            f"{rollbacks} roll-backs; generator {type(self.generator).__name__})"
        )

    def log_density(self, point: Point) -> Scalar:
        r"""Return $-E(x)$, the log density up to $\log Z$."""
        return self.energy.log_density(point)

    @property
    def data_summary(self) -> Any:
        """What `es.data.describe` found in its data, if these were in a file."""
        return self.about.get("data_summary")

    @property
    def group(self) -> AbstractGroup:
        """The symmetry of the energy."""
        return self.energy.group(self.reference.center.shape)

    def sample(
        self,
        key: AnyKey,
        num: int,
        *,
        label: int | np.integer | None = None,
        clamp: Clamp | None = None,
        progress: bool = False,
    ) -> Particles:
        """Draw `num` new samples with the generator, of one class or of all together.

        The coordinates that `clamp` holds are fixed while the others are drawn.
        """
        key = as_keys(key)
        if self.generator is None:
            raise ValueError(
                "This fit has no `generator`: give `fit` one, such as SamplingGenerator"
                "(sampler, initial), or run a sampler on `fitted.log_density`."
            )
        shape = self.reference.center.shape
        check_sample_memory(num, shape)
        most = self.energy.num_classes(shape)
        if label is not None and most is not None:
            check_class(label, most)
        condition: Any = label
        if clamp is not None:
            label = clamp.label if label is None else int(label)
            condition = dataclasses.replace(clamp, label=label)
        generator, energy = self.generator, self.energy
        try:
            points = generator.sample(key, energy, num, condition, progress=progress)
        except NonFiniteError as error:
            self._check_escape(error.samples.particles, label)
            raise
        self._check_escape(points, label)
        return points

    def _check_escape(self, points: Particles, label: Any) -> None:
        """Raise `ValueError` if points ran away from the data of a linear energy."""
        if self.solutions:
            from equistein.training._fit_linear import check_escape

            check_escape(self, points, label)

    def calculator(self, kelvin: float | None = None) -> Any:
        """Return an ASE calculator in eV, as `es.bridges.energy_calculator` does."""
        bridges = importlib.import_module("equistein.bridges")  # a higher package
        return bridges.energy_calculator(self.energy, self.about, kelvin)

    def energy_errors(self, points: Any, others: Any, label: int = 0) -> np.ndarray:
        """Return the standard error of each point's energy less another's, by class."""
        if not self.solutions:
            raise ValueError("Only a fit by `fit_linear` knows errors of energies.")
        in_double = self.energy.features.in_double  # type: ignore[attr-defined]
        return self.solutions[label].errors(in_double(points) - in_double(others))

    def update(
        self, more: Any, *, forces: Any = None, weights: Any = None, ridge: Any = None
    ) -> "Fitted":
        """Return the fit of the data so far and more; all as for `fit_linear`."""
        from equistein.training._fit_linear import update  # which imports this

        return update(self, more, forces=forces, weights=weights, ridge=ridge)

    @accept_integer_key
    def match_moments(
        self, key: AnyKey, data: Any, *, weights: Any = None, num_samples: int = 1_000
    ) -> "Fitted":
        r"""Return the fit by one solve, moved towards maximum likelihood.

        The solve sees slopes alone, and little of how regions weigh that few points
        connect. Where the likelihood is largest, samples have the mean features of the
        data. From `num_samples`, which are reweighted, and drawn at most five times,

        $$\max_c \; n \bigl( -c \cdot \bar F - \log Z(c) \bigr) - \tfrac12
          (c - c_0)^\top \Sigma^{-1} (c - c_0),$$

        with the solve's $c_0$ and covariance. The fit stays if the standard error of a
        typical energy is below .1 kT. Data and weights are as for `fit_linear`.
        """
        from equistein.training._moment_matching import match_moments

        if len(self.solutions) != 1:
            raise ValueError("Moments need a fit by `fit_linear`, without classes.")
        check_integers("`match_moments`", num_samples=num_samples)
        return match_moments(self, key, data, weights, num_samples)

    def log_normalizer(
        self,
        key: AnyKey,
        *,
        num_particles: int = 512,
        num_steps: int = 2_000,
        samples: Particles | None = None,
    ) -> LogNormalizer:
        r"""Estimate $\log Z$ by annealed importance sampling from `reference`.

        It takes `num_particles` chains and `num_steps` temperatures. Others go back
        from `samples`, such as data, and bound $\log Z$ from above as far as these are
        samples of the density.
        """
        return annealed_importance_sampling(
            as_keys(key), self.energy.log_density, self.reference,
            num_particles=num_particles, num_steps=num_steps, samples=samples,
        )  # fmt: skip

    def log_likelihood(
        self, points: Particles, log_normalizer: LogNormalizer
    ) -> Float[Array, " point"]:
        r"""Return $\log p(x)$ of each point, in nats, by what `log_normalizer` gave."""
        points = self.energy.group(points.shape[1:]).project_points(points)
        return values_at(self.energy.log_density, points) - log_normalizer.value

    def save(self, path: pathlib.Path | str) -> None:
        """Write the learned density into a file that `es.load` reads.

        The folder is made if the one above it is there. No part may be a lambda.
        """
        save_tree(pathlib.Path(path), self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Let `pickle` carry this from one process to another; files are `save`'s."""
        return unpack_tree, pack_tree(self)


@check_arguments
class SamplesOf(AbstractInitial):
    """Samples of a fit, of all classes, where the chains of another energy start."""

    fitted: Fitted
    center: Float[Array, "..."]
    reach: Scalar
    group: AbstractGroup

    def __init__(self, fitted: Fitted):
        # Without sums over its data, which may be large in a file.
        self.fitted = dataclasses.replace(fitted, solutions=(), about={})
        self.group, reference = fitted.group, fitted.reference
        self.center, self.reach = reference.center, jnp.asarray(2 * reference.scale)

    @accept_integer_key
    def sample(self, key: Key, num: int, label: Any = None) -> Particles:
        return self.fitted.sample(key, num)


class DivergenceError(FloatingPointError):
    """A fit diverged more often than it was allowed to go back.

    Its `fitted` is the last good state, perhaps older than the end of its history.
    """

    def __init__(self, message: str, fitted: Fitted):
        super().__init__(message)
        self.fitted = fitted
