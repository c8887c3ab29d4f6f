"""New points by reverse diffusion."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from equistein._numbers import check_integers
from equistein._types import Key, Particles, Scalar
from equistein.diffusion._masked_energy import MaskedNoiseEnergy
from equistein.diffusion._noise_energy import NoiseEnergy
from equistein.diffusion._steps import DiffusionSteps
from equistein.samplers import NonFiniteError, Samples
from equistein.training import AbstractGenerator, Condition


class ReverseDiffusion(AbstractGenerator[NoiseEnergy]):
    """Moves points from the largest noise to the least, and takes that off too.

    The least noise is taken off by Tweedie's rule, `NoiseEnergy.denoised`.

    Args:
        steps: The steps, such as `DiffusionSteps(step_sizes, 800)`.
        shape: The shape of a point.
        num_at_once: The number of points drawn together; their Stein forces join.
    """

    steps: DiffusionSteps
    shape: tuple[int, ...]
    num_at_once: int

    def __init__(
        self, steps: DiffusionSteps, shape: tuple[int, ...], num_at_once: int = 128
    ):
        check_integers("ReverseDiffusion", num_at_once=num_at_once)
        self.steps, self.shape, self.num_at_once = steps, shape, num_at_once

    def draw(
        self, key: Key, energy: NoiseEnergy, num: int, condition: Condition
    ) -> Particles:
        if condition is not None:
            energy.given(condition)  # refuses it: there is one kind of points
        start_key, run_key = jr.split(key)
        start = energy.start(start_key, num, self.shape)
        points = _reversed(run_key, energy, self.steps, start)
        if not bool(jnp.all(jnp.isfinite(points))):
            raise NonFiniteError(
                "New samples were not finite: the energy was not learned. Train it "
                "longer, or with a smaller learning rate.",
                self.steps.num_steps,
                Samples(start, {}, 0, False, None),
            )
        return points

    def scaled(self, factor: Scalar) -> "ReverseDiffusion":
        return ReverseDiffusion(self.steps.scaled(factor), self.shape, self.num_at_once)


class FormulaGenerator(AbstractGenerator[MaskedNoiseEnergy]):
    """A generator for each formula of a `MaskedNoiseEnergy`.

    Args:
        generators: One for each formula, in the order of their numbers.
    """

    generators: tuple[AbstractGenerator, ...]

    def __init__(self, generators: tuple[AbstractGenerator, ...]):
        self.generators = generators

    @property
    def num_at_once(self) -> int:  # type: ignore[override]
        """The number of points drawn together, the same for all formulas."""
        return self.generators[0].num_at_once

    def draw(
        self, key: Key, energy: MaskedNoiseEnergy, num: int, condition: Condition
    ) -> Particles:
        """Draw molecules of one formula.

        Raises:
            ValueError: If there is no formula of the number `condition`.
        """
        if condition is None:
            raise ValueError(
                "This fit knows several formulas: give the number of one as `label`, "
                f"from 0 to {len(self.generators) - 1}."
            )
        model = energy.given(condition)
        return self.generators[int(condition)].draw(key, model, num, None)

    def scaled(self, factor: Scalar) -> "FormulaGenerator":
        return FormulaGenerator(tuple(each.scaled(factor) for each in self.generators))


@eqx.filter_jit
def _reversed(
    key: Key, energy: NoiseEnergy, steps: DiffusionSteps, start: Particles
) -> Particles:
    """Move particles from the largest noise to the least, and take that off too."""
    first = jnp.zeros((), int)
    particles = steps.run(key, energy, start, first, steps.num_steps)
    denoised = jax.vmap(energy.denoised)(particles)
    return jax.vmap(energy.project)(denoised)
