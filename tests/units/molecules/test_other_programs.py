"""Files of molecules as other programs write them: what is read, noted or refused."""

import gzip

import numpy as np
import pytest

from equistein.molecules import is_molecules, read_molecules, unit_value, XYZError

WATER = np.array([[0, 0, 0.117], [0, 0.757, -0.469], [0, -0.757, -0.469]])
HARTREE, BOHR, KCAL = 27.211386245988, 0.529177210544, 0.0433641042


def frame(comment="", names="OHH", positions=WATER, more=None):
    """Return a frame as text, with further columns if there are any."""
    rows = positions if more is None else np.hstack([positions, more])
    lines = [
        f"{name} {' '.join(f'{value:.6f}' for value in row)}"
        for name, row in zip(names, rows, strict=True)
    ]
    return "\n".join([str(len(lines)), comment, *lines, ""])


@pytest.fixture
def read(tmp_path):
    def read(content, name="molecules.xyz", **options):
        (tmp_path / name).write_text(content)
        return read_molecules(tmp_path / name, **options)

    return read


def extended(comment, columns="forces:R:3", more=WATER):
    properties = f"Properties=species:S:1:pos:R:3:{columns}"
    return frame(f'{comment} {properties} pbc="F F F"', more=more)


# ------------------------------------------------------------- keys and units


KEYS = [
    ("energy", "forces"), ("REF_energy", "REF_forces"), ("Energy", "Force"),
    ("dft_energy", "dft_force"), ("total_energy", "forces"), ("DFT-energy", "a.forces"),
    ("free_energy=-9 energy", "momenta:R:3:forces"),
    ("kinetic_energy=1 total_energy=9 pot_energy", "forces"),
]  # fmt: skip


@pytest.mark.parametrize(("energy", "forces"), KEYS)
def test_keys_are_found(energy, forces, read):
    more = np.hstack([9 * WATER, WATER]) if "momenta" in forces else WATER
    molecules = read(extended(f"{energy}=-2.5", f"{forces}:R:3", more))
    assert molecules[0].energy == -2.5
    assert np.allclose(molecules[0].forces, WATER)
    assert energy.split()[-1] in " ".join(molecules.notes)


def test_a_temperature_and_weights_are_told(read):
    notes = " ".join(read(extended("Temperature=500 weight=2")).notes)
    assert "Temperature is not read" in notes
    assert "weight is not read" in notes


def test_keys_that_are_ambiguous_are_chosen_by_options(read):
    text = extended("dft_energy=-1 MACE_energy=-2 kinetic_energy=3")
    with pytest.raises(XYZError, match="dft_energy or MACE_energy.*--energy-key"):
        read(text)
    molecules = read(text, energy_key="MACE_energy")
    assert molecules[0].energy == -2
    assert "not read: dft_energy, kinetic_energy" in " ".join(molecules.notes)
    with pytest.raises(XYZError, match="--energy-key 'E' is none"):
        read(text, energy_key="E")
    with pytest.raises(XYZError, match="line 2: energy is there twice, -1 and -2"):
        read(extended("energy=-1 energy=-2"))
    assert read(extended("energy=-1 energy=-1"))[0].energy == -1
    assert "not read: E_dft" in read(extended("E_dft=-1")).notes[0]
    with pytest.raises(XYZError, match="of each atom: write the sums"):
        read(extended("energy_per_atom=-1"), energy_key="energy_per_atom")
    with pytest.raises(XYZError, match="cannot read .*: take species:S:1:pos:R:3"):
        read(extended("", "forces:R:3:forces:R:3", np.hstack([WATER, WATER])))


UNITS = [
    ("energy_unit=Hartree force_unit=Hartree/Bohr", {}, HARTREE, HARTREE / BOHR),
    ("units=kcal/mol", {}, KCAL, KCAL),
    ("energy_units=kcal/mol length_unit=nm", {"length_unit": "A"}, KCAL, KCAL),
    ("", {"energy_unit": "kcal/mol"}, KCAL, KCAL),
    ("", {"energy_unit": "Hartree"}, HARTREE, HARTREE / BOHR),
    ("energy_unit=eV", {"energy_unit": "Ha", "force_unit": "Ha/A"}, HARTREE, HARTREE),
]


