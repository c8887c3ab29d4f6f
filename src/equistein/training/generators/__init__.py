"""How new points are drawn from a learned energy."""

from equistein.training.generators._base import (
    AbstractGenerator as AbstractGenerator,
    in_parts as in_parts,
)
from equistein.training.generators._sampling import (
    SamplingGenerator as SamplingGenerator,
)
