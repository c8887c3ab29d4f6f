"""Shared array types. One name per concept, spelled the same everywhere."""

from collections.abc import Callable
from typing import TypeAlias

import jaxtyping
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, UInt32

Point: TypeAlias = Float[Array, "*shape"]
Particles: TypeAlias = Float[Array, "particle *shape"]
Features: TypeAlias = Float[Array, " feature"]
Scalar: TypeAlias = Float[Array, ""]
Key: TypeAlias = PRNGKeyArray
Keys: TypeAlias = jaxtyping.Key[Array, "*run"] | UInt32[Array, "*run word"]
AnyKey: TypeAlias = Key | int | np.integer
"""A key, or an integer that makes one."""

LogDensity: TypeAlias = Callable[[Point], Scalar]
