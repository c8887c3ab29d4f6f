"""Shared array types. One name per concept, spelled the same everywhere."""

from collections.abc import Callable
from typing import TypeAlias

from jaxtyping import Array, Float, PRNGKeyArray

Point: TypeAlias = Float[Array, "*shape"]
Particles: TypeAlias = Float[Array, "particle *shape"]
Features: TypeAlias = Float[Array, " feature"]
Scalar: TypeAlias = Float[Array, ""]
Key: TypeAlias = PRNGKeyArray
LogDensity: TypeAlias = Callable[[Point], Scalar]
