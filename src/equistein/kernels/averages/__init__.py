"""Averages over a group: what makes a radial kernel symmetric."""

from equistein.kernels.averages._base import AbstractAverage as AbstractAverage
from equistein.kernels.averages._closed_form import (
    AbstractClosedForm as AbstractClosedForm,
)
from equistein.kernels.averages._elements import Elements as Elements
from equistein.kernels.averages._table import (
    average_over as average_over,
    closed_form as closed_form,
    elements_of as elements_of,
)