@pytest.mark.parametrize(("comment", "options", "energy", "force"), UNITS)
def test_units_are_those_of_options_or_of_the_comment(
    comment, options, energy, force, read
):
    molecules = read(extended(f"energy=-2 {comment}"), **options)
    assert np.isclose(molecules[0].energy, -2 * energy)
    assert np.allclose(molecules[0].forces, force * WATER)
    assert np.allclose(molecules[0].positions, WATER)


IN_TEXT = [
    ("energy = -2 Ha", HARTREE, "in Ha"), ("i = 3, energy = -2 a.u.", HARTREE, "a.u"),
    ("energy=-2 (Hartree)", HARTREE, "in Ha"), ("energy=-2 kcal/mol i=4", KCAL, ""),
    ("kinetic_energy = 5 eV energy = -2 Ha", HARTREE, "in Ha"),
    ("energy = -2, charge = 0,", 1, "no unit is named"),
    ("energy_Ha=-2", HARTREE, "in Ha"), ("energy_eV=-2", 1, "in eV."),
    ("energy=-2 water", 1, "no unit is named"), ("energy=-2 hartree=3", 1, "no unit"),
    ("energy=-2 has", 1, "no unit is named"), (" energy: -2.0 i: 0.01", 1, "no unit"),
    ("Energy(eV)=-2", 1, "in eV."), ("energy/kcal/mol=-2", KCAL, "in kcal"),
    ("energy[Ha] = -2", HARTREE, "in Ha"), ("{'energy': -2, 'i': 3}", 1, "no unit"),
    (" energy: -2.0 gnorm: 0.001 xtb: 6.5.1 (579679a)", HARTREE, "in Hartree"),
]  # fmt: skip


@pytest.mark.parametrize(("comment", "unit", "note"), IN_TEXT)
def test_a_unit_behind_the_energy_or_in_its_key_is_read(comment, unit, note, read):
    molecules = read(frame(comment))
    assert np.isclose(molecules[0].energy, -2 * unit)
    assert note in " ".join(molecules.notes)


NOTED = ["E(RHF)", "PE", "U", "total", "potential", "E0", "SCF Done"]


@pytest.mark.parametrize("key", NOTED)
def test_a_key_that_may_be_of_energies_is_noted(key, read):
    first = "" if "SCF" in key else "SCF Done:  "
    for comment in (f"{key}: -2.5 A.U. after", f"{first}{key} =  -2.5 A.U."):
        assert f"not read: {key} (--energy" in read(frame(comment)).notes[0]
        (molecule,) = read(frame(comment), energy_key=key)
        assert np.isclose(molecule.energy, -2.5 * HARTREE)


VECTORS = ["frc", "dV", "dE", "grad", "forces_kcal", "forces_Ha_bohr", "forces(eV/nm)"]


@pytest.mark.parametrize("name", [*VECTORS, "fx:R:1:fy:R:1:fz"])
def test_vectors_that_may_be_forces_are_noted_or_in_the_unit_of_their_key(name, read):
    text = extended("energy=-2", f"{name}:R:{1 if ':' in name else 3}")
    name = "fxyz" if ":" in name else name
    units = {"kcal": KCAL, "bohr": HARTREE / BOHR, "nm)": 0.1}
    unit = next((value for end, value in units.items() if name.endswith(end)), 1)
    (molecule,) = read(text, forces_key=name)
    assert molecule.energy == -2
    assert np.allclose(molecule.forces, unit * WATER)
    assert (f"not read: {name}" in read(text).notes[0]) == (unit == 1)


CHARGES = """q=2 Q=2.0 net_charge=2 formal_charge=2 mol_charge:2 chrg=2 q_tot=2
    system_charge=2 molecular_charge=2""".split()


@pytest.mark.parametrize("text", [*CHARGES, '{"charge":2}', "charge=2+", "charge=+2"])
def test_charges_are_read(text, read):
    assert read(frame(text))[0].charge == 2
    assert read(frame(text), charge=0)[0].charge == 0


def test_an_energy_without_a_sign_of_equality_is_noted(read):
    for comment in ("Coordinates from ORCA-job water E -76.342118", "i = 1, E = -17.2"):
        molecules = read(frame(comment))
        assert molecules[0].energy is None
        assert "not read: E (--energy-key" in molecules.notes[0]
        assert read(frame(comment), energy_key="E")[0].energy < -17


