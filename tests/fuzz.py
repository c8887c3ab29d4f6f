"""Gives every reader malformed files: `make fuzz`.

Whatever a file holds, a reader gives an error of its own or an answer, within 20 s and
2 GiB. Files are made from good ones by random changes of a fixed seed, or, where the
package atheris is installed and `--engine atheris` is given, by its search for files
that reach new lines. What once broke a reader stays in tests/corpus and is read in the
tests.
"""

import argparse
import gzip
import io
import json
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

CORPUS = pathlib.Path(__file__).parent / "corpus"
SECONDS, BYTES = 20, 2**31
XYZ = "3\nwater energy=-1.5\nO 0 0 0\nH 0.76 0.59 0\nH -0.76 0.59 0\n"
CSV = "x [nm],y,kind\n1.5,2,a\n3,4e-1,b\n5,6,a\n"
INTERESTING = [
    b"", b"0", b"-1", b"9" * 30, b"nan", b"1e999", b"\n", b"\0", b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff", b"{", b"[" * 2_000, b'"', b",", b"\x93NUMPY", b"PK\x03\x04",
]  # fmt: skip


def saved(save, *arguments, **named):
    content = io.BytesIO()
    save(content, *arguments, **named)
    return content.getvalue()


def seeds():
    """Return for each reader the end of its files' names, and the content of one."""
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    images = np.arange(32, dtype=np.uint8).tobytes()
    idx = b"\0\0\x08\x03" + b"".join(n.to_bytes(4) for n in (2, 4, 4)) + images
    from PIL import Image

    picture = Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8))
    return {
        "npy": (".npy", saved(np.save, x)),
        "npz": (".npz", saved(np.savez, x=x, y=np.array([0, 1, 0, 1, 0, 1]))),
        "packed": (".npz", saved(np.savez_compressed, x=x)),
        "xyz": (".xyz", (XYZ * 2).encode()),
        "xyz.gz": (".xyz.gz", gzip.compress((XYZ * 2).encode())),
        "csv": (".csv", CSV.encode()),
        "parquet": (".parquet", _parquet()),
        "idx": (".idx", idx),
        "idx.gz": (".idx.gz", gzip.compress(idx)),
        "png": (".png", saved(picture.save, format="PNG")),
        "config": (".json", _config()),
        "checkpoint": (".eqx", _checkpoint()),
        "model": (".eqx", _model()),
        "samples": (".npz", _samples()),
        "stage": (".npz", saved(np.savez, samples=x, events=np.array("[]"))),
    }


def _parquet():
    import pandas

    frame = pandas.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]})
    return saved(lambda file: frame.to_parquet(file))


def _config():
    from equistein.experiments import EXPERIMENTS
    from equistein.runs import config_to_json

    settings = config_to_json(EXPERIMENTS["c4-gaussians"].presets["smoke"])
    described = {"version": 3, "command": "run", "experiment": "c4-gaussians"}
    return json.dumps(described | {"seed": 0, "config": settings}).encode()


def _through_file(write):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "file.npz"
        write(path)
        return path.read_bytes()


def _state():
    return {"w": np.arange(6.0).reshape(2, 3), "n": np.zeros((), np.int32)}


def _checkpoint():
    from equistein.training._checkpoint import save_checkpoint

    return _through_file(lambda path: save_checkpoint(path, _state(), {"seed": 1}))


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


def read(reader, path):
    """Read a file by the reader that it is for."""
    import equistein as es
    from equistein.data import read_idx, read_labels, read_points, read_table
    from equistein.molecules import read_molecules
    from equistein.runs import load_outcome, RunFolder
    from equistein.training._checkpoint import load_checkpoint
    from equistein.training._tree_json import LIBRARY_PARTS

    if reader in ("npy", "npz", "packed"):
        points = read_points(path)
        read_labels(path, len(points))
        if reader != "packed":
            es.data.map_points(path)
    elif reader in ("xyz", "xyz.gz"):
        read_molecules(path)
    elif reader in ("csv", "parquet"):
        read_table(path, label="kind" if reader == "csv" else None)
    elif reader in ("idx", "idx.gz"):
        read_idx(path)
    elif reader == "png":
        es.data.read_image_folder(path.parent)
    elif reader == "config":
        from equistein.cli._run import read_run

        path.rename(path.with_name("config.json"))
        read_run(RunFolder.open(path.parent).read_config())
    elif reader == "checkpoint":
        load_checkpoint(path, _state(), {"seed": 1})
    elif reader == "model":
        es.training.load_tree(path, [es.networks.MLP, *LIBRARY_PARTS])
    elif reader == "samples":
        es.samplers.load_samples(path)
    else:
        (path.parent / "checkpoint").mkdir(exist_ok=True)
        path.rename(path.parent / "checkpoint" / "stage.npz")
        (path.parent / "config.json").write_text('{"version": 3, "command": "run"}')
        load_outcome(RunFolder(path.parent), "stage")


