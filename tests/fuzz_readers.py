"""Every reader of the library, with a good file for each, which `make fuzz` changes."""

import contextlib
import gzip
import io
import json
import pathlib
import tempfile

import numpy as np

XYZ = "3\nwater energy=-1.5\nO 0 0 0\nH 0.76 0.59 0\nH -0.76 0.59 0\n"
EXTXYZ = (
    '2\nProperties=species:S:1:pos:R:3:forces:R:3 energy=-1.5 pbc="F F F"\n'
    "O 0 0 0 0.1 0 0\nH 0.76 0.59 0 0 0.1 0\n"
)
PDB = (
    "ATOM      1  C   UNL     1       0.000   0.000   0.000  1.00  0.00           C\n"
    "ATOM      2  O1  UNL     1       1.100   0.000   0.000  1.00  0.00           O\n"
    "END\n"
)
CSV = "x [nm],y,kind\n1.5,2,a\n3,4e-1,b\n5,6,a\n"
METRICS = {
    "entries": {"svgd": {"w1": 0.5, "w1_sd": 0.1, "w1_min": 0.4, "w1_max": 0.6}},
    "seeds": [0, 1], "num_samples": {"svgd": 8}, "floor": {"w1": 0.1},
    "about": {"w1": {"label": "distance", "better": "lower", "unit": ""}},
    "warnings": [["svgd", "particles drift away"]],
}  # fmt: skip
ENVIRONMENT = {"command": "equistein fit", "cpus": 2, "versions": {"jax": "1"}}
TEXT = {"title": "A run", "captions": {"line": "A line."}}


def seeds():
    """Return for each reader the name of its file, and the content of a good one."""
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    from PIL import Image

    picture = Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8))
    samples = _samples()
    with np.load(io.BytesIO(samples)) as stored:
        packed = _saved(np.savez_compressed, **stored)
    return {
        "npy": ("file.npy", _saved(np.save, x)),
        "npz": ("file.npz", _saved(np.savez, x=x, y=np.arange(6) % 2)),
        "packed": ("file.npz", _saved(np.savez_compressed, x=x)),
        "cached": ("file.npz", _kept(x)),
        "xyz": ("file.xyz", (XYZ * 2).encode()),
        "extxyz": ("file.extxyz", (EXTXYZ * 2).encode()),
        "xyz.gz": ("file.xyz.gz", gzip.compress((XYZ * 2).encode())),
        "pdb": ("file.pdb", (PDB * 2).encode()),
        "arrays": (
            "file.npz",
            _saved(np.savez, R=np.eye(6).reshape(6, 2, 3), z=[1, 9]),
        ),
        "csv": ("file.csv", CSV.encode()),
        "tsv": ("file.tsv", CSV.replace(",", "\t").encode()),
        "parquet": ("file.parquet", _parquet()),
        "png": ("file.png", _saved(picture.save, format="PNG")),
        "fit": ("config.json", _config_of_fit()),
        "metrics": ("metrics.json", json.dumps(METRICS).encode()),
        "environment": ("environment.json", json.dumps(ENVIRONMENT).encode()),
        "text": ("report.json", json.dumps(TEXT).encode()),
        "checkpoint": ("file.npz", _checkpoint()),
        "model": ("file.eqx", _model()),
        "samples": ("file.npz", samples),
        "samples.packed": ("file.npz", packed),
        "part": ("checkpoint/part.npz", _part()),
    }


def companions(reader):
    """Return what else a reader's folder holds: contents by name."""
    files = {}
    if reader in ("metrics", "environment", "text"):
        files = {"metrics": METRICS, "environment": ENVIRONMENT, "report": TEXT}
    if reader in ("metrics", "environment", "text", "part"):
        files["config"] = {"command": "fit"}
    return {f"{name}.json": json.dumps(x).encode() for name, x in files.items()}


def read(reader, path):
    """Read a file by the reader that it is for."""
    import equistein as es
    from equistein.data import read_labels, read_points, read_table
    from equistein.data._cache import load_cached
    from equistein.molecules import read_molecules
    from equistein.training import LIBRARY_PARTS
    from equistein.training._checkpoint import load_checkpoint

    if reader in ("npy", "npz", "packed"):
        points = read_points(path)
        read_labels(path, len(points))
        if reader != "packed":
            es.data.map_points(path)
    elif reader == "cached":
        load_cached(path)
    elif reader in ("xyz", "extxyz", "xyz.gz", "pdb", "arrays"):
        read_molecules(path)
    elif reader in ("csv", "tsv", "parquet"):
        read_table(path, class_column=None if reader == "parquet" else "kind")
    elif reader == "png":
        es.data.read_image_folder(path.parent)
    elif reader == "checkpoint":
        load_checkpoint(path, _state(), {"seed": 1})
    elif reader == "model":
        es.training.load_tree(path, [es.networks.MLP, *LIBRARY_PARTS])
    elif reader.startswith("samples"):
        es.samplers.load_samples(path)
    else:
        read_run_folder(reader, path)


def read_run_folder(reader, path):
    """Read a file of a run folder, as the command does that reads it."""
    from equistein.cli._fit import read_settings
    from equistein.cli._runs import Report
    from equistein.runs import load_part, RunFolder

    if reader == "fit":
        read_settings(RunFolder.open(path.parent))
    elif reader == "part":
        load_part(RunFolder(path.parent.parent), "part")
    else:
        with contextlib.redirect_stdout(io.StringIO()):
            Report((path.parent,)).execute()


def _saved(save, *arguments, **named):
    content = io.BytesIO()
    save(content, *arguments, **named)
    return content.getvalue()


def _through_file(write):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "file.npz"
        write(path)
        return path.read_bytes()


def _kept(x):
    from equistein.data._cache import save_cached

    return _through_file(lambda path: save_cached(path, {"x": x}))


def _parquet():
    import pandas

    frame = pandas.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]})
    return _saved(lambda file: frame.to_parquet(file))


def _config_of_fit():
    from equistein.models import ContrastiveSettings, Problem
    from equistein.runs import settings_to_json

    parts = {
        "problem": Problem(group="trivial", network="features"),
        "settings": ContrastiveSettings(),
    }
    described = {name: settings_to_json(part) for name, part in parts.items()}
    return json.dumps({"command": "fit", **described}).encode()


def _part():
    from equistein.runs import RunFolder, save_part, seed_outcome

    def write(path):
        (path.parent / "config.json").write_text('{"command": "fit"}')
        outcome = seed_outcome({"w1": 1.0}, np.ones((6, 2)), history={"step": [1, 2]})
        save_part(RunFolder(path.parent), "part", outcome)
        path.write_bytes((path.parent / "checkpoint/part.npz").read_bytes())

    return _through_file(write)


def _state():
    return {"w": np.arange(6.0).reshape(2, 3), "n": np.zeros((), np.int32)}


def _checkpoint():
    from equistein.training._checkpoint import save_checkpoint

    return _through_file(
        lambda path: save_checkpoint(path, _state(), {"seed": 1}, {}, [])
    )


def _model():
    import jax.random as jr

    import equistein as es
    from equistein.training._tree_file import save_tree

    network = es.networks.MLP(2, widths=(3,), key=jr.key(0))
    return _through_file(lambda path: save_tree(path, network))


def _samples():
    import jax.numpy as jnp

    import equistein as es

    log_density = lambda x: -0.5 * jnp.sum(x**2)
    start = jnp.ones((4, 2))
    samples = es.run(0, es.Langevin(0.1), log_density, start, num_steps=3)
    return _through_file(samples.save)
