"""Fit an energy to data, and draw from what was learned."""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Key, Particles, Point, Scalar
from equistein.energies import AbstractEnergy, JointEnergy
from equistein.groups import check_invariance
from equistein.kernels import AbstractKernel, RBF
from equistein.metrics import annealed_importance_sampling, LogNormalizer
from equistein.samplers import (
    AbstractSampler,
    check_particles,
    progress_bar,
    run,
)
from equistein.targets import Normal
from equistein.training._checkpoint import load_checkpoint, save_checkpoint
from equistein.training._config import FitConfig
from equistein.training._labels import check_labels
from equistein.training._lengths import Lengths
from equistein.training._log import TrainingLog
from equistein.training._samplers import final_sampler
from equistein.training._start import Box
from equistein.training._trainer import tempered, Trainer, TrainState, weight_optimizer


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
    start: Box
    kernel: AbstractKernel
    config: FitConfig
    lengths: Lengths

    def log_density(self, point: Point) -> Scalar:
        r"""Return $-E(x) / T$, the log density up to $\log Z$."""
        return tempered(self.energy, self.config.temperature).log_density(point)

    def sample(
        self,
        key: Key,
        num: int,
        *,
        label: int | None = None,
        progress: bool = False,
    ) -> Particles:
        """Draw new samples from fresh starts.

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
        energy = self.energy if label is None else self._class_energy(label)
        log_density = tempered(energy, self.config.temperature).log_density
        sampler = final_sampler(self.config, self.lengths, self.kernel, self.start)
        at_once = min(num, self.config.sample_at_once)
        drawn = []
        for index in progress_bar(range(-(-num // at_once)), disable=not progress):
            start_key, run_key = jr.split(jr.fold_in(key, index))
            samples = run(
                run_key,
                sampler,
                log_density,
                self.start.sample(start_key, at_once),
                num_steps=self.config.sample_steps,
                check=False,  # the energy was checked when it was fitted
            )
            drawn.append(samples.particles)
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
            key, self.log_density, base, num_particles=num_particles,
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
        return jax.vmap(self.log_density)(points) - log_normalizer.value

    def _class_energy(self, label: int) -> AbstractEnergy:
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
        return self.energy.given(int(label))


class DivergenceError(FloatingPointError):
    """A fit diverged more often than it was allowed to go back.

    Attributes:
        fitted: The last good state, with the history and the events up to the end.
    """

    def __init__(self, message: str, fitted: Fitted):
        super().__init__(message)
        self.fitted = fitted


def fit(
    key: Key,
    energy: AbstractEnergy,
    data: Particles,
    config: FitConfig | None = None,
    *,
    labels: Any = None,
    kernel: AbstractKernel | None = None,
    sampler: AbstractSampler | None = None,
    checkpoint: pathlib.Path | None = None,
    monitor: Callable[[AbstractEnergy], Mapping[str, Scalar]] | None = None,
    monitor_every: int = 1,
    progress: bool = False,
    on_epoch: Callable[[dict[str, float]], None] | None = None,
) -> Fitted:
    """Fit an energy to data by contrastive divergence, score matching, or both.

    A fit that diverges goes back to its last good state and tries again with half the
    steps and new randomness, as often as the settings allow.

    Args:
        key: The source of randomness.
        energy: The energy to train, such as `es.energies.energy_for(...)` gives.
        data: The data, stacked on axis 0.
        config: The settings; the defaults suit small particle systems.
        labels: For a `JointEnergy` the class of each point, -1 where it is unknown; for
            another energy the known energy of each point, NaN where it is unknown.
        kernel: The kernel of the negatives; by default that of the energy's symmetry.
        sampler: Any sampler of the negatives, instead of the one in the settings; its
            steps stay as they are.
        checkpoint: A file written after each epoch. If it is there already, the fit
            goes on from it, to the same numbers as without the interruption.
        monitor: A function of the averaged energy whose numbers join the history.
        monitor_every: The number of epochs between two looks; others have NaN.
        progress: Whether to show a progress bar.
        on_epoch: Called with the numbers of each epoch.

    Returns:
        The learned density.

    Raises:
        ValueError: If the data, the labels or the energy is not what it should be.
        CheckpointError: If the checkpoint does not fit the settings.
        DivergenceError: If the fit diverged once too often; it holds the last good
            state, and so does the checkpoint.
    """
    config = config or FitConfig()
    data = check_data(data, config.batch_size)
    shape = data.shape[1:]
    known = check_labels(labels, energy, len(data), shape)
    group = energy.group(shape)
    data = jax.vmap(group.project)(data)
    check_invariance(energy.log_density, group, data)
    kernel = kernel or choose_kernel(energy, config, shape)
    kernel.check_shape(shape)
    start = Box(data, group)
    header = {
        "settings": dataclasses.asdict(config),
        "data": [*data.shape, str(data.dtype)],
        "labels": None if known is None else str(known.dtype),
        "key": jr.key_data(key).tolist(),
    }
    lengths = Lengths(config, start.reach)
    optimizer = weight_optimizer(config, len(data) // config.batch_size)
    trainer = Trainer(config, lengths, kernel, optimizer, start, sampler)
    state = trainer.init(key, energy)
    watch = _Monitor(monitor, monitor_every)
    log = TrainingLog.empty(config, _columns(trainer, state, data, known, watch))
    good = state
    if checkpoint is not None and checkpoint.exists():
        like = (state, good, log.arrays)
        state, good, arrays = load_checkpoint(checkpoint, like, header)
        log = TrainingLog(arrays)

    def fitted(state):
        return Fitted(
            state.average, state.particles, log.history(), log.events(), start, kernel,
            config, lengths,
        )  # fmt: skip

    def save():
        if checkpoint is not None:
            save_checkpoint(checkpoint, (state, good, log.arrays), header)

    done = int(state.epoch)
    bar = progress_bar(
        initial=done, total=config.num_epochs, disable=not progress, unit="epoch"
    )
    with bar:
        while int(state.epoch) < config.num_epochs:
            epoch = int(state.epoch)
            if log.num_events > config.max_rollbacks:
                raise DivergenceError(log.verdict(config), fitted(good))
            new, infos = trainer.epoch(state, data, known)
            row = _means(infos)
            why = _trouble(infos, config)
            if why is not None:
                log.add_event(epoch + 1, why, row["largest_energy"], good)
                state = good = _rolled_back(good, log.num_events)
                save()
                bar.n = int(state.epoch)
                bar.write(f"Diverged: {log.events()[-1]['text']}")
                continue
            state = new
            row |= watch(state, config)
            log.add_row(epoch, row)
            if (epoch + 1) % _between_good_states(config) == 0:
                good = state
            save()
            if on_epoch is not None:
                on_epoch({"epoch": epoch + 1, **row})
            bar.update()
            bar.set_postfix(_shown(row), refresh=False)
    return fitted(state)


def check_data(data: Any, batch_size: int) -> Particles:
    """Return the data as an array of finite points, at least a batch of them.

    Raises:
        ValueError: If it is not.
    """
    data = check_particles(data, "data")
    if len(data) < 2:
        raise ValueError(f"`fit` needs at least two data points, but got {len(data)}.")
    if len(data) < batch_size:
        raise ValueError(
            f"`data` holds {len(data)} points, fewer than a batch of {batch_size}: "
            f"give a `batch_size` of at most {len(data)}."
        )
    return data


def choose_kernel(
    energy: AbstractEnergy, config: FitConfig, shape: tuple[int, ...]
) -> AbstractKernel:
    """Return the kernel that the settings name."""
    if config.negatives == "esvgd":
        return energy.kernel(shape, config.bandwidth)
    return RBF(config.bandwidth)


class _Monitor:
    """The user's function of the energy, compiled and called now and then."""

    def __init__(self, function: Callable | None, every: int):
        self.function = function
        self.compiled = None if function is None else eqx.filter_jit(function)
        self.every = every

    def names(self, energy: AbstractEnergy) -> list[str]:
        if self.function is None:
            return []
        return list(eqx.filter_eval_shape(self.function, energy))

    def __call__(self, state: TrainState, config: FitConfig) -> dict[str, float]:
        if self.compiled is None:
            return {}
        epoch = int(state.epoch)
        if epoch % self.every and epoch != config.num_epochs:
            return {name: float("nan") for name in self.names(state.average)}
        return {k: float(v) for k, v in self.compiled(state.average).items()}


