"""What `describe` finds in tables and molecules, and its warnings."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest

from embedded import embed
from equistein.data import DataWarning, describe
from equistein.groups import PeriodicCloud, PointCloud, TorusTranslations
from equistein.molecules import atoms_of, BOLTZMANN


@pytest.fixture
def molecules():
    """Thirty molecules of ethanol that hardly vibrate."""
    symbols = atoms_of("C2H6O")
    positions = embed("CCO", symbols)
    noise = 0.02 * np.random.default_rng(0).normal(size=(30, 9, 3))
    return symbols, positions + noise


def test_right_molecules_raise_no_warning(molecules):
    symbols, positions = molecules
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = describe(positions, species=symbols, notes=["2 frames left out."])
    assert not found.warnings
    assert found.numbers["validity"] == 1
    assert "2 frames left out." in str(found)
    assert "CCO (30)" in str(found)


@pytest.mark.parametrize(
    ("scale", "unit"), [(1.8897, "Bohr"), (0.1, "nm"), (100, "pm")]
)
def test_another_unit_of_length_is_named(molecules, scale, unit):
    symbols, positions = molecules
    with pytest.warns(DataWarning, match=f"--length-unit {unit}"):
        describe(scale * positions, species=symbols)


def test_repeated_frames_are_counted(molecules):
    symbols, positions = molecules
    moved = np.concatenate([positions, positions[:7]])
    moved = moved - moved.mean(axis=1, keepdims=True)
    with pytest.warns(DataWarning, match="7 of them repeated"):
        found = describe(moved.astype(np.float32), species=symbols)
    assert found.numbers["num_repeated"] == 7


def test_isomers_of_large_molecules_are_counted():
    symbols = atoms_of("C20H42")
    chain, branched = (embed(s, symbols) for s in ("C" * 20, "C" * 17 + "C(C)C"))
    noise = 0.01 * np.random.default_rng(0).normal(size=(4, 62, 3))
    found = describe(np.stack([*[chain] * 3, branched]) + noise, species=symbols)
    assert found.numbers["num_graphs"] == 2
    assert f"{'C' * 20} (3)" in str(found)


@pytest.mark.parametrize(
    "both",
    [
        ("F[C@H](Cl)[C@H](Br)O", "F[C@H](Cl)[C@@H](Br)O"),
        ("C[C@H](F)[C@H](C)F", "C[C@H](F)[C@@H](C)F"),  # the second is meso
    ],
)
def test_diastereomers_are_told(both):
    Chem = pytest.importorskip("rdkit.Chem.AllChem")
    rng, kinds = np.random.default_rng(0), []
    for smiles in both:
        mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
        Chem.EmbedMolecule(mol, randomSeed=1)
        Chem.MMFFOptimizeMolecule(mol)
        at = mol.GetConformer().GetPositions()
        kinds.append(at + 0.02 * rng.normal(size=(20, *at.shape)))
    symbols = [atom.GetSymbol() for atom in mol.GetAtoms()]
    with pytest.warns(DataWarning, match="several kinds"):
        describe(np.concatenate(kinds), species=symbols)
    for right in kinds:
        assert not describe(right, species=symbols).warnings


def test_hands_are_counted():
    symbols = atoms_of("CHFClBr")
    positions = embed("FC(Cl)Br", symbols)
    noise = 0.02 * np.random.default_rng(0).normal(size=(20, 5, 3))
    frames, group = positions + noise, PointCloud(symbols, 3)
    found = describe(frames, species=symbols, group=group)
    assert "one hand" in str(found)
    assert found.numbers["same_hand"] == 1
    frames[:8, :, 0] *= -1
    found = describe(frames, species=symbols, group=group)
    assert not found.warnings
    assert {"8", "12"} <= set(str(found).replace(",", " ").split())


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda x: np.column_stack([np.arange(len(x)), x]), "'1' counts, names"),
        (lambda x: np.column_stack([x, np.ones(len(x))]), "'4' is constant"),
        (lambda x: np.column_stack([x, x[:, 0] - x[:, 2]]), "'1', '3', '4' each is a"),
        (lambda x: np.round(np.column_stack([x, x[:, 0] - x[:, 2]]), 2), "each is a"),
        (lambda x: x * np.array([1, 1, 1e5]), "'3' is .* times as wide as '1'"),
        (lambda x: np.concatenate([x, x[:9]]), "9 of them repeated"),
        (lambda x: with_column(x, 0.1 * np.arange(300)), "'3' counts, names"),
        (lambda x: with_column(x, np.arange(300) % 2), "'3' has few values"),
        (lambda x: with_column(x, np.where(x[:, 2] > 2, -999, x[:, 2])), "'3' .* far"),
        (lambda x: with_column(x, np.cumsum(1 + (x[:, 2] > 0))), "'3' counts, names"),
        (lambda x: with_column(x, np.arange(300) % 150), "'3' counts, names"),
        (lambda x: with_column(x, np.argsort(x[:, 2]) % 12), "few values"),
        (
            lambda x: with_column(x, 20240101 + np.argsort(x[:, 2]) % 28),
            "names or dates",
        ),
        (lambda x: with_column(x, np.where(x[:, 2] == x[7, 2], -999, x[:, 2])), "far"),
        (lambda x: with_column(x, np.where(x[:, 2] > 2, 99, x[:, 2])), "'3' .* far"),
        (
            lambda x: with_column(x, np.where(x[:, 2] > 1.5, 0, 9 + x[:, 2])),
            "'3' .* far",
        ),
        (lambda x: with_column(x, codes(x[:, 2])), "'3' .* far"),
        (lambda x: with_column(x, np.exp(x[:, 0])), "'1', '3' each is a function"),
        (lambda x: np.vstack([x, x.sum(axis=0)]), "Row 301 sums up"),
        (lambda x: np.vstack([x, x.mean(axis=0), x.std(axis=0)]), "Row 301 sums up"),
        (lambda x: np.vstack([x, x.std(axis=0)]), "Row 301 sums up"),
    ],
)
def test_columns_that_are_off(change, cause):
    x = np.random.default_rng(0).normal(size=(300, 3))
    rounded = (x + 100).round(1).astype(np.float32)
    counts = with_column(x, np.random.default_rng(0).poisson(20, 300))
    others = counts, np.exp(x)
    for right in (x, rounded, 1e6 + x, np.abs(x), np.maximum(x, -1), *others):
        assert not describe(right, columns=("1", "2", "3")).warnings
    changed = change(x).astype(np.float32)
    names = [f"{i + 1}" for i in range(changed.shape[1])]
    with pytest.warns(DataWarning, match=cause):
        describe(changed, columns=names)


def with_column(x, column):
    return np.column_stack([x[:, :2], column])


def codes(x):
    """Counts, in some rows 77 and 99 for answers that were not given."""
    return np.where(x > 1.8, 99, np.where(x > 1.4, 77, np.abs(8 * x).round()))


@pytest.mark.parametrize(
    ("name", "right"),
    [("patient_id", "paid"), ("time [s]", "lifetime_of_x"), ("lp__", "lp"),
     ("log_prob", "logP"), ("logwt", "log_weight"), ("-logpost"[1:], "post"),
     ("weights", "weight"), ("sample_weight", "body_weight"), ("year", "yearly"),
     ("lnlike", "chi"), ("chi2", "like")],
)  # fmt: skip
def test_columns_that_are_no_variables_are_known_by_name(name, right):
    x = np.random.default_rng(0).normal(size=(200, 2))
    x[:, 1] = np.cumsum(np.exp(x[:, 1])) if "time" in name else x[:, 1]
    if name == "year":
        x[:, 1] = np.repeat(np.arange(1990, 2030), 5)[np.argsort(x[:, 0])]
    if name == "patient_id":
        x[:, 1] = np.random.default_rng(1).permutation(2000)[:200]
    with pytest.warns(DataWarning, match="leave it out by --columns") as caught:
        describe(x, columns=("x", name))
    assert name in str(caught[0].message)
    assert not describe(x, columns=("x", right)).warnings


def test_rounded_rows_repeat_by_chance_and_copies_do_not():
    rng = np.random.default_rng(0)
    lengths = (5.8 + 0.8 * rng.normal(size=(200, 2))).round(1)
    rain = np.where(lengths > 5.6, 0, np.exp(lengths).round(1))  # often none
    for right in (lengths, rng.poisson(9, (200, 2)).astype(float), rain):
        found = describe(right.astype(np.float32), columns=("a", "b"))
        assert found.numbers["num_repeated"] > 20
        assert not found.warnings
        copied = rng.normal(size=(200, 2))[np.r_[:180, :20]]
        with pytest.warns(DataWarning, match="20 of them repeated.*Markov chain"):
            describe(copied, columns=("a", "b"))


@pytest.mark.parametrize("shape", [(3, 200), (4, 100, 5)])
def test_few_rows_of_many_numbers_are_named(shape):
    x = np.random.default_rng(0).normal(size=shape)
    with pytest.warns(DataWarning, match="transpose .* or stack the draws"):
        describe(x)
    assert not describe(np.moveaxis(x, 1, 0)).warnings
    assert not describe(
        np.ones((3, 40, 40, 1)) * x.ravel()[:3, None, None, None]
    ).warnings


@pytest.mark.parametrize(("period", "span"), [(6.2832, 360), (360, 6.28)])
def test_angles_of_another_unit_than_the_period_are_named(period, span):
    x = span * (np.random.default_rng(0).random(size=(300, 2)) - 0.5)
    with pytest.warns(DataWarning, match="'1', '2' spans many periods"):
        describe(x, group=TorusTranslations((period, period)))
    right = TorusTranslations((span, np.inf))
    assert not describe(3 * x, group=right).warnings


def test_an_element_that_is_too_close_is_named(molecules):
    symbols, positions = molecules
    wrong = ["Ca" if at == 0 else symbol for at, symbol in enumerate(symbols)]
    with pytest.warns(DataWarning, match="Ca.* not as far apart as in bonds"):
        describe(positions, species=wrong)
    for scale in (0.529, 10):
        with pytest.warns(DataWarning, match="C, H, O .* --length-unit"):
            describe(scale * positions, species=symbols)


@pytest.mark.parametrize(
    ("spoil", "cause"),
    [
        ({}, None),
        ({"scale": 1 / 0.529177}, "in Bohr"),
        ({"moved": 1.0}, "net force"),
        ({"unit": 23.06}, "kcal/mol/Angstrom"),
        ({"unit": -1.0}, "wrong sign"),
        ({"kelvin": 900.0}, "another temperature, about [23].. K"),
        ({"shift": 99}, "other frames"),
        ({"energy": 23.06}, "--energy-unit kcal/mol"),
    ],
)
def test_atoms_in_a_cell_have_a_unit_and_the_forces_of_a_temperature(spoil, cause):
    scale, rng = spoil.get("scale", 1.0), np.random.default_rng(0)  # copper
    corners = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]]) / 2
    sites = np.concatenate([corners + at for at in np.ndindex(2, 2, 2)])
    gaps = np.abs(sites[:, None] - sites)
    near = np.isclose(np.linalg.norm(np.minimum(gaps, 2 - gaps), axis=-1), 0.5**0.5)
    springs = 2.0 * (np.diag(near.sum(axis=1)) - near)  # eV / Angstrom^2
    values, vectors = np.linalg.eigh(springs)
    width = np.sqrt(BOLTZMANN * 300 / np.maximum(values, 1e-9)) * (values > 1e-6)
    moves = vectors @ (width[:, None] * rng.normal(size=(200, 32, 3)))
    forces, energies = -springs @ moves, np.sum(moves * (springs @ moves), (1, 2)) / 2
    known = {
        "forces": spoil.get("unit", 1) * np.roll(forces, spoil.get("shift", 0), axis=0)
        + spoil.get("moved", 0),
        "kelvin": spoil.get("kelvin", 300.0),
        "energies": spoil.get("energy", 1) * energies,
    }
    points = scale * ((3.61 * sites + moves) % 7.22)  # wrapped
    group = PeriodicCloud(["Cu"] * 32, [7.22 * scale] * 3)
    known = known if scale == 1 else {}
    with pytest.warns(DataWarning, match=cause) if cause else nullcontext():
        found = describe(points, group=group, species=["Cu"] * 32, **known)
    assert not (cause is None and found.warnings)


def test_bonds_of_hydrogen_that_are_constrained_are_named():
    rng, symbols = np.random.default_rng(0), atoms_of("CH2O")
    angle, length = rng.normal(2.1, 0.08, (60, 2)), rng.normal(1.2, 0.02, 60)
    for width in (0.0, 0.02):
        bonds = rng.normal(1.1, width, (60, 2))
        x = np.zeros((60, 4, 3))
        x[:, 1, 0] = length
        x[:, 2:, 0], x[:, 2:, 1] = (
            bonds * np.cos(angle),
            bonds * np.sin(angle) * [1, -1],
        )
        x = x.round(3)
        if width:
            assert not describe(x, species=symbols).warnings
            continue
        with pytest.warns(DataWarning, match="without constraints"):
            describe(x, species=symbols)
    relaxed = x[:1] + 2e-4 * rng.normal(size=x.shape)
    relaxed[:, 2:, 0] -= 0.01 * rng.normal(size=(60, 1))
    assert not describe(relaxed, species=symbols).warnings


def test_molecules_that_a_cell_wraps_are_named(molecules):
    symbols, positions = molecules
    inside = (positions + np.random.default_rng(0).uniform(0, 9, (30, 1, 3))) % 9
    with pytest.warns(DataWarning, match="in parts: leave those out, or undo"):
        describe(inside, species=symbols)
    cut = positions - positions.mean(axis=1, keepdims=True) + [0, 4.5, 4.5]
    with pytest.warns(DataWarning, match="30 in parts: leave those out, or undo"):
        describe(cut % 9, species=symbols)  # in all frames
    pairs = np.concatenate([positions, positions[::-1] + [0, 0, 5]], axis=1)
    found = describe(pairs, species=[*symbols, *symbols])
    assert "30 in parts" in str(found)
    assert not found.warnings


def test_calculations_that_failed_are_named(molecules):
    symbols, positions = molecules
    rng = np.random.default_rng(0)
    energies, forces = -40 + 0.1 * rng.normal(size=30), 0 * positions
    right = {"species": symbols, "energies": energies}
    assert not describe(positions, **right).warnings
    with pytest.warns(DataWarning, match="leave failed calculations out"):
        describe(
            positions, **right | {"energies": np.where(energies > -39.9, 0, energies)}
        )
    forces[:25, 0, 0], forces[:25, 1, 0] = 1, -1
    with pytest.warns(DataWarning, match="leave failed calculations out"):
        describe(positions, species=symbols, forces=forces)


def test_what_does_not_fit_the_data_is_refused(molecules):
    symbols, positions = molecules
    for name, value in (
        ("energies", np.zeros(5)), ("forces", np.zeros((5, 9, 3))),
        ("species", symbols[:5]), ("columns", ["x"]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"`{name}`"):
            describe(positions, **{name: value})
    with pytest.raises(ValueError, match="no element 'Xx'"):
        describe(positions, species=["Xx", *symbols[1:]])
    for data in ("molecules.xyz", [object(), object()]):
        with pytest.raises(ValueError, match="`data`"):
            describe(data)


def test_molecules_that_are_not_valid_are_named_unless_they_are_hot(molecules):
    symbols, positions = molecules
    hot = positions.mean(axis=0) + 6 * (positions - positions.mean(axis=0))
    found = describe(hot, species=symbols)
    assert found.numbers["validity"] < 0.5
    with pytest.warns(DataWarning, match="missing hydrogens"):
        describe(positions[:, :8], species=symbols[:8])


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (
            lambda x: np.stack([40 * x[:, 0] % 360, x[:, 1]], 1),
            "'1' seems to be an angle",
        ),
        (lambda x: np.angle(np.exp(1j * (x + [3, 0]))), "'1' seems to be an angle"),
        (lambda x: np.where(x > 1.6, -1, np.exp(x)), "'1', '2' has a number far"),
        (lambda x: x + np.where(np.arange(400) < 9, 20, 0)[:, None], "first 9 rows"),
        (lambda x: np.cumsum(x, axis=0), "'1', '2' follows the rows before"),
    ],
)
def test_turns_codes_and_the_order_of_rows_are_seen(change, cause):
    x = np.random.default_rng(0).normal(size=(400, 2))
    ordered, turns = x[np.argsort(x[:, 0])], (40 * x + 180) % 360
    classes = np.concatenate([x[:130] - 9, x[130:260], x[260:] + [0, 9]])
    for right in (x, ordered, ordered @ [[1, 1], [0, 0.1]], classes, turns, np.exp(x)):
        assert not describe(right.astype(np.float32), columns=("1", "2")).warnings
    with pytest.warns(DataWarning, match=cause):
        describe(change(x).astype(np.float32), columns=("1", "2"))


def test_copies_that_are_rotated_are_counted(molecules):
    symbols, positions = molecules
    turn = np.array([[0, -1, 0], [1, 0, 0], [0, 0, -1]])
    for copies in (positions[:9] @ turn, positions[:9].round(4)):
        with pytest.warns(DataWarning, match="9 of them repeated"):
            describe(np.concatenate([positions, copies]), species=symbols)
    cloud = np.random.default_rng(0).normal(size=(2000, 3, 2))
    assert not describe(cloud, group=PointCloud([0] * 3, 2)).warnings


def test_frames_that_are_no_samples_of_free_molecules_are_named(molecules):
    symbols, positions = molecules
    fixed, start = positions.copy(), positions.copy()
    fixed[:, :3] = positions[0, :3]
    start[:5] *= np.linspace(1.3, 1.2, 5)[:, None, None]
    x, y = [0, 1.5, 3, -1.1, 0, 0, 1.5, 1.5, 3], [0, 0, 0, 0, 1.1, -1.1, 1.1, -1.1, 1]
    noise = (positions - positions[0]) * [1, 1, 0]
    drawn = np.stack([x, y, np.zeros(9)], axis=1) + noise
    for wrong, cause in (
        (fixed, "some atoms keep their distance"),
        (drawn, "all atoms lie in a plane"),
        (start, "first 5 rows are far"),
    ):
        with pytest.warns(DataWarning, match=cause):
            describe(wrong, species=symbols)
    benzene = atoms_of("C6H6")
    ring = embed("c1ccccc1", benzene)
    ring = ring + 0.02 * np.random.default_rng(0).normal(size=(30, 12, 3))
    *_, axes = np.linalg.svd(ring[0] - ring[0].mean(axis=0))
    flat = ring @ axes.T * [1, 1, 0]
    assert not describe(flat, species=benzene).warnings


@pytest.mark.parametrize(
    ("columns", "right"),
    [
        ("x1 y1 x2 y2 x3 y3", True),
        ("pos_x_1 pos_y_1 pos_x_2 pos_y_2 pos_x_3 pos_y_3", True),
        ("1 2 3 4 5 6", True),
        ("x1 x2 x3 y1 y2 y3", False),
        ("t x1 y1 x2 y2 energy", False),
        ("p1x p1y p2x p2y p3x p3y", True),
        ("p1x p2x p3x p1y p2y p3y", False),
        ("x_a x_b x_c y_a y_b y_c", False),
    ],
)
def test_columns_of_particles_are_in_order(columns, right):
    x = np.random.default_rng(0).normal(size=(50, 3, 2))
    cloud, names = PointCloud([0] * 3, 2), columns.split()
    with nullcontext() if right else pytest.warns(DataWarning, match="--columns"):
        found = describe(x, group=cloud, columns=names)
    assert bool(found.warnings) != right


def test_a_cell_that_is_mostly_empty_is_named():
    points = np.random.default_rng(0).uniform(0, 9, (20, 30, 3))
    right, wide = (PeriodicCloud([0] * 30, [side] * 3) for side in (9, 17))
    assert not describe(points, group=right).warnings
    with pytest.warns(DataWarning, match="in Bohr, or no cell"):
        describe(points, group=wide)
