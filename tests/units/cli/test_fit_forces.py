"""Energies and forces of an extended .xyz file, at a temperature or without one."""

import json

import numpy as np
import pytest
from command_line import status, TINY, TINY_GRAPH


@pytest.fixture
def path(tmp_path, far_atoms):
    """Molecules of HF with springs for bonds."""
    lines = []
    for atoms in far_atoms:
        bond = atoms[1] - atoms[0]
        length = np.linalg.norm(bond)
        force = -20 * (length - 0.92) * bond / length
        energy = 10 * (length - 0.92) ** 2
        lines += ["2", f"Properties=species:S:1:pos:R:3:forces:R:3 energy={energy}"]
        for symbol, at, push in zip("HF", atoms, (-force, force), strict=True):
            lines.append(" ".join([symbol, *map(str, at), *map(str, push)]))
    (tmp_path / "hf.xyz").write_text("\n".join(lines))
    return tmp_path / "hf.xyz"


def test_without_a_temperature_they_are_not_used(path, capsys):
    begin = ["fit", path, "--group", "point-cloud", *TINY_GRAPH, "--dry-run"]
    assert status(*begin) == 0
    told = capsys.readouterr().out
    assert "from the energies and forces in the file, give --kelvin" in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "tiny", "said"),
    [
        ("features", TINY, "The file has energies and forces, at 300 K."),
        ("graph", TINY_GRAPH, "at 300 K; energies are not learned."),
    ],
)
def test_at_a_temperature_they_are_learned_and_judged(
    network, tiny, said, path, tmp_path, capsys
):
    out, at = tmp_path / "run", ["--kelvin", "300", "--network", network]
    assert status("fit", path, "--group", "point-cloud", *at, *tiny, "--out", out) == 0
    assert said in capsys.readouterr().out
    model = json.loads((out / "metrics.json").read_text())["entries"]["model"]
    assert model["held_out_force_error"] > 0
    assert model["held_out_energy_error"] > 0
    first = json.loads((out / "history.jsonl").read_text().splitlines()[0])
    assert first["force_matching_loss"] > 0
    assert ("squared_error" in first) == (network == "features")
    report = (out / "report.html").read_text()
    assert "held out force error" in report
    assert "eV/Å" in report


@pytest.mark.slow
@pytest.mark.parametrize("network", ["auto", "linear+graph"])
def test_a_solve_and_a_graph_network_are_compared(network, path, tmp_path, capsys):
    out, at = tmp_path / "run", ["--kelvin", "300", "--network", network]
    begin = ["fit", path, "--group", "point-cloud", *at, *TINY_GRAPH, "--num-gaussians"]
    assert status(*begin, "3", "--out", out) == 0
    told = capsys.readouterr().out
    chosen = told.split("Taken: ")[1].split(".")[0]
    assert network in ("auto", chosen)
    report = (out / "report.html").read_text()
    assert "Mean loss of denoising" in report
    assert f"Taken: {chosen}" in report
    settings = json.loads((out / "config.json").read_text())["settings"]
    assert settings["ending"] == "flow"
    assert status("sample", out, "--num-samples", "3", "--out", tmp_path / "n.xyz") == 0


@pytest.mark.slow
def test_a_temperature_alone_solves_for_a_linear_energy(path, tmp_path, capsys):
    out = tmp_path / "run"
    few = ["--num-samples", "8", "--ais-steps", "4", "--sample-steps", "6"]
    begin = ["fit", path, "--group", "point-cloud", "--kelvin", "300"]
    assert status(*begin, "--dry-run") == 0
    assert "with the network linear" in capsys.readouterr().out
    assert status(*begin, "--width", "4", "--dry-run") == 0  # of a graph network
    assert "with the network graph" in capsys.readouterr().out
    assert status(*begin, "--network", "auto", "--dry-run") == 0
    assert "with the network auto" in capsys.readouterr().out
    assert status(*begin, "--out", out, *few) == 0
    model = json.loads((out / "metrics.json").read_text())["entries"]["model"]
    assert model["held_out_force_error"] < 0.5  # eV / Angstrom; springs are known
    assert (out / "report.html").exists()
    drawn = tmp_path / "new.xyz"
    assert status("sample", out, "--num-samples", "3", "--out", drawn) == 0
    assert drawn.read_text().count("H ") == 3
