import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kernel_registry import (
    COSTLY,
    every_kernel,
    every_kernel_costly_ones_slow,
    KERNELS,
    points_and_scores,
    stein_force,
)
from registries import normal, some_slow

STEP = 1e-5


@eqx.filter_jit
def matrices(kernel, targets, sources):
    """Return the kernel's matrix of each target with each source."""
    return jax.vmap(jax.vmap(kernel.matrix, (None, 0)), (0, None))(targets, sources)


def matrix_and_force(kernel, targets, sources, scores):
    """Return the matrices among targets, and the Stein force by its definition.

    The slopes are those of differences, so that one program gives all.
    """
    size = targets[0].size
    steps = STEP * np.eye(size).reshape(size, 1, *targets.shape[1:])
    ends = np.concatenate([steps + sources, -steps + sources])
    others = [targets, sources, ends.reshape(-1, *targets.shape[1:])]
    blocks = np.asarray(matrices(kernel, targets, np.concatenate(others)))
    among, to, around = np.split(blocks, np.cumsum([len(x) for x in others[:2]]), 1)
    around = around.reshape(len(targets), 2, size, len(sources), size, size)
    slopes = (around[:, 0] - around[:, 1]) / (2 * STEP)
    terms = np.einsum("ijab,jb->ija", to, np.reshape(scores, (len(sources), size)))
    terms = terms + np.einsum("ibjab->ija", slopes)  # dK_ab / dy_b
    return among, np.mean(terms, axis=1).reshape(targets.shape)


@every_kernel
def test_matrix_is_symmetric_and_positive_semidefinite(make, shape, key):
    x, *sources = map(np.asarray, points_and_scores(key, shape))
    blocks, _ = matrix_and_force(make(0.7), x[:6], *sources)
    size = x[0].size
    assert blocks.shape == (6, 6, size, size)
    gram = blocks.transpose(0, 2, 1, 3).reshape(6 * size, 6 * size)
    assert np.allclose(gram, gram.T, atol=1e-12)
    assert np.linalg.eigvalsh(gram).min() > -1e-10
    assert np.trace(gram) > 1e-3


@every_kernel_costly_ones_slow
def test_force_is_what_the_definition_says(make, shape, key):
    kernel, points = make(0.7), points_and_scores(key, shape)
    force = stein_force(kernel, *points)
    assert force.shape == points[0].shape
    x, *sources = map(np.asarray, points)
    expected = matrix_and_force(kernel, x[:6], *sources)[1]
    assert np.allclose(force[:6], expected, atol=1e-8)


@every_kernel_costly_ones_slow
def test_force_and_its_gradient_are_finite_where_particles_meet(make, shape, key):
    kernel, x = make(0.7), np.array(normal(key, (4, *shape), np.float32))
    x[1], x[2] = x[0], 0
    if len(shape) == 2:
        x[3, 1] = x[3, 0]

    @jax.jit
    def values_and_gradients(y):
        force, pull_back = jax.vjp(lambda y: kernel.stein_force(y, y, -x), y)
        return force, pull_back(force), jax.vmap(kernel.matrix)(y, y)

    values = jax.tree.leaves(values_and_gradients(x))
    assert all(value.dtype == jnp.float32 for value in values)
    assert all(np.all(np.isfinite(value)) for value in values)


_IN_PAIRS = [name for name in KERNELS if name != "moments"]


@pytest.mark.parametrize("name", some_slow(_IN_PAIRS, set(COSTLY) - {"moments"}))
def test_blocks_give_what_the_whole_sum_gives(name, key, monkeypatch):
    make, _, shape = KERNELS[name]
    kernel, points = make(0.9), points_and_scores(key, shape)
    whole = stein_force(kernel, *points)
    monkeypatch.setattr("equistein.kernels._pairs._SIDE", 6)
    in_blocks = jax.jit(lambda *points: kernel.stein_force(*points))
    # 19 targets, 8 at a time: padded to three blocks of 7.
    assert "scan[" in str(in_blocks.trace(*points).jaxpr)
    assert np.allclose(in_blocks(*points), whole, atol=1e-12)


def relative_error_of_single_precision(kernel, x, y, s):
    force = stein_force(kernel, x, y, s)
    assert force.dtype == jnp.float32
    exact = stein_force(kernel, *(np.asarray(z, np.float64) for z in (x, y, s)))
    return np.max(np.abs(np.asarray(force) - np.asarray(exact))) / np.max(np.abs(exact))


@every_kernel_costly_ones_slow
def test_single_precision_is_close_to_double(make, shape, key):
    x, y, s = points_and_scores(key, shape, jnp.float32)
    assert relative_error_of_single_precision(make(0.9), x, y, s) < 1e-4


@pytest.mark.parametrize("name", some_slow(list(KERNELS), COSTLY))
def test_single_precision_holds_far_from_the_origin(name, key):
    make, _, shape = KERNELS[name]
    x, y, s = points_and_scores(key, shape, jnp.float32)
    x, y = (np.float32(1_000) + np.asarray(z) for z in (x, y))
    assert relative_error_of_single_precision(make(0.9), x, y, s) < 2e-2