def trouble(reader, suffix, content):
    """Return what a reader should not have done with some content, or None."""
    from equistein.runs import UserError

    def too_long(*_):
        raise TimeoutError(f"more than {SECONDS} s")

    signal.signal(signal.SIGALRM, too_long)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"file{suffix}"
        path.write_bytes(content)
        if reader == "png":
            (pathlib.Path(folder) / "other.png").write_bytes(content)
        signal.alarm(SECONDS)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read(reader, path)
        except UserError:
            return None
        except Exception as error:
            if isinstance(error, ValueError) and _is_ours(error):
                return None
            return f"{type(error).__name__}: {error}"[:300]
        finally:
            signal.alarm(0)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return f"{used} bytes of memory" if used > BYTES else None


def _is_ours(error):
    place = error.__traceback__
    while place.tb_next is not None:
        place = place.tb_next
    return "equistein" in place.tb_frame.f_globals.get("__name__", "")


def mutated(draw, content):
    """Return content with a few random changes."""
    made = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 4, 16])):
        at, kind = draw.randrange(len(made) + 1), draw.randrange(6)
        length = draw.choice([1, 2, 4, 20])
        if kind == 0 and at < len(made):
            made[at] ^= 1 << draw.randrange(8)
        elif kind == 1 and at < len(made):
            made[at] = draw.randrange(256)
        elif kind == 2:
            made[at:at] = draw.choice(INTERESTING)
        elif kind == 3:
            del made[at : at + length]
        elif kind == 4:
            made[at : at + length] = draw.choice(INTERESTING)
        else:
            made[at:at] = made[at : at + length] * draw.choice([1, 3, 200])
    return bytes(made[: draw.randrange(len(made) + 1)] if draw.random() < 0.1 else made)


def search(reader, suffix, seed_content, number, seed):
    """Try many changes of one file; return those that a reader does not stand."""
    draw, found = random.Random(f"{seed} {reader}"), {}
    for _ in range(number):
        content = mutated(draw, seed_content)
        told = trouble(reader, suffix, content)
        if told is not None and told not in found:
            found[told] = content
            print(f"{reader}: {told}", flush=True)
    return found


def by_atheris(reader, suffix, seed_content, number):
    """Let atheris search; it ends this process."""
    import atheris

    with atheris.instrument_imports(include=["equistein"]):
        import equistein.data
        import equistein.molecules
        import equistein.runs  # noqa: F401

    def one(content):
        told = trouble(reader, suffix, content)
        if told is not None:
            raise AssertionError(told)

    corpus = pathlib.Path(tempfile.mkdtemp())
    (corpus / "seed").write_bytes(seed_content)
    atheris.Setup([sys.argv[0], f"-runs={number}", "-seed=1", str(corpus)], one)
    atheris.Fuzz()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=20_000, help="of files a reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", action="append")
    parser.add_argument("--engine", choices=["random", "atheris"], default="random")
    chosen = parser.parse_args()
    known = seeds()
    failed = 0
    for reader in chosen.reader or known:
        suffix, content = known[reader]
        if chosen.engine == "atheris" and chosen.reader:
            by_atheris(reader, suffix, content, chosen.number)
        elif chosen.engine == "atheris":
            words = ["--engine", "atheris", "--number", str(chosen.number)]
            command = [sys.executable, __file__, *words, "--reader", reader]
            failed += subprocess.run(command, check=False).returncode != 0
            continue
        began = time.monotonic()
        found = search(reader, suffix, content, chosen.number, chosen.seed)
        failed += len(found)
        for index, content in enumerate(found.values()):
            CORPUS.mkdir(exist_ok=True)
            (CORPUS / f"{reader}-{chosen.seed}-{index}{suffix}").write_bytes(content)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        seconds = time.monotonic() - began
        print(
            f"| {reader} | {chosen.number} files | {len(found)} errors not ours | "
            f"{seconds:.0f} s | largest memory so far {used} MiB |", flush=True,
        )  # fmt: skip
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
