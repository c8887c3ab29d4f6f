"""Which average a kernel takes over a group."""

from equistein._gate import gate
from equistein._types import Key
from equistein.groups import (
    AbstractGroup,
    Orthogonal,
    Permutations,
    PointCloud,
    SignedPermutations,
    Signs,
    SpecialOrthogonal,
    TorusTranslations,
)
from equistein.kernels._periodic_rbf import PeriodicRBF
from equistein.kernels._radial import AbstractRadialKernel, check_radial, RBF
from equistein.kernels.averages._base import AbstractAverage
from equistein.kernels.averages._closed_form import AbstractClosedForm
from equistein.kernels.averages._cloud_copies import enumerable, MAX_PERMUTATIONS
from equistein.kernels.averages._elements import Elements, relative_sample
from equistein.kernels.averages._labels import LabelAverage, MAX_LABELS
from equistein.kernels.averages._planar import PlanarAverage
from equistein.kernels.averages._spatial import SpatialAverage
from equistein.kernels.averages._torus import TorusAverage
from equistein.kernels.averages._vector import VectorAverage

_MAX_ELEMENTS = 4_000  # six labels, five with signs


def average_over(
    name: str,
    base: AbstractRadialKernel,
    group: AbstractGroup,
    num_samples: int | None = None,
    key: Key | None = None,
) -> AbstractAverage:
    """Return the average of a kernel over a group that is exact, or a Haar sample.

    Args:
        name: The name of the kernel that takes it, for errors.
        base: The radial kernel.
        group: The group.
        num_samples: The number of Haar draws; None for the exact average.
        key: The key of the Haar sample.

    Raises:
        ValueError: If `base` is not radial, `group` is no group, or no average over it
            is exact and no sample is asked for.
    """
    check_radial(name, base)
    if num_samples is None:
        form = label_average(base, group) or torus_average(base, group)
        form = form or closed_form(base, group)
        if form is not None:
            return form
    return elements_of(name, group, num_samples, key)


def elements_of(
    name: str,
    group: AbstractGroup,
    num_samples: int | None = None,
    key: Key | None = None,
) -> Elements:
    """Return all elements of a finite group, or relative elements of a Haar sample.

    As `average_over`, for a kernel that has no closed form.
    """
    if not isinstance(group, AbstractGroup):
        raise ValueError(f"{name} needs `group`, such as Cyclic(4), but got {group!r}.")
    if num_samples is None:
        if group.order is not None and group.order <= _MAX_ELEMENTS:
            return Elements(group, group.elements())
        why = ""
        if group.order is not None:
            why = (
                f": it has {group.order} elements, of which {_MAX_ELEMENTS} can be "
                "enumerated"
            )
        if isinstance(group, PointCloud) and not enumerable(group):
            why = (
                f": the species allow {group.num_permutations} permutations, of which "
                f"{MAX_PERMUTATIONS} can be enumerated"
            )
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


@gate
def closed_form(
    base: AbstractRadialKernel, group: AbstractGroup
) -> AbstractClosedForm | None:
    """Return the Gaussian kernel's average over rotations, or None if none is known."""
    if not isinstance(base, RBF):
        return None
    if isinstance(group, Orthogonal | SpecialOrthogonal) and group.dim in (2, 3):
        turns = isinstance(group, SpecialOrthogonal) and group.dim == 2
        return VectorAverage(group, turns)
    if isinstance(group, PointCloud) and enumerable(group):
        if group.dim == 2:
            return PlanarAverage(group)
        if group.dim == 3:
            return SpatialAverage(group)
    return None


def label_average(
    base: AbstractRadialKernel, group: AbstractGroup
) -> LabelAverage | None:
    """Return the Gaussian kernel's average over labels, or None if none is known."""
    if not isinstance(group, Permutations | Signs | SignedPermutations):
        return None
    permutes, has_signs = (
        not isinstance(group, Signs),
        not isinstance(group, Permutations),
    )
    gaussian = isinstance(base, RBF) or (
        isinstance(base, PeriodicRBF) and not has_signs
    )
    few = group.labels.num <= MAX_LABELS or not permutes
    if not gaussian or not few or not group.labels.are_separate:
        return None
    return LabelAverage(group, permutes, has_signs)


def torus_average(
    base: AbstractRadialKernel, group: AbstractGroup
) -> TorusAverage | None:
    """Return the average over shifts of all phases of a kernel that wraps, or None."""
    if not isinstance(group, TorusTranslations):
        return None
    if not isinstance(base, PeriodicRBF) or base.periodic.periods != group.periods:
        raise ValueError(
            f"A kernel averaged over {group} needs `base`, a PeriodicRBF with the same "
            f"`periods`, but got {base}."
        )
    return TorusAverage(group)
