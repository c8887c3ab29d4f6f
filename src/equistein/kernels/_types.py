"""The array types of sums over pairs of points."""

from typing import TypeAlias

from jaxtyping import Array, Float

Targets: TypeAlias = Float[Array, "target *shape"]
Sources: TypeAlias = Float[Array, "source *shape"]  # and the scores there
TargetRows: TypeAlias = Float[Array, "target dim"]
SourceRows: TypeAlias = Float[Array, "source dim"]
Pairs: TypeAlias = Float[Array, "target source"]
