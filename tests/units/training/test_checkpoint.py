import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.training._checkpoint import (
    CheckpointError,
    CheckpointWriter,
    load_checkpoint,
    save_checkpoint,
)
from equistein.training._history import History


def same(first, second):
    return jax.tree.all(jax.tree.map(np.array_equal, first, second))


def test_a_checkpoint_gives_its_state_back(tmp_path, key):
    state = {"x": jr.normal(key, (3, 2)), "n": jnp.array(4), "h": np.arange(3.0)}
    blank = jax.tree.map(lambda leaf: leaf * 0, state)
    (tmp_path / "a").mkdir()
    save_checkpoint(tmp_path / "a" / "c.npz", state, {"seed": 1, "shape": (3, 2)})
    header = {"seed": 1, "shape": [3, 2]}
    assert same(load_checkpoint(tmp_path / "a" / "c.npz", blank, header), state)
    assert [file.name for file in (tmp_path / "a").iterdir()] == ["c.npz"]


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    path, state = tmp_path / "c.npz", {"x": jnp.ones(3)}
    save_checkpoint(path, state, {"seed": 1, "width": 8})
    with pytest.raises(CheckpointError, match=r"other settings \(seed\)"):
        load_checkpoint(path, state, {"seed": 2, "width": 8})
    with pytest.raises(CheckpointError, match=r"\(depth, width\)"):
        load_checkpoint(path, state, {"seed": 1, "depth": 8})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"no json\n",
        b"\xff\xfe\x00",
        b"123\n",
        b"[]\n",
        b'"text"\n',
        b"null\n",
    ],
)
def test_a_file_that_is_no_checkpoint_is_refused(content, tmp_path):
    path = tmp_path / "c.npz"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="no file of equistein.*delete it"):
        load_checkpoint(path, {"x": jnp.ones(3)}, {})


@pytest.mark.parametrize("fraction", [0.2, 0.5, 0.9])
def test_a_truncated_checkpoint_is_refused(fraction, tmp_path):
    path, state = tmp_path / "c.npz", {"x": jnp.ones(300), "y": jnp.ones(300)}
    save_checkpoint(path, state, {"seed": 1})
    content = path.read_bytes()
    path.write_bytes(content[: int(fraction * len(content))])
    with pytest.raises(CheckpointError, match="damaged"):
        load_checkpoint(path, state, {"seed": 1})


@pytest.mark.parametrize("place", [0.3, 0.6, 0.999])
def test_a_checkpoint_with_a_flipped_bit_is_refused(place, tmp_path):
    path, state = tmp_path / "c.npz", {"x": jnp.ones(300), "y": jnp.ones(300)}
    save_checkpoint(path, state, {"seed": 1})
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 4
    path.write_bytes(bytes(content))
    with pytest.raises(CheckpointError, match="damaged"):
        load_checkpoint(path, state, {"seed": 1})


def test_a_checkpoint_of_other_shapes_or_types_is_refused(tmp_path):
    path, header = tmp_path / "c.npz", {"seed": 1}
    save_checkpoint(path, {"x": jnp.ones(3)}, header)
    for like in (jnp.ones(4), jnp.ones(3, jnp.float32), jnp.ones(3, int)):
        with pytest.raises(CheckpointError, match="does not fit the energy"):
            load_checkpoint(path, {"x": like}, header)


def test_a_writer_keeps_the_last_state_and_tells_of_what_failed(tmp_path, monkeypatch):
    path, writer = tmp_path / "c.npz", CheckpointWriter()
    for value in range(5):
        writer.write(path, {"x": jnp.full(3, float(value))}, {"seed": 1})
    writer.finish()
    found = load_checkpoint(path, {"x": jnp.ones(3)}, {"seed": 1})
    assert np.array_equal(found["x"], np.full(3, 4.0))
    (tmp_path / "file").write_text("")
    writer.write(tmp_path / "file" / "c.npz", {"x": jnp.ones(3)}, {})
    with pytest.raises(OSError):  # noqa: PT011
        writer.write(path, {"x": jnp.ones(3)}, {})
    writer.finish()


def test_a_fit_s_numbers_do_not_change_while_they_are_written():
    history = History.empty(2, 1, ["loss", "scale"])
    kept = history.copied()
    history.add_row(0, {"loss": 1.0, "scale": 1.0})
    assert np.isnan(kept["rows"]["loss"]).all()