def test_a_unit_that_contradicts_or_is_of_no_energy_is_refused(read):
    with pytest.raises(XYZError, match="not as before"):
        read(frame("energy = -2 Ha energy_unit=eV"))
    some = frame("energy=1 units=kcal/mol") + frame("energy=1")
    with pytest.raises(XYZError, match="only 1 frames.*--energy-unit"):
        read(some)
    assert read(some, energy_unit="eV")[0].energy == 1
    with pytest.raises(XYZError, match="no unit 'eV/atom'"):
        read(frame("energy = -2 eV/atom"))


def test_units_of_lengths_and_unknown_units(read):
    molecules = read(frame(positions=WATER / BOHR), length_unit="bohr")
    assert np.allclose(molecules[0].positions, WATER, atol=1e-5)
    with pytest.raises(XYZError, match="no unit 'furlong'"):
        read(frame(), length_unit="furlong")
    with pytest.raises(XYZError, match="not as before"):
        read(extended("energy=1 energy_unit=eV") + extended("energy=1 energy_unit=Ha"))


LENGTHS = ["units=Bohr", "unit: bohr", "pos_unit=a0", "distance_units=bohr"]


@pytest.mark.parametrize("comment", [*LENGTHS, "units=angstrom"])
def test_a_unit_of_positions_is_no_unit_of_energies(comment, read):
    scale = BOHR if comment in LENGTHS else 1
    molecules = read(frame(f"energy=-2 {comment}", positions=WATER / scale))
    assert np.allclose(molecules[0].positions, WATER, atol=1e-5)
    assert molecules[0].energy == -2


def test_units_have_the_names_of_ase_and_pint():
    for unit, kind, value in [
        ("electron_volt / angstrom", "force", 1), ("kcal mol^-1 A^-1", "force", KCAL),
        ("kcal/(mol*Angstrom)", "force", KCAL), ("Eh/a0", "force", HARTREE / BOHR),
        ("kJ/mol/nm", "force", 100 / 96485.33212), ("a.u.", "force", HARTREE / BOHR),
        ("atomic_unit", "energy", HARTREE), ("Å", "length", 1),
        ("nanometer", "length", 10), ("picometers", "length", 0.01),
        ("kilocalorie / mole", "energy", KCAL), ("E_h", "energy", HARTREE),
        ("atomic_unit_of_length", "length", BOHR),
    ]:  # fmt: skip
        assert np.isclose(unit_value(unit, kind), value)
    for wrong in ("eV/Angstrom", "mol", "", "eV/mol"):
        with pytest.raises(ValueError, match="such as eV"):
            unit_value(wrong, "energy")


# ------------------------------------------------------------------- elements


def test_types_as_numbers_need_their_elements(read):
    text = frame("Atoms. Timestep: 0", "122")
    with pytest.raises(XYZError, match='named 1, 2.*--species "O H"'):
        read(text)
    with pytest.raises(XYZError, match="--species"):
        read(frame("", "111"))
    for types in ("13", "22", "27"):
        with pytest.raises(XYZError, match="are named.*--species"):
            read(frame("", types, WATER[:2]))
    assert read(frame("", "11", WATER[:2]))[0].symbols == ("H", "H")
    for species in ("O H", "O H H"):
        assert read(text, species=species)[0].symbols == ("O", "H", "H")
    assert read(frame("", "811"))[0].symbols == ("O", "H", "H")


def test_deuterium_ions_and_isolated_atoms_are_noted(read):
    assert "2 atoms of D" in read(frame("", "ODD")).notes[0]
    masses = WATER[:, :1] + [[16], [2.014], [2.014]]
    for name in ("mass", "masses"):
        assert "2 atoms of D" in read(extended("", f"{name}:R:1", masses)).notes[0]
    assert not read(extended("", "masses:R:1", masses / 2)).notes
    single = "1\nenergy=-13 config_type=IsolatedAtom\nH 0 0 0\n"
    molecules = read(2 * single + frame("charge=-1") + frame("charge=-1"))
    assert [molecule.charge for molecule in molecules] == [-1, -1]
    assert molecules.notes[0].startswith("2 frames of isolated atoms")
    assert read(frame("charge=-1"), charge=2)[0].charge == 2
    assert len(read(2 * single)) == 2  # a file of atoms alone


def test_a_formula_chooses(read):
    text = frame() + frame("", "OHHH", np.vstack([WATER, [[2, 0, 0]]]))
    assert len(read(text)) == 2
    molecules = read(text, formula="OH2")
    assert [molecule.symbols for molecule in molecules] == [("O", "H", "H")]
    assert "1 frames are not" in molecules.notes[0]
    with pytest.raises(XYZError, match="CH4.*H2O"):
        read(text, formula="CH4")


