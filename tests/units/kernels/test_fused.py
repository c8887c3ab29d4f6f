"""The Stein sum as one program of a card, in Pallas' interpreter."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.kernels import _fused, AbstractRadialKernel, IMQ, RBF
from equistein.kernels._fused import fused_sum, is_fused
from equistein.kernels._pairs import centered, sum_blocks


class Two(AbstractRadialKernel):
    """A kernel of a user's, of two lengths."""

    other: jax.Array
    bandwidth: jax.Array

    def profile(self, squared):
        near, far = jnp.exp(-squared / self.bandwidth), jnp.exp(-squared / self.other)
        return near + far, -near / self.bandwidth - far / self.other


KERNELS = {
    "rbf": (lambda: RBF(1.0), 2),
    "imq": (lambda: IMQ(0.7), 20),
    "own": (lambda: Two(jnp.asarray(3.0), jnp.asarray(1.0)), 64),
}


def given(key, dim, num=83):
    """Return targets, sources and scores, whose numbers fill no block."""
    keys = jr.split(key)
    x, y = jr.normal(keys[0], (70, dim)), jr.normal(keys[1], (num, dim))
    return *centered(3.0 + x, 3.0 + y, 3.0 + y), -y


def error(found, wanted):
    return float(jnp.linalg.norm(found - wanted) / jnp.linalg.norm(wanted))


@pytest.mark.usefixtures("single_precision")
@pytest.mark.parametrize("name", KERNELS)
def test_one_program_gives_the_sum_of_blocks(name, key):
    make, dim = KERNELS[name]
    kernel, rows = make(), given(key, dim)
    found = fused_sum(kernel, *rows, interpret=True)
    assert error(found, sum_blocks(kernel._block_sum, *rows)) < 1e-5


@pytest.mark.usefixtures("single_precision")
def test_sources_that_fill_up_a_block_would_be_seen(key, monkeypatch):
    """The broken twin, of blocks that are taken as full."""
    kernel, rows, body = RBF(1.0), given(key, 2), _fused._body
    full = lambda tree, static, num, *refs: body(tree, static, num + 13, *refs)
    monkeypatch.setattr(_fused, "_body", full)
    found = fused_sum(kernel, *rows, interpret=True)
    assert error(found, sum_blocks(kernel._block_sum, *rows)) > 1e-3


@pytest.mark.usefixtures("single_precision")
def test_derivatives_and_many_runs_are_those_of_blocks(key):
    kernel, (x, y, s) = RBF(1.0), given(key, 2)
    fused = lambda x: jnp.sum(fused_sum(kernel, x, y, s, interpret=True) ** 2)
    blocks = lambda x: jnp.sum(sum_blocks(kernel._block_sum, x, y, s) ** 2)
    assert error(jax.grad(fused)(x), jax.grad(blocks)(x)) < 1e-5
    both = jnp.stack([x, x + 1])
    assert np.allclose(jax.vmap(fused)(both), jax.vmap(blocks)(both), rtol=1e-4)


@pytest.mark.usefixtures("single_precision")
@pytest.mark.parametrize("name", KERNELS)
def test_it_is_a_program_of_triton_for_cuda(name, key):
    make, dim = KERNELS[name]
    program = jax.jit(lambda *rows: fused_sum(make(), *rows))
    lowered = program.trace(*given(key, dim)).lower(lowering_platforms=("cuda",))
    text = lowered.as_text()
    assert "triton" in text
    assert "radial_stein_sum" in text
    assert "tf32" not in text.lower()  # products of full single precision


@pytest.mark.usefixtures("single_precision")
def test_it_is_taken_on_a_card_where_it_is_asked_for(key, monkeypatch):
    rows = given(key, 2)[0]
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert not is_fused(RBF(1.0), rows)
    monkeypatch.setenv("EQUISTEIN_FUSED", "1")
    assert is_fused(RBF(1.0), rows)
    assert not is_fused(RBF(1.0), rows.astype("float16"))
    assert not is_fused(RBF(1.0), jnp.zeros((3, 65)))
    assert not is_fused(Two(jnp.ones(2), jnp.ones(())), rows)
    seen = []
    taken = lambda *given: seen.append(given) or jnp.zeros_like(rows)
    monkeypatch.setattr("equistein.kernels._radial.fused_sum", taken)
    RBF(1.0).stein_force(rows, rows, rows)
    assert len(seen) == 1
    monkeypatch.undo()
    assert not is_fused(RBF(1.0), rows)
