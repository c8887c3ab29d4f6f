"""Groups by name, as the command line gives them."""

from collections.abc import Hashable, Sequence

from equistein.groups._base import AbstractGroup
from equistein.groups._image_rotations import ImageRotations
from equistein.groups._orthogonal import Orthogonal, SpecialOrthogonal
from equistein.groups._planar import Cyclic, Dihedral
from equistein.groups._point_cloud import PointCloud
from equistein.groups._trivial import Trivial

_NUMBERED = {
    "cyclic": Cyclic,
    "dihedral": Dihedral,
    "so": SpecialOrthogonal,
    "o": Orthogonal,
}
_FORMS = (
    "trivial, cyclic:4, dihedral:5, so:3, o:3, image-rotations, image-reflections or "
    "point-cloud"
)


def parse_group(
    text: str, *, species: Sequence[Hashable] | None = None, dim: int | None = None
) -> AbstractGroup:
    """Return the group that a text such as `cyclic:4` names.

    Args:
        text: One of trivial, cyclic:N, dihedral:N, so:D, o:D, image-rotations,
            image-reflections (with the rotations), point-cloud.
        species: For a point cloud, one label for each particle.
        dim: For a point cloud, the dimension of space.

    Raises:
        ValueError: If the text names no group, or a point cloud lacks its arguments.
    """
    name, _, number = text.partition(":")
    if name == "trivial" and not number:
        return Trivial()
    if name in ("image-rotations", "image-reflections") and not number:
        return ImageRotations(reflections=name == "image-reflections")
    if name == "point-cloud" and not number:
        if species is None or dim is None:
            raise ValueError("A point cloud needs `species` and `dim`.")
        return PointCloud(species, dim)
    if name in _NUMBERED and number.isdecimal():
        return _NUMBERED[name](int(number))
    raise ValueError(f"There is no group {text!r}: give {_FORMS}.")
