"""Scalar kernels, bandwidth rules, and the ways to make kernels symmetric."""

from equistein.kernels._bandwidth import (
    AbstractBandwidth as AbstractBandwidth,
    Median as Median,
)
from equistein.kernels._base import (
    AbstractKernel as AbstractKernel,
    AbstractScalarKernel as AbstractScalarKernel,
    measured_bandwidth as measured_bandwidth,
    Prepared as Prepared,
)
from equistein.kernels._equivariant import (
    Equivariant as Equivariant,
    Invariant as Invariant,
)
from equistein.kernels._on_features import (
    Gradient as Gradient,
    Moments as Moments,
    Pullback as Pullback,
)
from equistein.kernels._preconditioner import (
    PointSums as PointSums,
    Preconditioner as Preconditioner,
)
from equistein.kernels._radial import (
    AbstractRadialKernel as AbstractRadialKernel,
    IMQ as IMQ,
    PeriodicRBF as PeriodicRBF,
    RBF as RBF,
)
from equistein.kernels.averages._base import (
    AbstractAverage as AbstractAverage,
    AbstractClosedForm as AbstractClosedForm,
)
from equistein.kernels.averages._choose import closed_form as closed_form
