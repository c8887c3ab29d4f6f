"""What a fit gives: a learned density to draw from and to judge."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._progress import progress_bar
from equistein._types import Key, Particles, Point, Scalar
from equistein.energies import (
    AbstractEnergy,
    FormulasEnergy,
    JointEnergy,
    NoiseEnergy,
)
from equistein.kernels import AbstractKernel
from equistein.metrics import annealed_importance_sampling, LogNormalizer, Normal
from equistein.samplers import NonFiniteError, run, Samples
from equistein.training._annealed import annealed, Annealing
from equistein.training._config import FitConfig
from equistein.training._kernel import choose_kernel
from equistein.training._lengths import Lengths
from equistein.training._samplers import final_sampler
from equistein.training._start import AbstractStart, Box
from equistein.training._trainer import tempered


class Fitted(eqx.Module):
    r"""A learned density, $p(x) = e^{-E(x) / T} / Z$.

    Attributes:
        energy: The running mean of the trained energies.
        particles: The persistent particles, or the replay buffer, at the end.
        history: One entry an epoch: the means over its batches.
        events: The roll-backs, if any: the epoch that failed, why, and the steps'
            scale from then on.
        start: Where samples start.
        kernel: The kernel they are drawn with.
        config: The settings.
        lengths: Its lengths, set by the data where the settings leave them open.
    """

    energy: AbstractEnergy
    particles: Particles
    history: dict[str, np.ndarray]
    events: list[dict[str, Any]]
    start: AbstractStart
    kernel: AbstractKernel
    config: FitConfig
    lengths: Lengths

    def log_density(self, point: Point) -> Scalar:
        r"""Return $-E(x) / T$, the log density up to $\log Z$."""
        return self._model().log_density(point)

    def sample(
        self,
        key: Key,
        num: int,
        *,
        label: int | np.integer | None = None,
        progress: bool = False,
    ) -> Particles:
        """Draw new samples from fresh starts, by the sampler that the settings name.

        Those of a `NoiseEnergy` are annealed from noise (`Annealing`), and freed of
        the least noise by Tweedie's rule.

        Args:
            key: The source of randomness.
            num: The number of samples.
            label: The class to draw from; None draws from all together.
            progress: Whether to show a progress bar.

        Raises:
            ValueError: If `num` is not a positive integer, or `label` no class.
        """
        if isinstance(num, bool) or not isinstance(num, int) or num < 1:
            raise ValueError(f"`sample` needs `num`, an integer >= 1, but got {num!r}.")
        if isinstance(self.energy, FormulasEnergy):
            raise ValueError(
                "This fit knows several formulas: take one first, such as "
                f"fitted.formula(0), of {len(self.energy.formulas)}."
            )
        if isinstance(self.energy, NoiseEnergy):
            self._model(label)  # refuses labels
            return self._annealed(key, num, self.energy, progress)
        log_density = self._model(label).log_density
        sampler = final_sampler(
            self.config, self.lengths, self.kernel, self.start.group
        )
        at_once = min(num, self.config.sample_at_once)
        drawn = []
        for index in progress_bar(range(-(-num // at_once)), disable=not progress):
            start_key, run_key = jr.split(jr.fold_in(key, index))
            samples = run(
                run_key,
                sampler,
                log_density,
                self.start.sample(
                    start_key, at_once, None if label is None else int(label)
                ),
                num_steps=self.config.sample_steps,
                check=False,  # the energy was checked when it was fitted
            )
            drawn.append(samples.particles)
        points = jnp.concatenate(drawn)[:num]
        return jax.vmap(self.start.group.project)(points)

    def formula(self, number: int) -> "Fitted":
        """Return the learned density of the molecules of one formula.

        Args:
            number: The formula's number, as the labels of the data had it.

        Raises:
            ValueError: If the energy is not one of several formulas, or has no such.
        """
        if not isinstance(self.energy, FormulasEnergy):
            raise ValueError("`formula` needs the fit of a FormulasEnergy.")
        num = len(self.energy.formulas)
        if not 0 <= number < num:
            raise ValueError(
                f"`formula` needs a `number` from 0 to {num - 1}, but got {number!r}."
            )
        energy = self.energy.formula(number)
        shape = (len(self.energy.formulas[number]), self.start.center.shape[1])
        group = energy.group(shape)
        start = Box(jnp.zeros((1, *shape), self.start.center.dtype), group)
        start = eqx.tree_at(lambda box: box.reach, start, self.start.reach)
        kernel = choose_kernel(energy, self.config, shape)
        return Fitted(
            energy, self.particles, self.history, self.events, start, kernel,
            self.config, self.lengths,
        )  # fmt: skip

    def _annealed(
        self, key: Key, num: int, energy: NoiseEnergy, progress: bool
    ) -> Particles:
        """Draw samples while the noise falls from its largest level to the least."""
        group = self.start.group
        annealing = Annealing(self.config, self.lengths, self.kernel, group)
        at_once = min(num, self.config.sample_at_once)
        drawn = []
        for index in progress_bar(range(-(-num // at_once)), disable=not progress):
            start_key, run_key = jr.split(jr.fold_in(key, index))
            start = energy.start(start_key, at_once, self.start.center.shape)
            points = annealed(run_key, energy, annealing, start)
            if not bool(jnp.all(jnp.isfinite(points))):
                raise NonFiniteError(
                    "New samples were not finite: the energy was not learned. Train it "
                    "longer, or with a smaller `learning_rate`.",
                    self.config.sample_steps,
                    Samples(start, {}, 0, False, None),
                )
            drawn.append(points)
        return jnp.concatenate(drawn)[:num]

    def log_normalizer(
        self, key: Key, *, num_particles: int = 512, num_steps: int = 2_000
    ) -> LogNormalizer:
        r"""Estimate $\log Z$ by annealed importance sampling.

        It starts from a normal density as wide as the box that samples start in.

        Args:
            key: The source of randomness.
            num_particles: The number of chains.
            num_steps: The number of temperatures.
        """
        group = self.start.group
        base = Normal(self.start.center, self.start.reach / 2, group)
        return annealed_importance_sampling(
            key, self._model().log_density, base, num_particles=num_particles,
            num_steps=num_steps,
        )  # fmt: skip

    def log_likelihood(
        self, points: Particles, log_normalizer: LogNormalizer
    ) -> Float[Array, " point"]:
        r"""Return $\log p(x)$ of each point, in nats.

        Args:
            points: Such as data that was held out.
            log_normalizer: What `log_normalizer` gave.
        """
        points = jax.vmap(self.start.group.project)(points)
        values = jax.lax.map(self.log_density, points, batch_size=256)
        return values - log_normalizer.value

    def _model(self, label: int | np.integer | None = None) -> AbstractEnergy:
        """Return the energy of the model or of a class, divided by T."""
        temperature = self.config.temperature
        if label is None:
            return tempered(self.energy, temperature)
        if not isinstance(self.energy, JointEnergy):
            raise ValueError(
                f"`label` was {label!r}, but this energy has no classes: leave it out, "
                "or fit a JointEnergy to labelled data."
            )
        num = self.energy.num_classes(self.start.center.shape)
        integer = isinstance(label, int | np.integer) and not isinstance(label, bool)
        if not integer or not 0 <= label < num:
            raise ValueError(
                f"`label` must be a class from 0 to {num - 1}, but got {label!r}."
            )
        return self.energy.given(int(label), temperature)


class DivergenceError(FloatingPointError):
    """A fit diverged more often than it was allowed to go back.

    Attributes:
        fitted: The last good state, with the history and the events up to the end.
    """

    def __init__(self, message: str, fitted: Fitted):
        super().__init__(message)
        self.fitted = fitted