# ---------------------------------------------------------- damaged and strange


def test_a_cut_frame_is_named_and_can_be_left_out(read):
    whole = frame() + frame()
    for cut in (frame()[:-12], "3\n", frame()[:30]):
        words = "frame 2 .line 11., of 3 .*is cut.*the 2 frames"
        with pytest.raises(XYZError, match=words):
            read(whole + cut)
        molecules = read(whole + cut, skip_incomplete=True)
        assert len(molecules) == 2
        assert "frame 2 (line 11), of 3 atoms, is cut" in molecules.notes[0]
    with pytest.raises(XYZError, match="line 4: expected an element"):
        read("3\n\nO 0 0 0\n" + frame(), skip_incomplete=True)
    for cut in (extended("")[:-20], extended("")[:-3], frame()[:-3]):
        assert len(read(whole + cut, skip_incomplete=True)) == 2
        with pytest.raises(XYZError, match="0 .line 1., of 3 atoms, is cut: [^:]*'.$"):
            read(cut)
    for whole_end in (extended("")[:-1], frame()[:-1], "2\n\nO 0.5 1 1\nH 0 1.25 0"):
        assert len(read(whole + whole_end)) == 3


def test_numbers_behind_the_elements_are_no_coordinates(read):
    for tags in ([[1], [2], [3]], [[8], [1], [1]], [[-1], [0], [0]]):
        rows = frame(positions=np.hstack([tags, WATER])).replace(".000000 ", " ", 9)
        with pytest.raises(XYZError, match="line 3: expected an element and three"):
            read(rows)
    assert len(read(frame(more=WATER))) == 1


def test_separators_and_exponents_of_other_programs(read, tmp_path):
    text = frame().replace("0.117000", "1.17D-01") + ">\n" + frame()
    (tmp_path / "a.xyz.gz").write_bytes(gzip.compress(text.encode()))
    for molecules in (read(text), read_molecules(tmp_path / "a.xyz.gz")):
        assert len(molecules) == 2
        assert np.allclose(molecules[0].positions, WATER)


def test_a_packed_file_that_is_cut_is_read_up_to_there(tmp_path, read):
    rng, path = np.random.default_rng(0), tmp_path / "b.xyz.gz"
    text = "".join(frame(positions=rng.normal(size=(3, 3))) for _ in range(200))
    path.write_bytes(gzip.compress(text.encode())[:-800])
    with pytest.raises(XYZError, match="frame [0-9]+ .*cut.*--skip-incomplete"):
        read_molecules(path)
    assert 150 < len(read_molecules(path, skip_incomplete=True)) < 200


def test_text_in_utf16_and_columns_without_names_are_read(read, tmp_path):
    (tmp_path / "a.xyz").write_bytes(frame(more=-WATER).encode("utf-16"))
    molecules = read_molecules(tmp_path / "a.xyz")
    assert np.allclose(molecules[0].positions, WATER)
    assert molecules[0].forces is None
    assert "not read: columns_5_to_7" in molecules.notes[0]
    molecules = read(frame(more=-WATER), forces_key="columns_5_to_7")
    assert np.allclose(molecules[0].forces, -WATER)
    charged = frame(more=np.hstack([WATER[:, :1], -WATER]))
    assert np.allclose(read(charged, forces_key="columns_6_to_8")[0].forces, -WATER)


CELLS = {'cell="9 0 0 0 9 0 0 0 9"': 9, "box = '8 0 0 0 8 0 0 0 8'": 8, "cell=None": 0}


@pytest.mark.parametrize(("comment", "size"), CELLS.items())
def test_a_cell_by_another_name_is_read_or_refused(comment, size, read, tmp_path):
    cell = read(frame(comment))[0].cell
    assert np.allclose(0 if cell is None else cell, size * np.eye(3))
    with pytest.raises(XYZError, match="line 2: a cell must be"):
        read(frame("box=8,8,8"))
    np.savez(tmp_path / "a.npz", R=WATER[None], z=[8, 1, 1], lattice=size * np.eye(3))
    if size:
        with pytest.raises(XYZError, match="a cell must be"):
            read_molecules(tmp_path / "a.npz")
    else:
        assert len(read_molecules(tmp_path / "a.npz")) == 1


