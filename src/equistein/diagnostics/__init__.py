"""Numbers that tell how well chains and particles did, of arrays alone."""

from equistein.diagnostics._effective_sample_size import (
    effective_sample_size as effective_sample_size,
)
