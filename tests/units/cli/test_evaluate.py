"""Energies and forces of a file by a learned energy, beside its own."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from command_line import as_users_run_it, status

import equistein as es
from equistein.molecules import BOLTZMANN

pytestmark = pytest.mark.usefixtures("unchecked")
KT = BOLTZMANN * 300
LENGTHS = np.array([0.96, 0.96, 1.52], np.float32)


def energy(x):
    pairs = jnp.stack([x[0] - x[1], x[0] - x[2], x[1] - x[2]])
    return 10 * jnp.sum((jnp.sqrt(jnp.sum(pairs**2, axis=1)) - LENGTHS) ** 2)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A fit of water, and frames in the order H O H with energies and forces in eV."""
    folder = tmp_path_factory.mktemp("run")
    with as_users_run_it():
        base = np.array([[0, 0.59, 0], [-0.76, 0, 0], [0.76, 0, 0]], np.float32)
        x = base + 0.05 * np.asarray(jr.normal(jr.key(0), (80, 3, 3)))
        forces = -np.asarray(jax.jit(jax.vmap(jax.grad(energy)))(x))
        model = es.models.for_data(
            jr.key(0), es.groups.PointCloud("OHH", 3), jnp.asarray(x),
            settings=es.models.LinearSettings(), atomic_numbers=[8, 1, 1],
        )  # fmt: skip
        about = {"atomic_numbers": [8, 1, 1], "kelvin": 300.0}
        model = dataclasses.replace(model, forces=forces / KT, about=about)
        model.fit(0, jnp.asarray(x)).save(folder / "model.eqx")
    order = [1, 0, 2]
    with open(folder / "frames.xyz", "w") as file:
        for frame, force in zip(x[:20], forces, strict=False):
            file.write("3\nProperties=species:S:1:pos:R:3:forces:R:3 ")
            file.write(f'energy={float(energy(frame)):.8f} pbc="F F F"\n')
            for atom in order:
                numbers = " ".join(f"{v:.8f}" for v in (*frame[atom], *force[atom]))
                file.write(f"{'OHH'[atom]} {numbers}\n")
    return folder


