import numpy as np
import pytest

from equistein.molecules import (
    is_molecules,
    Molecule,
    read_molecules,
    write_xyz,
    XYZError,
)

WATER = """\
3
water, in Angstrom
O   0.000  0.000  0.117
H   0.000  0.757 -0.469
H   0.000 -0.757 -0.469
"""


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "molecules.xyz"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def comment(text):
    return lambda water: water.replace("water, in Angstrom", text)


def same(frame, other=None):
    other = other or Molecule(
        ("O", "H", "H"),
        np.array([[0, 0, 0.117], [0, 0.757, -0.469], [0, -0.757, -0.469]]),
    )
    assert frame.symbols == other.symbols
    assert np.array_equal(frame.positions, other.positions)
    return True


def test_a_frame_by_hand(write):
    (frame,) = read_molecules(write(WATER))
    assert same(frame)
    assert frame.positions.dtype == np.float64


def test_what_is_written_is_read_again(tmp_path):
    positions = np.random.default_rng(0).normal(size=(5, 3, 3)) * 10
    path = tmp_path / "new.xyz"
    write_xyz(str(path), ("C", "Cl", "H"), positions, "made\nby hand")
    frames = read_molecules(path)
    assert [frame.symbols for frame in frames] == [("C", "Cl", "H")] * 5
    assert np.allclose([frame.positions for frame in frames], positions, atol=1e-8)
    assert path.read_text().splitlines()[:2] == ["3", "made by hand"]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.rstrip("\n"),
        lambda text: text + "\n\n  \n",
        lambda text: "\n\n" + text,
        lambda text: "\ufeff" + text,
        lambda text: text.replace("water, in Angstrom", ""),
        lambda text: text.replace("   ", "\t"),
        lambda text: text.replace("3\nw", "  3  \nw"),
        lambda text: text.replace("O ", "o ").replace("H ", "h "),
        lambda text: text.replace("0.117", "0.117 -0.834 17"),
        lambda text: text.replace("0.117", "1.17e-1"),
        lambda text: text.replace("0.117", "1.17*^-1"),  # as in QM9
        lambda text: text.replace("water", "Wasser für große Moleküle"),
        lambda text: text.replace("water", "molécule d'eau").encode("latin-1"),
        lambda text: text.replace("water", "Properties=none"),
        lambda text: text.replace("water", "my_pbc=T Title='pbc=\"T T T\"'"),
        lambda text: text.replace("water", 'Lattice="9 0 0 0 9 0 0 0 9" pbc="F F F"'),
        lambda text: text.replace("water", "pbc=[False, False, False]"),
        lambda text: text.replace("water", 'Lattice="0.0 0 0 0 0 0 0 0 0"'),
        lambda text: text.replace("O ", "8 ").replace("H ", "1 "),
        lambda text: text.replace("O ", "O1").replace("H ", "H2A"),
        lambda text: text.replace("H ", "D "),
        lambda text: text.replace("H ", "t_2 "),
    ],
)
def test_harmless_differences_do_no_harm(change, write):
    (frame,) = read_molecules(write(change(WATER)))
    assert same(frame)


def test_frames_may_be_apart(write):
    frames = read_molecules(write(WATER + "\n\n" + WATER + WATER + "\n"))
    assert len(frames) == 3
    assert all(same(frame) for frame in frames)


