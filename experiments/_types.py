"""Array types of the experiments."""

from collections.abc import Callable
from typing import TypeAlias

import jaxtyping
from jaxtyping import Array, Float, PRNGKeyArray

Point: TypeAlias = Float[Array, "*shape"]
Particles: TypeAlias = Float[Array, "particle *shape"]
Scalar: TypeAlias = Float[Array, ""]
Key: TypeAlias = PRNGKeyArray
Keys: TypeAlias = jaxtyping.Key[Array, "*run"]
LogDensity: TypeAlias = Callable[[Point], Scalar]
