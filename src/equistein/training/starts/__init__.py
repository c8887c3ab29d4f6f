"""Where particles start: a box around the data, or normal laws like it."""

from equistein.training.starts._base import AbstractStart as AbstractStart
from equistein.training.starts._box import Box as Box
from equistein.training.starts._normals import Normals as Normals
