"""Posteriors: parameters with names and constraints, and exchangeable labels."""

from equistein.posteriors._constraints import (
    AbstractConstraint as AbstractConstraint,
    Interval as Interval,
    Positive as Positive,
    Real as Real,
    Simplex as Simplex,
    Wrapped as Wrapped,
)
from equistein.posteriors._from_numpyro import from_numpyro as from_numpyro
from equistein.posteriors._parameters import Parameters as Parameters
from equistein.posteriors._pilot import Pilot as Pilot
from equistein.posteriors._posterior import Posterior as Posterior
from equistein.posteriors._posterior_samples import (
    LabelSwitchingWarning as LabelSwitchingWarning,
    PosteriorSamples as PosteriorSamples,
)
from equistein.posteriors._reading import (
    plot as plot,
    relabel as relabel,
    to_arviz as to_arviz,
)