def test_energies_and_forces_of_a_file_are_compared(run, tmp_path, capsys):
    out = tmp_path / "new"
    frames, model = run / "frames.xyz", run / "model.eqx"
    assert status("evaluate", model, frames, "--out", out, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["force: mean error [eV/Å]"] < 0.05
    assert found["force: error of zero [eV/Å]"] > 0.3
    assert found["energy: mean error [meV/atom]"] < 2
    arrays = np.load(out / "evaluate.npz")
    gaps = np.abs(arrays["forces"] - arrays["file_forces"])
    assert gaps.mean() == pytest.approx(found["force: mean error [eV/Å]"])
    mean = gaps[:, 1:].mean()
    assert mean == pytest.approx(found["force on H: mean error [eV/Å]"])
    lines = (out / "evaluate.csv").read_text().splitlines()
    assert len(lines) == 21
    assert lines[0].split(",") == ["file_energy_eV", "energy_kT", "energy_eV"]
    assert {f.stem for f in (out / "figures").iterdir()} == {"parity", "elements"}
    # Frames of another temperature have the same forces in eV.
    again = tmp_path / "hot"
    words = ("--kelvin", "600", "--out", again, "--json")
    assert status("evaluate", model, frames, *words) == 0
    hot = json.loads(capsys.readouterr().out)
    assert hot == found | {"out": hot["out"]}
    assert status("evaluate", model, frames, "--out", out) == 2  # not empty


def test_files_are_read_by_the_options_of_a_fit(run, tmp_path, capsys):
    text = (run / "frames.xyz").read_text().replace("energy=", "e_mine=")
    (tmp_path / "other.xyz").write_text(text.replace("forces:R", "f_mine:R"))
    model, words = run / "model.eqx", ("--energy-key", "e_mine", "--json", "--out")
    found = {}
    for name, unit in (("eV", 1.0), ("kcal/mol", 0.0433641042)):
        more = ("--energy-unit", name, "--forces-key", "f_mine")
        out = tmp_path / name.replace("/", "-")
        assert (
            status("evaluate", model, tmp_path / "other.xyz", *more, *words, out) == 0
        )
        found[name] = json.loads(capsys.readouterr().out)
        exact = found[name]["force: error of zero [eV/Å]"]
        assert exact == pytest.approx(unit * found["eV"]["force: error of zero [eV/Å]"])
    assert found["eV"]["energy: mean error [meV/atom]"] < 2
    assert found["kcal/mol"]["force: mean error [eV/Å]"] > 0.3
    np.save(tmp_path / "x.npy", np.zeros((4, 9)))
    words = ("--energy-unit", "eV")
    assert status("evaluate", model, tmp_path / "x.npy", *words) == 2
    assert "--energy-unit: for molecules" in capsys.readouterr().err


def test_what_is_off_in_a_file_is_warned_of(run, tmp_path, capsys):
    frames = list(es.molecules.read_molecules(run / "frames.xyz"))
    bohr = [each.positions / 0.529177 for each in frames]
    es.molecules.write_xyz(tmp_path / "bohr.xyz", frames[0].symbols, np.array(bohr))
    model = run / "model.eqx"
    assert (
        status("evaluate", model, tmp_path / "bohr.xyz", "--out", tmp_path / "a") == 0
    )
    assert "warning: Molecules of H2O" in (err := capsys.readouterr().err)
    assert "--length-unit Bohr" in err
    words = ("--length-unit", "Bohr", "--out", tmp_path / "b")
    assert status("evaluate", model, tmp_path / "bohr.xyz", *words) == 0
    assert "warning: Molecules of H2O" not in capsys.readouterr().err


def test_tables_are_read_by_the_options_of_a_fit(tmp_path, capsys):
    x = 5 + np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
    with as_users_run_it():
        model = es.models.for_data(
            jr.key(0), es.groups.parse_group("trivial"), jnp.asarray(x),
            settings=es.models.LinearSettings(num_waves=5, moment_samples=0),
        )  # fmt: skip
        model = dataclasses.replace(model, about={"columns": ["x", "y"]})
        model.fit(0, jnp.asarray(x)).save(tmp_path / "model.eqx")
    rows = [f"{a:.3f};{b:.3f}".replace(".", ",") for a, b in x]  # or thousands?
    (tmp_path / "x.csv").write_text("\n".join(["x;y", *rows, ""]))
    words = ("evaluate", tmp_path / "model.eqx", tmp_path / "x.csv")
    assert status(*words, "--out", tmp_path / "a") == 2
    assert "--decimal ," in capsys.readouterr().err
    assert status(*words, "--decimal", ",", "--out", tmp_path / "a") == 0
    found = np.load(tmp_path / "a" / "evaluate.npz")["x"]
    assert np.allclose(found, x, atol=1e-3)


def test_points_of_another_kind_are_refused(run, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.zeros((4, 5)))
    assert status("evaluate", run / "model.eqx", tmp_path / "x.npy") == 2
    assert "points of shape (3, 3)" in capsys.readouterr().err
    np.save(tmp_path / "turned.npy", np.zeros((4, 9, 1, 1)))  # as many numbers
    assert status("evaluate", run / "model.eqx", tmp_path / "turned.npy") == 2
    assert "points of shape (9, 1, 1), but" in capsys.readouterr().err
    (tmp_path / "x.xyz").write_text("2\n\nH 0 0 0\nH 0 0 0.7\n")
    assert status("evaluate", run / "model.eqx", tmp_path / "x.xyz") == 2
    assert "index 0 is H2, but the fit is of H2O" in capsys.readouterr().err
    assert (
        status("evaluate", run / "model.eqx", run / "frames.xyz", "--kelvin", "-1") == 2
    )
