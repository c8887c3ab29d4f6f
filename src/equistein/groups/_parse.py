"""Groups by name, as the command line gives them."""

from equistein._check_arguments import check_arguments
from equistein.groups._base import AbstractGroup, Trivial
from equistein.groups._periodic import TorusTranslations
from equistein.groups._permutations import Permutations, SignedPermutations, Signs
from equistein.groups._product import Direct, Product
from equistein.groups._rotations import (
    Cyclic,
    Dihedral,
    ImageRotations,
    Orthogonal,
    SpecialOrthogonal,
)

_NUMBERED = {
    "cyclic": Cyclic, "dihedral": Dihedral, "so": SpecialOrthogonal, "o": Orthogonal,
    "permutations": Permutations, "signs": Signs,
    "signed-permutations": SignedPermutations,
}  # fmt: skip
_FORMS = (
    f"one of {', '.join(_NUMBERED)} with a number, as cyclic:4, trivial, "
    "torus:6.2832,inf (periods), image-rotations, image-reflections, point-cloud, "
    "product:permutations:3*cyclic:4 or direct:permutations:3@3x2+trivial@4 (shapes)"
)


@check_arguments
def parse_group(text: str) -> AbstractGroup:
    """Return the group that a text such as `cyclic:4` names.

    Args:
        text: trivial, image-rotations, image-reflections (and rotations), torus:P,P,...
            with periods, product:A*B on the same points, direct:A@3x2+B@4 on parts of a
            flat point with these shapes, or, with a number, cyclic, dihedral, so, o,
            permutations, signs and signed-permutations.
    """
    name, _, number = text.partition(":")
    if name == "direct" and number:
        parts = [part.rpartition("@") for part in number.split("+")]
        pairs = ((parse_group(one), _numbers(s, "x", int)) for one, _, s in parts)
        return Direct(*pairs)
    if name == "product" and number:
        return Product(*map(parse_group, number.split("*")))
    if name == "torus" and number:
        return TorusTranslations(_numbers(number, ",", float))
    if text == "trivial":
        return Trivial()
    if text in ("image-rotations", "image-reflections"):
        return ImageRotations(reflections=text == "image-reflections")
    if text == "point-cloud":
        raise ValueError("A point cloud needs species: give PointCloud(species, dim).")
    if name in _NUMBERED and number.isdecimal():
        return _NUMBERED[name](int(number))
    raise ValueError(f"There is no group {text!r}: give {_FORMS}.")


def _numbers(text: str, separator: str, kind: type) -> list:
    try:
        return [kind(part) for part in text.split(separator)]
    except ValueError:
        needs = "A group needs numbers as in 3x2 or 6.28,inf"
        raise ValueError(f"{needs}, but got {text!r}.") from None
