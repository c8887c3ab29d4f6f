"""Groups by name, as the command line gives them."""

from collections.abc import Hashable, Sequence

from equistein._gate import gate
from equistein.groups._base import AbstractGroup
from equistein.groups._image_rotations import ImageRotations
from equistein.groups._orthogonal import Orthogonal, SpecialOrthogonal
from equistein.groups._permutations import Permutations, SignedPermutations, Signs
from equistein.groups._planar import Cyclic, Dihedral
from equistein.groups._point_cloud import PointCloud
from equistein.groups._product import Direct, Product
from equistein.groups._torus_translations import TorusTranslations
from equistein.groups._trivial import Trivial

_NUMBERED = {
    "cyclic": Cyclic,
    "dihedral": Dihedral,
    "so": SpecialOrthogonal,
    "o": Orthogonal,
    "permutations": Permutations,
    "signs": Signs,
    "signed-permutations": SignedPermutations,
}
_FORMS = (
    "trivial, cyclic:4, dihedral:5, so:3, o:3, permutations:3, signs:2, "
    "signed-permutations:4, torus:6.2832,inf (periods), image-rotations, "
    "image-reflections, point-cloud, product:permutations:3*cyclic:4 or "
    "direct:permutations:3@3x2+trivial@4 (with the shape of each part)"
)


@gate
def parse_group(
    text: str, *, species: Sequence[Hashable] | None = None, dim: int | None = None
) -> AbstractGroup:
    """Return the group that a text such as `cyclic:4` names.

    Args:
        text: One of trivial, cyclic:N, dihedral:N, so:D, o:D, permutations:N, signs:N,
            signed-permutations:N, torus:P,P,... with periods, image-rotations,
            image-reflections (with the rotations), point-cloud; product:A*B of groups
            that act on the same points, and direct:A@3x2+B@4 of groups that act on
            parts of a flat point, whose shapes are given.
        species: For a point cloud, one label for each particle.
        dim: For a point cloud, the dimension of space.

    Raises:
        ValueError: If the text names no group, or a point cloud lacks its arguments.
    """
    name, _, number = text.partition(":")
    inner = lambda text: parse_group(text, species=species, dim=dim)
    if name == "direct" and number:
        parts = [part.rpartition("@") for part in number.split("+")]
        return Direct(*((inner(group), _shape(shape)) for group, _, shape in parts))
    if name == "product" and number:
        return Product(*map(inner, number.split("*")))
    if name == "torus" and number:
        return TorusTranslations(_numbers(number.split(",")))
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


def _shape(text: str) -> tuple[int, ...]:
    sizes = text.split("x")
    if not all(size.isdecimal() for size in sizes):
        raise ValueError(f"A part's shape is sizes such as 3x2, but got {text!r}.")
    return tuple(map(int, sizes))


def _numbers(texts: list[str]) -> list[float]:
    try:
        return [float(text) for text in texts]
    except ValueError:
        raise ValueError(
            f"A torus needs periods such as 6.28,inf, but got {texts}."
        ) from None