def test_columns_of_an_extended_file_are_found(write):
    text = """\
3
energy=-2 Properties=id:I:1:forces:R:3:species:S:1:pos:R:3:q:R:1 pbc="F F F"
1 9 9 9 O   0.000  0.000  0.117 -0.8
2 9 9 9 H   0.000  0.757 -0.469  0.4
3 9 9 9 H   0.000 -0.757 -0.469  0.4
"""
    assert same(read_molecules(write(text))[0])
    for quote in "\"'":
        quoted = text.replace("=id", f"={quote}id").replace("q:R:1", f"q:R:1{quote}")
        assert same(read_molecules(write(quoted))[0])
    positions_first = """\
3
Properties=pos:R:3:species:S:1
0.000  0.000  0.117 O
0.000  0.757 -0.469 H
0.000 -0.757 -0.469 H
"""
    assert same(read_molecules(write(positions_first))[0])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.replace("3\n", "4\n", 1), "line 1., of 4 atoms, is cut"),
        (lambda t: t.replace("3\n", "2\n", 1), "line 5: expected the number of atoms"),
        (lambda t: t.replace("3\n", "three\n", 1), "line 1: .*'three'"),
        (lambda t: t.replace("3\n", "0\n", 1), "line 1: .*atoms, but got '0'"),
        (lambda t: t.replace("3\n", "-3\n", 1), "line 1: .*'-3'"),
        (lambda t: t.replace("3\n", "3.0\n", 1), "line 1: .*'3.0'"),
        (lambda t: t.replace("3\n", "99999999999\n", 1), "line 1: expected"),
        (lambda t: t.replace("3\n", "9999999\n", 1), "line 1., of .*is cut"),
        (lambda t: t.replace("O ", "Xx"), "1., atom 1: there is no element 'Xx'"),
        (lambda t: t.replace("O ", "0 "), "1., atom 1: there is no element '0'"),
        (lambda t: t.replace("O ", "119 "), "1., atom 1: there is no element '119'"),
        (lambda t: t.replace("O ", "OW1 "), "1., atom 1: there is no element 'OW1'"),
        (lambda t: t.replace("O ", "1 8"), "line 3: expected an element.*'1 8"),
        (lambda t: t.replace("0.117", "1_0"), "line 1.*atom 1: expected a finite"),
        (lambda t: t.replace("0.117", "\u0661"), "atom 1: expected a finite .*nan"),
        (lambda t: t.replace("0.117", "nan"), "atom 1: expected a finite .*nan"),
        (lambda t: t.replace("-0.757", "-inf"), "atom 3: expected a finite"),
        (lambda t: t.replace("0.117", "1e7"), "atom 1: .*at most 1e\\+06"),
        (lambda t: t.replace("0.117", ""), "line 3: expected an element and three"),
        (lambda t: t + "3\nsecond\nO 0 0 0\n", "line 6., of 3 atoms, is cut"),
        (lambda t: t + "3", "line 6., of 3 atoms, is cut"),
        (comment("Properties=pos:R:3"), "take species:S:1:pos"),
        (comment("Properties=species:S"), "line 2: cannot read"),
        (
            lambda t: t.replace("water, in", "Properties=species:S:1:pos:R:2"),
            ":pos:R:3.",
        ),
        (comment("Properties=species:S:x"), "line 2: cannot read"),
        (comment("Properties=species:S:\u00b2"), "line 2: cannot read"),
        (comment(f"Properties=species:S:{'9' * 5_000}"), "line 2: cannot read"),
        (comment("Properties=id:I:1:species:S:1:pos:R:3"), "line 3: expected an elem"),
        (lambda t: "", "holds no molecules"),
        (lambda t: "\n \n", "holds no molecules"),
    ],
)
def test_a_mistake_is_told_with_file_and_line(change, words, write):
    path = write(change(WATER))
    with pytest.raises(XYZError, match=words) as caught:
        read_molecules(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    "comment",
    [
        'Lattice="9 0 0 1 8 0 0 0 7"',
        'lattice = "9 0 0 1 8 0 0 0 7" energy=2.0',
        'Lattice="9 0 0 1 8 0 0 0 7" Properties=species:S:1:pos:R:3 pbc="T T T"',
    ],
)
def test_a_periodic_cell_is_read_and_told(comment, write):
    found = read_molecules(write(WATER.replace("water, in Angstrom", comment)))
    assert np.array_equal(found[0].cell, [[9, 0, 0], [1, 8, 0], [0, 0, 7]])
    assert any("cell, 9 x 8.062 x 7 Angstrom" in note for note in found.notes)


def test_several_cells_are_refused(write):
    first, second = (
        WATER.replace("water, in Angstrom", f'Lattice="{size} 0 0 0 9 0 0 0 9"')
        for size in (9, 8)
    )
    for other in (second, WATER):
        words = r"of frame 2 \(line 9\) is not that of frame 1 \(line 4\)"
        with pytest.raises(XYZError, match=words):  # counted as in the file
            read_molecules(write(f"1\n\nO 0 0 0\n{first.rstrip()}\n{other}"))


def test_cells_that_differ_by_rounding_are_one(write):
    first, second = (
        WATER.replace("water, in Angstrom", f'Lattice="9 {size} 0 0 9 0 0 0 9"')
        for size in (0, 1e-5)
    )
    assert len(read_molecules(write(f"{first.rstrip()}\n{second}"))) == 2


def test_the_unit_of_i_pi_is_read_and_its_cell_is_not(write):
    cell = "# CELL(abcABC): 15 15 15 90 90 90 positions{atomic_unit}"
    frames = read_molecules(write(WATER.replace("water, in Angstrom", cell)))
    plain = read_molecules(write(WATER))
    assert np.allclose(frames[0].positions, 0.529177 * plain[0].positions, atol=1e-5)
    assert "CELL of i-PI is not read" in " ".join(frames.notes)
    assert not plain.notes


def test_a_cell_in_another_unit_is_refused(write):
    text = WATER.replace("water, in Angstrom", 'Lattice="0.9 0 0 0 0.9 0 0 0 0.9"')
    with pytest.raises(XYZError, match="in nm"):
        read_molecules(write(text))


