"""A sampler from fresh starts."""

import dataclasses

import equinox as eqx
import jax
import jax.random as jr

from equistein._numbers import check_integers
from equistein._types import Key, LogDensity, Particles, Scalar
from equistein.energies import AbstractEnergy
from equistein.samplers import AbstractSampler, run
from equistein.training.generators._base import AbstractGenerator, Condition
from equistein.training.generators._clamp import parts_of
from equistein.training.generators._held import HeldDensity, HeldSampler
from equistein.training.initial._base import AbstractInitial


class SamplingGenerator(AbstractGenerator[AbstractEnergy]):
    """Runs a sampler from fresh starts.

    Args:
        sampler: Such as `SVGD(kernel, optax.sgd(0.1), langevin=0.01)`.
        initial: Where points start, such as `Box(data, group)`.
        num_steps: The number of steps.
        num_at_once: The number of points drawn together; their forces join.

    Raises:
        ValueError: If an argument is not what it should be.
    """

    sampler: AbstractSampler
    initial: AbstractInitial
    _: dataclasses.KW_ONLY
    num_steps: int = 1_500
    num_at_once: int = 512

    def __check_init__(self):
        owner = "SamplingGenerator"
        if not isinstance(self.sampler, AbstractSampler):
            raise ValueError(
                f"{owner} needs `sampler`, one such as SVGD(kernel, optimizer), but "
                f"got {self.sampler!r}."
            )
        check_integers(owner, num_steps=self.num_steps, num_at_once=self.num_at_once)

    def draw(
        self, key: Key, energy: AbstractEnergy, num: int, condition: Condition
    ) -> Particles:
        label, clamp = parts_of(condition)
        model = energy if label is None else energy.given(label)
        label = None if label is None else int(label)
        start_key, run_key = jr.split(key)
        start = self.initial.sample(start_key, num, label)
        if clamp is None:
            return self._run(run_key, self.sampler, model.log_density, start)
        clamp.check_shape(start.shape[1:])
        held = HeldDensity(model, clamp)
        start = jax.vmap(held.hold)(start)
        points = self._run(run_key, HeldSampler(self.sampler), held, start)
        return jax.vmap(held.restore)(points)

    def scaled(self, factor: Scalar) -> "SamplingGenerator":
        sampler = self.sampler.scaled(factor)
        return eqx.tree_at(lambda g: g.sampler, self, sampler)

    def _run(
        self,
        key: Key,
        sampler: AbstractSampler,
        log_density: LogDensity,
        start: Particles,
    ) -> Particles:
        return run(
            key, sampler, log_density, start, num_steps=self.num_steps,
            check=False,  # the energy was checked when it was fitted
        ).particles  # fmt: skip