@pytest.mark.parametrize("name", ["Move_Mask", "free", "freeze", "fix_atoms", "frozen"])
def test_fixed_atoms_are_refused(name, tmp_path):
    free = 3 * [float(name in ("Move_Mask", "free"))]
    for mask in (free, [1.0, 0.0, 1.0]):
        text = extended("", f"{name}:L:1", np.array(mask)[:, None])
        (tmp_path / "a.xyz").write_text(text.replace(".000000\n", "\n"))
        np.savez(tmp_path / "a.npz", R=[WATER], z=[8, 1, 1], **{name: mask})
        for path in (tmp_path / "a.xyz", tmp_path / "a.npz"):
            if mask == free:
                assert len(read_molecules(path)) == 1
                continue
            with pytest.raises(XYZError, match=f"{name}: .*fit the free"):
                read_molecules(path)


def test_forces_in_place_of_positions(read):
    with pytest.raises(XYZError, match="no positions in Angstrom"):
        read(frame(positions=0.01 * WATER), "cp2k-frc-1.xyz")
    orca, i_pi = (
        "ORCA AIMD {} Step 1, t=0.5 fs",
        "# CELL(abcABC): 9 Step: 1 {}{{ev/ang}}",
    )
    for title in (
        "Forces [eV/A]", "FRC i = 3, time = 2.0", "velocities", orca.format("Force"),
        i_pi.format("forces"), i_pi.format("velocities"), i_pi.format("f_centroid"),
    ):  # fmt: skip
        with pytest.raises(XYZError, match="line 2: no positions"):
            read(frame(title))
    right = [orca.format("Position"), i_pi.format("positions"), "no forces {x}"]
    for title in (
        "forces = 0.01", "Forces converged", "max force 0.1", "frc: 0.1", *right,
        "Force field MMFF94", "Velocity Verlet, 3", "Forces below 0.1",
    ):  # fmt: skip
        assert len(read(frame(title))) == 1
    with pytest.raises(XYZError, match="line 3: .*decimal points.*O 0,0"):
        read(frame().replace(".", ","))


# ------------------------------------------------------------------ other formats


def pdb_line(number, name, residue, at, element=""):
    x, y, z = at
    start = f"ATOM  {number:5d} {name:<4s} {residue:<4s}{1:5d}    "
    return f"{start}{x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00          {element:>2s}"


def pdb(names, end="ENDMDL", num=2, head=""):
    points = np.arange(len(names))[:, None] * [1.4, 0, 0]
    lines = [head] * bool(head)
    for _ in range(num):
        rows = zip(names, points, strict=True)
        lines += [pdb_line(i, n, "X", p, n) for i, (n, p) in enumerate(rows)]
        lines += ["TER", end] * bool(end)
    return "\n".join(lines) + "\n"


def test_frames_of_a_pdb(read):
    no_cell = "CRYST1    1.000    1.000    1.000  90.00  90.00  90.00 P 1           1"
    zero = no_cell.replace("1.000", "0.000")
    for end, head in (("END", ""), ("ENDMDL", no_cell), ("ENDMDL", zero)):
        molecules = read(pdb(["CA", "CL", "H"], end, head=head), "a.pdb")
        assert [molecule.symbols for molecule in molecules] == 2 * [("Ca", "Cl", "H")]


def test_a_pdb_in_a_cell_or_cut_or_without_elements_is_refused(read):
    text = pdb_line(1, "CA", "X", (0, 0, 0)) + "\n"
    with pytest.raises(XYZError, match="atom 1: there is no element.*columns 77"):
        read(text, "a.pdb")
    assert read(text, "a.pdb", species="C")[0].symbols == ("C",)
    serine = text.replace("X  ", "SER")  # where CA is a carbon
    assert read(serine, "a.pdb")[0].symbols == ("C",)
    cell = "CRYST1   30.000   30.000   30.000  90.00  90.00  90.00 P 1           1"
    with pytest.raises(XYZError, match="periodic"):
        read(pdb(["C"], head=cell), "a.pdb")
    twice = pdb(["C", "H"]).replace("H    X", "H   BX")
    with pytest.raises(XYZError, match="line 2: .*alternate"):
        read(twice, "a.pdb")
    for end in ("TER\n", "CONECT    1    2\n"):  # a last frame without its END
        assert len(read(pdb(["C", "H"], "END")[:-8] + end, "a.pdb")) == 2
    cut = pdb(["C", "H"]) + pdb_line(1, "C", "X", (0, 0, 0))
    for text in (cut, cut + "\n", cut[:-40]):
        with pytest.raises(XYZError, match="frame 2 is cut"):
            read(text, "a.pdb")
        assert len(read(text, "a.pdb", skip_incomplete=True)) == 2


