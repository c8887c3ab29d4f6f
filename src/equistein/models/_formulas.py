"""The learned density of one formula."""

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from equistein._gate import gate
from equistein.diffusion import (
    DiffusionSteps,
    FormulaGenerator,
    MaskedNoiseEnergy,
    NoiseEnergy,
    ReverseDiffusion,
)
from equistein.models._energies import kernel_for
from equistein.molecules import atomic_numbers_of, atoms_of, formula, symbols_of
from equistein.networks import EGNN
from equistein.samplers import Normal
from equistein.training import AbstractGenerator, Fitted


@gate
def formulas_of(fitted: Fitted) -> tuple[str, ...]:
    """Return the formulas that a fit has learned, by number; none without elements."""
    return tuple(formula(symbols_of(row)) for row in _rows(fitted))


def _rows(fitted: Fitted) -> Sequence[Sequence[int]]:
    """Return the atomic numbers of each formula."""
    one = fitted.about.get("atomic_numbers")
    return fitted.about.get("formulas") or ([one] if one else [])


@gate
def of_formula(fitted: Fitted, wanted: int | np.integer | str) -> Fitted:
    """Return the density of one formula, which may be one that training never saw.

    The network takes atoms of any kind that it has learned; how good molecules of
    another formula are is for scores to tell. Atoms of a new formula are in the order
    of the alphabet.

    Args:
        fitted: A fit of molecules.
        wanted: One of several formulas by its number in the labels, or any by its
            name, such as C4H8O.

    Raises:
        ValueError: If there are not several formulas, none of this number, or an
            element that the fit does not know.
    """
    energy, generator = fitted.energy, fitted.generator
    if isinstance(wanted, str):
        names, asked = formulas_of(fitted), formula(atoms_of(wanted))
        if asked not in names:
            return _of_new_formula(fitted, asked)
        if not isinstance(energy, MaskedNoiseEnergy):
            return fitted
        wanted = names.index(asked)
    if not isinstance(energy, MaskedNoiseEnergy):
        raise ValueError(
            "`of_formula` needs the fit of a MaskedNoiseEnergy, but got one of "
            f"{type(energy).__name__}."
        )
    one = energy.given(wanted)
    assert isinstance(generator, FormulaGenerator)
    numbers = fitted.about.get("formulas") and fitted.about["formulas"][wanted]
    return _of_one(fitted, one, generator.generators[wanted], numbers)


def _of_new_formula(fitted: Fitted, wanted: str) -> Fitted:
    """Return the density of a formula that training never saw."""
    energy, generator, formulas = fitted.energy, fitted.generator, None
    if isinstance(energy, MaskedNoiseEnergy):
        assert isinstance(generator, FormulaGenerator)
        formulas, generator = energy.formulas, generator.generators[0]
        energy = energy.energy
    network = energy.network if isinstance(energy, NoiseEnergy) else None
    rows, drawn = _rows(fitted), isinstance(generator, ReverseDiffusion)
    if not rows or not drawn or not isinstance(network, EGNN):
        raise ValueError(
            f"`wanted` is {wanted}, but this is no fit of a graph network to molecules."
        )
    kind_of = {
        number: kind
        for row, kinds in zip(rows, formulas or [network.species], strict=True)
        for number, kind in zip(row, kinds, strict=True)
    }
    numbers = list(atomic_numbers_of(sorted(atoms_of(wanted))))
    unknown = sorted(set(numbers) - set(kind_of))
    if unknown or len(numbers) < 2:
        missing = ", ".join(symbols_of(unknown)) or "one atom only"
        raise ValueError(
            f"{wanted} has {missing}, but this fit knows molecules of the elements "
            f"{', '.join(sorted(symbols_of(list(kind_of))))}, of two atoms at least."
        )
    kinds = tuple(kind_of[number] for number in numbers)
    one = eqx.tree_at(lambda e: e.network, energy, network.of(kinds))
    shape = (len(kinds), *generator.shape[1:])
    steps = generator.steps
    if isinstance(steps, DiffusionSteps) and steps.kernel is not None:
        steps = dataclasses.replace(steps, kernel=kernel_for(one, shape))
    new = ReverseDiffusion(steps, shape, generator.num_at_once)
    return _of_one(fitted, one, new, numbers)


def _of_one(
    fitted: Fitted,
    energy: NoiseEnergy,
    generator: AbstractGenerator,
    numbers: Sequence[int] | None,
) -> Fitted:
    """Return a fit whose energy and generator are those of one formula."""
    assert isinstance(generator, ReverseDiffusion)
    origin = jnp.zeros(generator.shape, fitted.reference.center.dtype)
    reference = Normal(origin, fitted.reference.scale, energy.group(origin.shape))
    about = {k: v for k, v in fitted.about.items() if k != "formulas"}
    if numbers is not None:
        about["atomic_numbers"] = list(numbers)
    return dataclasses.replace(
        fitted, energy=energy, generator=generator, reference=reference, about=about
    )
