"""How far samples of a particle system are from exact ones."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import linear_sum_assignment

from equistein._types import LogDensity, Particles, Scalar
from equistein.groups import PointCloud
from equistein.kernels import orbit_distances

