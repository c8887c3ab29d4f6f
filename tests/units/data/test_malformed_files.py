"""Every reader stands malformed files: some at random, and all that once broke one."""

import importlib.util
import pathlib

import pytest

pytestmark = pytest.mark.usefixtures("unchecked")
TESTS = pathlib.Path(__file__).parents[2]
CORPUS = sorted((TESTS / "corpus").iterdir())


@pytest.fixture(scope="module")
def fuzz():
    spec = importlib.util.spec_from_file_location("fuzz", TESTS / "fuzz.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def seeds(fuzz):
    return fuzz.fuzz_readers.seeds()


READERS = (
    "npy", "npz", "packed", "cached", "xyz", "extxyz", "xyz.gz", "pdb", "arrays",
    "csv", "tsv", "parquet", "png", "fit", "metrics", "environment",
    "text", "checkpoint", "model", "samples", "samples.packed", "part",
)  # fmt: skip


def test_every_reader_is_tried(seeds):
    assert tuple(seeds) == READERS


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_has_a_good_file(reader, seeds, fuzz, tmp_path):
    path = fuzz.laid(tmp_path, reader, *seeds[reader])
    fuzz.fuzz_readers.read(reader, path)


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_stands_malformed_files(reader, seeds, fuzz):
    assert fuzz.search(reader, *seeds[reader], number=30, seed=1) == {}


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_what_once_broke_a_reader_does_no_more(path, seeds, fuzz):
    reader = path.name.partition("-")[0]
    assert fuzz.trouble(reader, seeds[reader][0], path.read_bytes()) is None


def test_an_error_that_is_not_ours_is_found(seeds, fuzz, monkeypatch):
    """The broken twin."""
    monkeypatch.setattr(fuzz.fuzz_readers, "read", lambda reader, path: {}["nothing"])
    assert "KeyError" in fuzz.trouble("npy", *seeds["npy"])
