import pytest

from equistein.groups import (
    Cyclic,
    Dihedral,
    ImageRotations,
    Orthogonal,
    parse_group,
    PointCloud,
    SpecialOrthogonal,
    Trivial,
)


@pytest.mark.parametrize(
    "make",
    [Cyclic, Dihedral, SpecialOrthogonal, Orthogonal],
    ids=lambda cls: cls.__name__,
)
@pytest.mark.parametrize("number", [0, -1, 2.0, True, "4"])
def test_a_wrong_number_is_refused(make, number, unchecked):
    with pytest.raises(ValueError, match="needs `(order|dim)`, an integer >= 1"):
        make(number)


@pytest.mark.parametrize(
    ("species", "dim", "words"),
    [((), 2, "species"), (3, 2, "species"), ("CO", 0, "dim"), ("CO", 2.0, "dim")],
)
def test_a_wrong_point_cloud_is_refused(species, dim, words, unchecked):
    with pytest.raises(ValueError, match=words):
        PointCloud(species, dim)


@pytest.mark.parametrize("species", ["CHOC", (6, 1, 8, 6), ["C", "H", "O", "C"]])
def test_species_labels_may_be_anything_hashable(species):
    assert PointCloud(species, 3).species == (0, 1, 2, 0)


@pytest.mark.parametrize(
    ("text", "kind", "order"),
    [
        ("trivial", Trivial, 1),
        ("cyclic:4", Cyclic, 4),
        ("dihedral:5", Dihedral, 10),
        ("image-rotations", ImageRotations, 4),
        ("image-reflections", ImageRotations, 8),
        ("so:3", SpecialOrthogonal, None),
        ("o:2", Orthogonal, None),
    ],
)
def test_groups_have_names(text, kind, order):
    group = parse_group(text)
    assert isinstance(group, kind)
    assert order is None or group.order == order


@pytest.mark.parametrize(
    "text", ["", "cyclic", "cyclic:", "cyclic:x", "cyclic:-4", "cyclic:0", "so:3:2",
             "trivial:1", "point-cloud", "cube"],
)  # fmt: skip
def test_a_name_of_no_group_is_refused(text):
    with pytest.raises(ValueError, match="group|needs"):
        parse_group(text)
