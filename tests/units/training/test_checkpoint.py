import shutil

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from by_hand import bowl, fit

from equistein.training import CheckpointError
from equistein.training._checkpoint import load_checkpoint, save_checkpoint

ROWS, EVENTS = {"loss": [1.0, 0.1], "scale": [float("nan"), 2.0]}, [{"epoch": 2}]


def same(first, second):
    return jax.tree.all(jax.tree.map(np.array_equal, first, second))


def test_a_checkpoint_gives_its_state_back(tmp_path, key):
    state = {"x": jr.normal(key, (3, 2)), "n": jnp.array(4), "h": np.arange(3.0)}
    blank = jax.tree.map(lambda leaf: leaf * 0, state)
    (tmp_path / "a").mkdir()
    path, header = tmp_path / "a" / "c.npz", {"seed": 1, "shape": (3, 2)}
    save_checkpoint(path, state, header, ROWS, EVENTS)
    found, rows, events = load_checkpoint(path, blank, {"seed": 1, "shape": [3, 2]})
    assert same(found, state)
    assert events == EVENTS
    assert str(rows) == str(ROWS)
    assert [file.name for file in (tmp_path / "a").iterdir()] == ["c.npz"]


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    path, state = tmp_path / "c.npz", {"x": jnp.ones(3)}
    save_checkpoint(path, state, {"seed": 1, "width": 8}, {}, [])
    with pytest.raises(CheckpointError, match=r"other settings \(seed\)"):
        load_checkpoint(path, state, {"seed": 2, "width": 8})
    with pytest.raises(CheckpointError, match=r"\(depth, width\)"):
        load_checkpoint(path, state, {"seed": 1, "depth": 8})


def test_a_damaged_file_is_refused_with_the_remedy(tmp_path):
    path, state = tmp_path / "c.npz", {"x": jnp.ones(300), "y": jnp.ones(300)}
    save_checkpoint(path, state, {"seed": 1}, {}, [])
    content = path.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 4
    for wrong in (b"", b"no json\n", content[:-100], bytes(flipped)):
        path.write_bytes(wrong)
        with pytest.raises(CheckpointError, match="delete it"):
            load_checkpoint(path, state, {"seed": 1})


def test_a_checkpoint_of_other_shapes_or_types_is_refused(tmp_path):
    path, header = tmp_path / "c.npz", {"seed": 1}
    save_checkpoint(path, {"x": jnp.ones(3)}, header, {}, [])
    for like in (jnp.ones(4), jnp.ones(3, jnp.float32), jnp.ones(3, int)):
        with pytest.raises(CheckpointError, match="does not fit the energy"):
            load_checkpoint(path, {"x": like}, header)


def test_a_fit_whose_checkpoint_cannot_be_written_says_so(tmp_path, key):
    (tmp_path / "deep").mkdir()
    path, data = tmp_path / "deep" / "c.npz", jr.normal(key, (16, 2))
    gone = lambda row: (tmp_path / "deep").exists() and shutil.rmtree(path.parent)
    with pytest.raises(OSError, match="c.npz"):
        fit(key, bowl(), data, num_epochs=3, checkpoint=path, callbacks=[gone])
