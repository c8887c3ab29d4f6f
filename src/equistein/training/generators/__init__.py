"""How new points are drawn from a learned energy."""

from equistein.training.generators._base import (
    AbstractGenerator as AbstractGenerator,
    check_num as check_num,
    in_parts as in_parts,
)
from equistein.training.generators._sampling import (
    SamplingGenerator as SamplingGenerator,
)
