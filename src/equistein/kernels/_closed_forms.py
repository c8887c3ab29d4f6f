"""The groups whose averages of the Gaussian kernel are known in closed form."""

from equistein.groups import AbstractGroup
from equistein.kernels._closed_form import AbstractClosedForm
from equistein.kernels._planar_average import PlanarAverage
from equistein.kernels._spatial_average import SpatialAverage
from equistein.kernels._vector_average import VectorAverage


def closed_form(group: AbstractGroup) -> AbstractClosedForm | None:
    """Return the average over a group in closed form, or None where none is known."""
    for form in (VectorAverage, PlanarAverage, SpatialAverage):
        if form.covers(group):
            return form(group)  # type: ignore[arg-type]
    return None
