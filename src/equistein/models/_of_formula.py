"""The learned density of one formula."""

import jax.numpy as jnp

from equistein.diffusion import FormulaGenerator, MaskedNoiseEnergy
from equistein.samplers import Normal
from equistein.training import Fitted


def of_formula(fitted: Fitted, number: int) -> Fitted:
    """Return the density of one of several formulas, by its number in the labels.

    Raises:
        ValueError: If there are not several formulas, or none of this number.
    """
    energy, generator = fitted.energy, fitted.generator
    if not isinstance(energy, MaskedNoiseEnergy):
        raise ValueError(
            "`of_formula` needs the fit of a MaskedNoiseEnergy, but got one of "
            f"{type(energy).__name__}."
        )
    one = energy.given(number)
    assert isinstance(generator, FormulaGenerator)
    center = fitted.reference.center
    shape = (len(energy.formulas[number]), *center.shape[1:])
    reference = Normal(
        jnp.zeros(shape, center.dtype), fitted.reference.scale, one.group(shape)
    )
    about = dict(fitted.about)
    formulas = about.pop("formulas", None)
    if formulas is not None:
        about["atomic_numbers"] = formulas[number]
    return Fitted(
        one, fitted.history, fitted.events, generator.generators[number], reference,
        about,
    )  # fmt: skip
