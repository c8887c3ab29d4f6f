"""Posteriors: parameters with names and constraints, and the swaps of their labels."""

from equistein.posteriors._constraints import (
    AbstractConstraint as AbstractConstraint,
    Interval as Interval,
    Positive as Positive,
    Real as Real,
    Simplex as Simplex,
    Wrapped as Wrapped,
)
from equistein.posteriors._parameters import Parameters as Parameters
from equistein.posteriors._posterior import Posterior as Posterior