def test_charges_of_a_pdb_are_added(read):
    for nitrogen in ("N2+", "N+2"):
        text = pdb(["C", "N", "O"]).replace(" N\n", f" {nitrogen}\n")
        text = text.replace(" O\n", " O1-\n")
        assert [molecule.charge for molecule in read(text, "a.pdb")] == [1, 1]


def test_all_molecules_of_an_sdf_are_read(chem, read):
    from rdkit.Chem import AllChem

    mol = chem.AddHs(chem.MolFromSmiles("C[NH3+]"))
    AllChem.EmbedMolecule(mol, randomSeed=1)
    text = 3 * (chem.MolToMolBlock(mol) + "$$$$\n")
    molecules = read(text, "a.sdf")
    assert [molecule.charge for molecule in molecules] == [1, 1, 1]
    assert np.allclose(
        molecules[2].positions, mol.GetConformer().GetPositions(), atol=1e-3
    )
    mol.GetAtomWithIdx(2).SetIsotope(2)
    heavy = read(chem.MolToMolBlock(mol), "a.sdf")
    assert "1 atoms of D" in " ".join(heavy.notes)
    with pytest.raises(XYZError, match="three dimensions"):
        read(chem.MolToMolBlock(chem.MolFromSmiles("CC")), "a.sdf")


NAMES = {
    "rMD17": ("coords", "nuclear_charges", "energies", "forces"),
    "SchNet": ("R", "z", "E", "F"),
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_arrays_of_molecules(names, tmp_path):
    positions = np.stack([WATER, WATER + 1])
    z, energies = np.array([8, 1, 1], np.uint8), np.array([[-1.0], [-2]])
    arrays = dict(zip(names, (positions, z, energies, positions), strict=True))
    path = tmp_path / "a.NPZ"
    arrays |= {"E_min": np.float64(-2), "F_mean": np.float64(0)}  # as of sGDML
    with path.open("wb") as file:
        np.savez(file, **arrays, old_energies=np.zeros(2), e_unit="kcal/mol")
    molecules = read_molecules(path)
    assert [each.symbols for each in molecules] == 2 * [("O", "H", "H")]
    assert np.allclose([each.energy for each in molecules], [-KCAL, -2 * KCAL])
    assert np.allclose(molecules[1].forces, KCAL * positions[1])
    path = tmp_path / "a.npz"
    for wrong in ({"E": [-1.0, -2, -3]}, {"F": WATER}):
        np.savez(path, R=positions, z=[8.0, 1.0, 1.0], **wrong)
        with pytest.raises(XYZError, match="array [EF] is not of 2 molecules"):
            read_molecules(path)
    np.savez(path, R=positions, charges=[-0.8, 0.4, 0.4])
    with pytest.raises(XYZError, match="no element '-0.8'"):
        read_molecules(path)
    np.savez(path, x=positions, forces=positions, kinds=z)
    with pytest.raises(XYZError, match="has x, forces, kinds"):
        read_molecules(path)
    np.savez(path, geometry=positions, atoms=z)
    with pytest.raises(XYZError, match="coords.*nuclear_charges.*has geometry, atoms"):
        read_molecules(path)


@pytest.mark.parametrize("name", ["elements", "atoms", "atom_numbers", "atom_types"])
def test_elements_and_more_by_other_names(name, tmp_path):
    path, z, more = tmp_path / "a.npz", {name: [8, 1, 1]}, {"U0": [0], "Q": [1.0]}
    np.savez(path, x=[WATER], G=[WATER], E=[-1.0], e_unit=b"kcal/mol", **z, **more)
    molecules = read_molecules(path)
    assert (molecules[0].symbols, molecules[0].charge) == (("O", "H", "H"), 1)
    assert np.isclose(molecules[0].energy, -KCAL)
    assert {"U0", "G"} <= set(" ".join(molecules.notes).split())
    for labels, expected in (({"y": [0]}, False), ({"F": [WATER]}, True), (z, True)):
        np.savez(path, x=[WATER], labels=[0], **labels)
        assert is_molecules(path) == expected