def _columns(trainer, state, data, labels, watch: _Monitor) -> list[str]:
    """Return the names of the history's columns."""
    _, infos = eqx.filter_eval_shape(trainer.epoch, state, data, labels)
    used = [name for name, value in vars(infos).items() if value is not None]
    used.remove("is_finite")
    return [*used, "scale", *watch.names(state.average)]


def _means(infos) -> dict[str, float]:
    """Return the means over an epoch's batches, and the largest of the largest."""
    row = {
        name: float(np.mean(value))
        for name, value in vars(infos).items()
        if value is not None and name != "is_finite"
    }
    row["largest_energy"] = float(np.max(infos.largest_energy))
    return row


def _trouble(infos, config: FitConfig) -> str | None:
    """Return why an epoch is not to be kept, or None."""
    if not bool(np.all(infos.is_finite)):
        return "not finite"
    if float(np.max(infos.largest_energy)) > config.energy_limit:
        return "energy limit"
    return None


def _rolled_back(good: TrainState, attempt: int) -> TrainState:
    """Return the last good state with half the steps and a new key."""
    key = jr.fold_in(jr.wrap_key_data(good.key), attempt)
    return eqx.tree_at(
        lambda s: (s.scale, s.key), good, (good.scale / 2, jr.key_data(key))
    )


def _between_good_states(config: FitConfig) -> int:
    return max(1, config.num_epochs // 20)


def _shown(row: dict[str, float]) -> dict[str, str]:
    shown = {}
    if "negative_energy" in row:
        shown["gap"] = f"{row['positive_energy'] - row['negative_energy']:.2f}"
    if "accuracy" in row:
        shown["accuracy"] = f"{row['accuracy']:.3f}"
    return shown or {"loss": f"{row['loss']:.3f}"}
