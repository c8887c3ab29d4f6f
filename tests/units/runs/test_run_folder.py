import concurrent.futures
import dataclasses
import json
import shutil

import numpy as np
import pytest

from equistein._files import write_whole
from equistein.runs import RunFolder, settings_from_json, settings_to_json, UserError


def test_a_new_folder_is_made_and_one_in_use_refused(tmp_path):
    folder = RunFolder.create(tmp_path / "a" / "run")
    assert [file.name for file in folder.path.iterdir()] == [".lock"]
    folder.write("thesis.txt", "mine")
    with pytest.raises(UserError, match="not empty"):
        RunFolder.create(folder.path)
    assert (folder.path / "thesis.txt").read_text() == "mine"


def test_what_a_run_killed_at_its_first_file_left_is_no_run(tmp_path):
    (tmp_path / ".config.json.part").write_text("{")
    RunFolder.create(tmp_path)


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="Cannot write"):
        RunFolder.create(tmp_path / "file" / "x")
    with pytest.raises(TypeError):
        write_whole(tmp_path / "x", "a text")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "content",
    ["", "{", "[1, 2]", '"text"', "\udcff", "[" * 100_000, '{"version": NaN}'],
    ids=range(7),
)
def test_a_damaged_config_is_told_with_its_path(content, tmp_path):
    path = tmp_path / "config.json"
    with pytest.raises(UserError, match="is not a run folder"):
        RunFolder.open(tmp_path)
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(UserError, match="config.json"):
        RunFolder.open(tmp_path).read_json("config.json")


def test_json_never_holds_what_is_not_finite(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        RunFolder.create(tmp_path).write_json("metrics.json", {"w1": np.inf})
    assert not (tmp_path / "metrics.json").exists()


def test_one_process_works_in_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("equistein.runs._folder._PATIENCE", 0)
    folder = RunFolder.create(tmp_path)
    for begin in (RunFolder.create, lambda path: RunFolder(path).hold()):
        with pytest.raises(UserError, match="Another process works in"):
            begin(tmp_path)
    folder.hold()  # which it does already
    folder.release()
    other = RunFolder(tmp_path)
    other.hold()
    other.release()


def test_what_a_killed_process_left_half_written_goes(tmp_path):
    folder = RunFolder.create(tmp_path)
    folder.write("checkpoint/a.npz", b"whole")
    folder.release()
    for name in (".config.json.12ab34cd.part", "checkpoint/.a.npz.99ffaa00.part"):
        (tmp_path / name).write_bytes(b"half")
    RunFolder(tmp_path).hold()
    found = sorted(f.name for f in tmp_path.rglob("*") if f.is_file())
    assert found == [".lock", "a.npz"]


def test_a_folder_that_is_gone_is_not_made_again(tmp_path):
    """A run whose folder was deleted would otherwise go on in one with a part of it."""
    folder = RunFolder.create(tmp_path / "run")
    folder.write("checkpoint/a", "1")
    shutil.rmtree(folder.path)
    for name in ("metrics.json", "checkpoint/b"):
        with pytest.raises(FileNotFoundError):
            folder.write(name, "2")
    assert not folder.path.exists()


def test_processes_that_write_one_file_do_not_meet(tmp_path):
    """Each writes under a name of its own; a reader sees one of them, whole."""
    path, contents = tmp_path / "x", [bytes([i]) * 200_000 for i in range(4)]

    def write(content):
        for _ in range(25):
            write_whole(path, content)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(write, content) for content in contents]
        seen = {path.read_bytes() for _ in range(200) if path.exists()}
        for job in jobs:
            job.result()
    assert seen <= set(contents)
    assert [file.name for file in tmp_path.iterdir()] == ["x"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inner:
    rate: float = 0.1
    epochs: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    num_steps: int = 3
    radii: tuple[float, ...] = (1.0, 4.0)
    models: tuple[str, ...] = ("plain",)
    quick: bool = False
    width: int | None = None
    inner: Inner = Inner()

    def __post_init__(self):
        if self.num_steps < 1:
            raise ValueError(f"`num_steps` must be positive, but got {self.num_steps}.")


@pytest.mark.parametrize(
    "config",
    [Config(), Config(width=2, radii=(), inner=Inner(rate=1.0, epochs=(3, 4)))],
)
def test_a_config_survives_its_json(config):
    values = json.loads(json.dumps(settings_to_json(config)))
    assert settings_from_json(Config, values) == config


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_steps", "many"), ("num_steps", 2.5), ("num_steps", True),
        ("num_steps", -1), ("radii", 4.0), ("radii", [1.0, "two"]), ("quick", 1),
        ("width", {}), ("wheels", 3), ("inner", {"rate": 0.5}), ("inner", 3),
    ],
)  # fmt: skip
def test_a_config_that_does_not_fit_is_refused(name, value):
    with pytest.raises(ValueError, match=name):
        settings_from_json(Config, settings_to_json(Config()) | {name: value})


def test_what_is_no_object_and_no_finite_number_is_refused():
    for values in (None, [], "text"):
        with pytest.raises(ValueError, match="Config"):
            settings_from_json(Config, values)
    with pytest.raises(ValueError, match="Inner must be finite"):
        settings_to_json(Inner(rate=float("inf")))
