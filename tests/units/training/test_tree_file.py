"""The file of a learned density: what it holds, and what it refuses."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from equistein._serialization import load_arrays, save_arrays
from equistein.groups import PointCloud
from equistein.networks import MLP
from equistein.training import FileFormatError
from equistein.training._tree_file import load_tree, save_tree
from short_fits import same


class Mine(eqx.Module):
    weight: jax.Array
    label: str = eqx.field(static=True)
    inner: object = None


def mine_too(x):
    return 2 * x


KNOWN = (Mine, mine_too, MLP, eqx.nn.Linear, jax.nn.silu, PointCloud)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "model.eqx"


def again(tree, path, known=KNOWN):
    save_tree(path, tree)
    return load_tree(path, known)


@pytest.mark.parametrize(
    "tree",
    [
        None, True, 3, -0.1, "text", [1, 2.5], (1, (2, None)), {"a": [1], "b": "c"},
        float("inf"), {"array": 1, "class": "x"},
    ],
)  # fmt: skip
def test_plain_values_come_back_as_they_were(tree, path):
    found = again(tree, path)
    assert found == tree
    assert type(found) is type(tree)
    assert np.isnan(again(float("nan"), path))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool", "uint32"])
def test_arrays_come_back_bit_for_bit(dtype, path):
    values = np.arange(6).reshape(2, 3).astype(dtype)
    tree = {"here": jnp.asarray(values), "there": values, "no axis": np.float32(0.1)}
    found = again(tree, path)
    assert same(found, tree)
    assert isinstance(found["here"], jax.Array)
    assert isinstance(found["there"], np.ndarray)
    assert found["here"].dtype == found["there"].dtype == np.dtype(dtype)


def test_modules_come_back_with_their_static_fields_functions_and_methods(path, key):
    network = MLP(2, widths=(3,), key=key)
    tree = Mine(jnp.ones(2), "static", (network, mine_too, PointCloud("CO", 2).project))
    found = again(tree, path)
    assert isinstance(found, Mine)
    assert found.label == "static"
    assert same(found, tree)
    inner, function, method = found.inner
    assert np.array_equal(inner(jnp.ones(2)), network(jnp.ones(2)))
    assert function is mine_too
    assert np.allclose(jnp.sum(method(jnp.ones((2, 2)))), 0)
    assert jax.tree.structure(found.inner[0]) == jax.tree.structure(network)


def test_the_file_is_replaced_in_one_piece(path, monkeypatch):
    save_tree(path, Mine(jnp.ones(2), "first"))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="which no file can hold"):
        save_tree(path, Mine(jnp.ones(2), "second", lambda x: x))
    monkeypatch.setattr("os.fsync", lambda number: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_tree(path, Mine(jnp.ones(2), "third"))
    assert path.read_bytes() == before


@pytest.mark.parametrize("part", [lambda x: x, jax.jit(lambda x: x), object(), 1j])
def test_what_no_file_can_hold_is_refused_by_its_place(part, path):
    tree = Mine(jnp.ones(2), "a", {"list": [1, part]})
    with pytest.raises(ValueError, match="`classes`"):
        save_tree(path, tree)
    assert not path.exists()


def test_a_header_can_be_read_and_names_no_module(path, key):
    save_tree(path, Mine(jnp.ones(2), "a", (mine_too, eqx.nn.Linear(1, 1, key=key))))
    header, _ = load_arrays(path, "model")
    assert header["tree"]["class"] == "Mine"
    assert header["tree"]["fields"]["label"] == "a"
    function, linear = header["tree"]["fields"]["inner"]["tuple"]
    assert function == {"function": "mine_too"}
    assert linear["class"] == "equinox.Linear"


def test_a_class_that_is_not_known_is_named(path):
    save_tree(path, Mine(jnp.ones(2), "a"))
    with pytest.raises(FileFormatError, match=r"classes=\[Mine\]"):
        load_tree(path, (MLP,))


class Once(eqx.Module):
    weight: jax.Array


def test_a_class_with_other_fields_is_refused(path):
    class Once(eqx.Module):  # as an earlier version had it
        weight: jax.Array
        old: int

    save_tree(path, Once(jnp.ones(2), 3))
    with pytest.raises(FileFormatError, match="Once.*old"):
        load_tree(path, (globals()["Once"],))


@pytest.mark.parametrize(
    "tree",
    [
        {"array": 5}, {"array": "os"}, {"class": "Mine"}, {"list": 3},
        {"class": "Mine", "fields": [1]}, {"class": "mine_too", "fields": {}},
        {"method": "no_method", "of": 3}, {"float": "text"}, {"unknown": 1},
    ],
)  # fmt: skip
def test_a_forged_header_is_refused(tree, path):
    forged(path, tree)
    with pytest.raises(FileFormatError, match="damaged"):
        load_tree(path, KNOWN)


@pytest.mark.parametrize("name", ["os.system", "builtins.eval", "equistein.save_tree"])
def test_a_file_never_names_code_to_import(name, path):
    for kind in ({"function": name}, {"class": name, "fields": {}}):
        forged(path, kind)
        with pytest.raises(FileFormatError, match=f"{name}.*does not know"):
            load_tree(path, KNOWN)


def forged(path, tree):
    """Write a file whose checksum is right and whose tree is not."""
    path.parent.mkdir(exist_ok=True)
    save_arrays(path, "model", {"tree": tree}, {"0": np.ones(2)})
