"""Numbers that tell how well chains and particles did, of arrays alone."""

from equistein.diagnostics._effective_sample_size import (
    effective_sample_size as effective_sample_size,
)
from equistein.diagnostics._split_r_hat import split_r_hat as split_r_hat
