"""The file of a learned density: what it holds, and what it refuses."""

import hashlib
import io
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from by_hand import same

from equistein.groups import PointCloud
from equistein.networks import MLP
from equistein.training._tree_file import (
    load_tree,
    MIGRATIONS,
    ModelFileError,
    name_of,
    save_tree,
    VERSION,
)


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


def test_nan_comes_back(path):
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
    with pytest.raises(ValueError, match=r"Mine.inner.list\[1\] is .*`classes`"):
        save_tree(path, tree)
    assert not path.exists()


def test_a_header_can_be_read_and_names_no_module(path):
    save_tree(path, Mine(jnp.ones(2), "a", (mine_too, eqx.nn.Linear(1, 1, key=key()))))
    first, rest = path.read_bytes().split(b"\n", 1)
    header = json.loads(rest[: int(first.split()[3])])
    assert header["tree"]["class"] == "Mine"
    assert header["tree"]["fields"]["label"] == "a"
    function, linear = header["tree"]["fields"]["inner"]["tuple"]
    assert function == {"function": "mine_too"}
    assert linear["class"] == "equinox.Linear"
    assert name_of(jax.nn.silu) == "jax.silu"


def key():
    return jax.random.key(0)


# ------------------------------------------------------------ what is refused


def test_a_class_that_is_not_known_is_named(path):
    save_tree(path, Mine(jnp.ones(2), "a"))
    with pytest.raises(ModelFileError, match=r"made of 'Mine'.*classes=\[Mine\]"):
        load_tree(path, (MLP,))


class Once(eqx.Module):
    weight: jax.Array


def test_a_class_with_other_fields_is_refused(path):
    class Once(eqx.Module):  # as an earlier version had it
        weight: jax.Array
        old: int

    save_tree(path, Once(jnp.ones(2), 3))
    with pytest.raises(ModelFileError, match=r"Once has other fields .*\(old\)"):
        load_tree(path, (globals()["Once"],))


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\n", b"no model\n", b"\x89PNG\r\n\x1a\n", b"equistein tree\n",
        b"equistein tree 1 20\n{}", b"equistein tree one two three\n",
        b'{"format": 2, "sha256": "00", "config": {}}\n\x93NUMPY',  # of before
        b"equistein tree 1 -5 " + 64 * b"0" + b"\n{}",
    ],
)  # fmt: skip
def test_a_file_that_is_no_model_is_refused(content, path):
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="is no model that this version.*fitted"):
        load_tree(path, KNOWN)


def test_a_file_of_a_later_version_is_refused(path):
    path.parent.mkdir()
    later = b"equistein tree %d 5 " % (VERSION + 1)
    for line in (later + 64 * b"0", b"equistein tree 99 anything"):
        path.write_bytes(line + b"\n12345")
        with pytest.raises(ModelFileError, match="later version.*update equistein"):
            load_tree(path, KNOWN)


@pytest.mark.parametrize("place", [0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
@pytest.mark.parametrize("kind", ["flipped", "cut"])
def test_a_damaged_file_is_refused(place, kind, path):
    save_tree(path, Mine(jnp.arange(100.0), "a", [0.125, "text", 17]))
    content = bytearray(path.read_bytes())
    index = content.index(b"\n") + 1
    index += int(place * (len(content) - index))
    content[index] ^= 1
    path.write_bytes(bytes(content if kind == "flipped" else content[:index]))
    with pytest.raises(ModelFileError, match="damaged.*checksum"):
        load_tree(path, KNOWN)


def forged(path, tree, content=None):
    """Write a file whose checksum is right and whose tree is not."""
    save_tree(path, [jnp.ones(2)])
    first, rest = path.read_bytes().split(b"\n", 1)
    arrays = rest[int(first.split()[3]) + 1 :] if content is None else content
    header = json.dumps({"tree": tree}).encode() if tree is not None else b"{"
    rest = header + b"\n" + arrays
    digest = hashlib.sha256(rest).hexdigest()
    path.write_bytes(f"equistein tree 1 {len(header)} {digest}\n".encode() + rest)


@pytest.mark.parametrize(
    "tree",
    [
        None, {"array": 5}, {"array": "os"}, {"class": "Mine"}, {"list": 3},
        {"class": "Mine", "fields": [1]}, {"class": "mine_too", "fields": {}},
        {"method": "no_method", "of": 3}, {"float": "text"}, {"unknown": 1},
    ],
)  # fmt: skip
def test_a_forged_header_is_refused(tree, path):
    forged(path, tree)
    with pytest.raises(ModelFileError, match="damaged"):
        load_tree(path, KNOWN)


@pytest.mark.parametrize("name", ["os.system", "builtins.eval", "equistein.save_tree"])
def test_a_file_never_names_code_to_import(name, path):
    for kind in ({"function": name}, {"class": name, "fields": {}}):
        forged(path, kind)
        with pytest.raises(ModelFileError, match=f"{name}.*does not know"):
            load_tree(path, KNOWN)


def test_a_file_never_holds_pickled_objects(path):
    payload = io.BytesIO()
    np.savez(payload, **{"0": np.array([{}], object)})
    forged(path, {"numpy": 0}, payload.getvalue())
    with pytest.raises(ModelFileError, match="damaged.*allow_pickle"):
        load_tree(path, KNOWN)


def test_what_would_not_fit_into_memory_is_not_read(path, monkeypatch):
    payload = io.BytesIO()
    np.savez_compressed(payload, **{"0": np.zeros(100_000)})
    forged(path, {"numpy": 0, "shape": [100_000]}, payload.getvalue())
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", "500000")
    with pytest.raises(ModelFileError, match="set EQUISTEIN_MAX_BYTES to 800"):
        load_tree(path, KNOWN)
    forged(path, [0] * 20_000)
    with pytest.raises(ModelFileError, match="The header of .* would need about"):
        load_tree(path, KNOWN)
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", "5000")
    with pytest.raises(ModelFileError, match="model.eqx would need about"):
        load_tree(path, KNOWN)


def test_an_old_header_is_migrated_step_by_step(path, monkeypatch):
    import equistein.training._tree_file as module

    save_tree(path, Mine(jnp.ones(2), "a"))

    def renamed(header):
        fields = header["tree"]["fields"]
        fields["label"] = fields["label"] + " migrated"
        return header

    migrations = {VERSION: renamed, VERSION + 1: renamed}
    monkeypatch.setattr(module, "VERSION", VERSION + 2)
    monkeypatch.setattr(module, "MIGRATIONS", migrations)
    assert load_tree(path, KNOWN).label == "a migrated migrated"
    save_tree(path, Mine(jnp.ones(2), "b"))
    assert load_tree(path, KNOWN).label == "b"


def test_a_normal_density_of_version_1_lives_on_its_group_s_subspace():
    old = {"tree": [{"class": "equistein.Normal", "fields": {"group": 1, "dim": 2}}]}
    assert MIGRATIONS[1](old)["tree"][0]["fields"] == {"subspace": 1, "dim": 2}


def test_steps_of_version_3_are_as_warm_as_the_density():
    old = {"tree": {"class": "equistein.DiffusionSteps", "fields": {"num_steps": 5}}}
    new = MIGRATIONS[3](old)["tree"]["fields"]
    assert new == {"num_steps": 5, "temperature": 1.0}


def test_each_version_has_its_migration():
    assert set(MIGRATIONS) == set(range(1, VERSION))