@pytest.mark.parametrize(
    "comment",
    [
        'Lattice="9 0 0 0 9 0 0 0 9" pbc="T T F"',
        'Lattice="9 0 0 0 9 0 0 0" pbc="T T T"',
        'Lattice="9 0 0 9 0 0 0 0 9"',
        'pbc="T T T"',
        'pbc="F F T"',
        "pbc='0 0 1'",
        "energy=1 PBC={True False False}",
        "pbc=[false, true, false]",
        "pbc=xy",
    ],
)
def test_a_cell_that_is_periodic_along_some_edges_is_refused(comment, write):
    path = write(WATER.replace("water, in Angstrom", comment))
    with pytest.raises(XYZError, match='line 2: .*periodic.* pbc="F F F"'):
        read_molecules(path)


@pytest.mark.parametrize(
    ("symbols", "positions", "words"),
    [
        (
            "CO",
            np.full((3, 2, 3), [[[1.0]], [[np.nan]], [[1.0]]]),
            "6 other numbers, as at \\[\\[1, 0, 0\\]\\]",
        ),
        ("CO", np.full((1, 2, 3), np.inf), "must be finite"),
        ("CO", np.full((1, 2, 3), 2e6), "at most 1e\\+06"),
        ("CO", np.zeros((0, 2, 3)), "at least one molecule"),
        ("CO", np.zeros((2, 3)), "shape .molecule, 2, 3."),
        (("C", "Xx"), np.zeros((1, 2, 3)), "no element 'Xx'"),
    ],
)
def test_what_cannot_be_read_is_not_written(symbols, positions, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        write_xyz(tmp_path / "new.xyz", symbols, positions)
    assert not (tmp_path / "new.xyz").exists()


def test_a_form_feed_in_a_comment_is_no_new_line(write):
    (frame,) = read_molecules(write(WATER.replace("water", "water\x0c\x1c\u2028")))
    assert same(frame)


def test_no_text_is_refused(write):
    noise = np.random.default_rng(0).bytes(1_000)
    with pytest.raises(XYZError, match="line 1: expected the number of atoms"):
        read_molecules(write(noise))


def test_a_huge_file_is_refused_by_its_size(write, monkeypatch):
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", "50")
    with pytest.raises(XYZError, match="EQUISTEIN_MAX_BYTES"):
        read_molecules(write(WATER))


@pytest.mark.parametrize("content", ["\n" * 10_000, "1\n\nH 0 0 0\n" * 2_000])
def test_what_is_small_on_disk_and_large_in_memory_is_refused(
    write, content, monkeypatch
):
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", "700000")
    with pytest.raises(XYZError, match="set EQUISTEIN_MAX_BYTES to"):
        read_molecules(write(content))


def test_a_truncated_file_is_read_or_refused(write):
    for keep in range(len(WATER)):
        try:
            frames = read_molecules(write(WATER[:keep]))
        except XYZError:
            continue
        assert len(frames) == 1
        assert frames[0].positions.shape == (3, 3)


EXTENDED = """\
2
Properties=species:S:1:pos:R:3:forces:R:3 energy=-1.5e1 pbc="F F F"
H 0 0 0   0.5 0 -1
F 0 0 0.9 -0.5 0 1
"""


def test_energy_and_forces_of_an_extended_file_are_read(write):
    (frame,) = read_molecules(write(EXTENDED))
    assert frame.energy == -15.0
    assert np.array_equal(frame.forces, [[0.5, 0, -1], [-0.5, 0, 1]])
    (plain,) = read_molecules(write(WATER))
    assert plain.energy is None
    assert plain.forces is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("-1.5e1", "much", "line 1.*the energy 'much' is no finite number"),
        ("-1.5e1", "nan", "no finite number"),
        ("0.5 0 -1", "0.5 0 x", "atom 1: expected a finite force"),
        ("0.5 0 -1", "0.5 0", "line 3"),
    ],
)
def test_a_damaged_energy_or_force_is_told_of(old, new, said, write):
    with pytest.raises(XYZError, match=said):
        read_molecules(write(EXTENDED.replace(old, new)))


def test_molecules_are_told_by_the_name_of_the_file():
    for name in ("a.xyz", "a.XYZ", "a.extxyz", "a.xyz.gz", "a.b.extxyz.gz"):
        assert is_molecules(name)
    for name in ("xyz", "a.csv", "a.csv.gz", "a.gz", "a.xyz.bak"):
        assert not is_molecules(name)


def test_options_of_trajectories_are_refused(tmp_path):
    (tmp_path / "a.xyz").write_text("1\n\nH 0 0 0\n")
    with pytest.raises(XYZError, match="`stride` is for `es.data.read_frames`"):
        read_molecules(tmp_path / "a.xyz", stride=2)
    assert len(read_molecules(tmp_path / "a.xyz", stride=None)) == 1
