"""Which average a kernel takes over a group."""

from equistein._check_arguments import check_arguments
from equistein._types import Key
from equistein.groups import (
    AbstractCloud,
    AbstractGroup,
    Orthogonal,
    Permutations,
    SignedPermutations,
    Signs,
    SpecialOrthogonal,
    TorusTranslations,
)
from equistein.kernels._radial import AbstractRadialKernel, PeriodicRBF, RBF
from equistein.kernels.averages._base import (
    AbstractAverage,
    AbstractClosedForm,
    AverageOverElements,
    relative_sample,
)
from equistein.kernels.averages._clouds import (
    MAX_PERMUTATIONS,
    PlanarAverage,
    SpatialAverage,
)
from equistein.kernels.averages._labels import LabelAverage, MAX_LABELS
from equistein.kernels.averages._vector import TorusAverage, VectorAverage

_MAX_ELEMENTS = 4_000  # six labels, five with signs


def average_over(
    base: AbstractRadialKernel,
    group: AbstractGroup,
    num_samples: int | None = None,
    key: Key | None = None,
) -> AbstractAverage:
    """Return the exact average of a kernel over a group, or that of a Haar sample."""
    if num_samples is None:
        form = _label_average(base, group) or _torus_average(base, group)
        form = form or closed_form(base, group)
        if form is not None:
            return form
    return average_over_elements("Equivariant", group, num_samples, key)


def average_over_elements(
    name: str,
    group: AbstractGroup,
    num_samples: int | None = None,
    key: Key | None = None,
) -> AverageOverElements:
    """Return all elements of a finite group, or relative elements of a Haar sample."""
    if num_samples is None:
        if group.order is not None and group.order <= _MAX_ELEMENTS:
            return AverageOverElements(group, group.elements())
        why = ""
        if group.order is not None:
            why = f": it has {group.order} elements, above the limit of {_MAX_ELEMENTS}"
        elif isinstance(group, AbstractCloud):
            why = f" ({group.num_permutations} permutations; RBF has one, in 2 and 3 "
            why += f"dimensions, for at most {MAX_PERMUTATIONS})"
        raise ValueError(
            f"{name} has no exact average over {group} for this kernel{why}: use "
            "Pullback or Gradient with invariant features such as PairHistogram("
            "species), or give `num_samples` (16, say) and `key` to average over a "
            "Haar sample."
        )
    if key is None or num_samples < 1:
        raise ValueError(
            f"{name} with a Haar sample needs `num_samples` >= 1 and a `key`, but got "
            f"num_samples={num_samples!r} and key={key!r}."
        )
    return relative_sample(group, key, num_samples)


@check_arguments
def closed_form(
    base: AbstractRadialKernel, group: AbstractGroup
) -> AbstractClosedForm | None:
    """Return the Gaussian kernel's average over rotations, or None if none is known."""
    if not isinstance(base, RBF):
        return None
    if isinstance(group, Orthogonal | SpecialOrthogonal) and group.dim in (2, 3):
        turns = isinstance(group, SpecialOrthogonal) and group.dim == 2
        return VectorAverage(group, turns)
    # Each permutation is a copy of the sources, which would be too many.
    if isinstance(group, AbstractCloud) and group.num_permutations <= MAX_PERMUTATIONS:
        if group.dim == 2:
            return PlanarAverage(group)
        if group.dim == 3:
            return SpatialAverage(group)
    return None


def _label_average(
    base: AbstractRadialKernel, group: AbstractGroup
) -> LabelAverage | None:
    if not isinstance(group, Permutations | Signs | SignedPermutations):
        return None
    permutes = not isinstance(group, Signs)
    has_signs = not isinstance(group, Permutations)
    is_rbf = isinstance(base, RBF) or (isinstance(base, PeriodicRBF) and not has_signs)
    few = group.labels.num <= MAX_LABELS or not permutes
    if not is_rbf or not few or not group.labels.are_separate:
        return None
    return LabelAverage(group, permutes, has_signs)


def _torus_average(
    base: AbstractRadialKernel, group: AbstractGroup
) -> TorusAverage | None:
    if not isinstance(group, TorusTranslations):
        return None
    if not isinstance(base, PeriodicRBF) or base.periodic.periods != group.periods:
        raise ValueError(
            f"A kernel averaged over {group} needs `base`, a PeriodicRBF with the same "
            f"`periods`, but got {base}."
        )
    return TorusAverage(group)
