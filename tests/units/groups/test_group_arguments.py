import jax.numpy as jnp
import pytest

from equistein.groups import (
    Cyclic,
    Dihedral,
    Direct,
    ImageRotations,
    Orthogonal,
    parse_group,
    Permutations,
    PointCloud,
    Product,
    SignedPermutations,
    Signs,
    SpecialOrthogonal,
    TorusTranslations,
    Trivial,
)


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
        ("permutations:3", Permutations, 6),
        ("signs:2", Signs, 4),
        ("signed-permutations:3", SignedPermutations, 48),
        ("torus:6.28,inf", TorusTranslations, None),
        ("product:permutations:3*cyclic:4", Product, 24),
        ("direct:permutations:3@3x2+product:signs:2*trivial@4", Direct, 24),
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
             "trivial:1", "point-cloud", "cube", "product:", "product:cyclic:3*x",
             "direct:signs:2", "direct:signs:2@x", "torus:a", "torus:-1"],
)  # fmt: skip
def test_a_name_of_no_group_is_refused(text):
    with pytest.raises(ValueError, match="group|needs|shape"):
        parse_group(text)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((((3,), (0,)), ((2,), (0,))), "as long along"),
        ((((3,), (1,)),), "as long along"),
        ((((3,), ()),), "one with an axis"),
        ((((3, 3), (0, 0)),), "different axes"),
        ((3,), "pairs of a shape"),
    ],
)
def test_wrong_parts_are_refused(parts, words, unchecked):
    with pytest.raises(ValueError, match=words):
        Permutations(3, parts)


def test_signs_of_two_axes_are_refused(unchecked):
    with pytest.raises(ValueError, match="at most 1"):
        Signs(3, (((3, 3), (0, 1)),))


def test_groups_that_do_not_commute_have_no_product():
    group = Product(Signs(3), Permutations(3))
    with pytest.raises(ValueError, match="commute.*SignedPermutations"):
        group.check_shape((3,))
    with pytest.raises(ValueError, match="at most one infinite"):
        Product(SpecialOrthogonal(2), Orthogonal(2))


@pytest.mark.parametrize("make", [Product, Direct])
def test_combinations_need_groups(make, unchecked):
    with pytest.raises(ValueError, match="needs"):
        make()
    with pytest.raises(ValueError, match="needs"):
        make((3, (2,)))


def test_copies_are_of_groups_with_an_end_and_as_many_as_fit(monkeypatch):
    with pytest.raises(ValueError, match="infinite"):
        SpecialOrthogonal(2).orbit(jnp.ones(2))
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", "4000")
    assert len(Signs(3).orbit(jnp.ones((3, 2)))) == 8
    with pytest.raises(ValueError, match="The 8 copies of a point"):
        Signs(3).orbit(jnp.ones((3, 100)))


def test_a_cloud_of_many_particles_is_told_in_a_line():
    for cloud in (PointCloud((0,) * 55, 3), PointCloud("CCOCHH", 2, reflections=False)):
        told = repr(cloud)
        assert len(told) < 80
        assert eval(told, {"PointCloud": PointCloud}) == cloud


def test_permutations_need_something_to_permute():
    with pytest.raises(ValueError, match="Permutations"):
        Permutations(3).check_shape((0, 2))
