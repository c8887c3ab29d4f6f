import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from group_registry import sample
from kernel_registry import (
    every_exact_kernel,
    KERNELS,
    moved,
    points_and_scores,
    stein_force,
)
from registries import normal

from equistein.features import PairHistogram
from equistein.groups import Cyclic, Dihedral, Orthogonal, PointCloud, SpecialOrthogonal
from equistein.kernels import (
    Equivariant,
    Gradient,
    IMQ,
    Invariant,
    Moments,
    Pullback,
    RBF,
)
from equistein.samplers import SVGD, vector_adam
from equistein.targets import DoubleWell, RotatedGaussians, Shells


@eqx.filter_jit
def representations(group, elements, shape):
    """Return the matrix of each element on flattened points."""
    size = int(np.prod(shape))
    basis = jnp.eye(size).reshape(size, *shape)
    act = jax.vmap(jax.vmap(group.push, (None, 0)), (0, None))
    return jnp.swapaxes(act(elements, basis).reshape(-1, size, size), 1, 2)


@every_exact_kernel
def test_matrix_is_equivariant_in_each_argument(make, group, shape, key):
    kernel = make(0.8)
    keys = jr.split(key, 4)
    project = jax.jit(jax.vmap(group.project))
    xs, ys = (project(normal(k, (3, *shape))) for k in keys[:2])
    g, h = sample(group, keys[2], 3), sample(group, keys[3], 3)
    matrices = jax.jit(jax.vmap(kernel.matrix))
    before = matrices(xs, ys)
    after = matrices(moved(group, g, xs), moved(group, h, ys))
    left, right = (np.asarray(representations(group, e, shape)) for e in (g, h))
    turned = left @ np.asarray(before) @ right.swapaxes(1, 2)
    assert np.allclose(after, turned, atol=1e-10)
    assert np.max(np.abs(before)) > 1e-6


@pytest.mark.parametrize("name", ["rbf", "imq"])
def test_radial_kernels_are_jointly_invariant(name, key):
    kernel, group = KERNELS[name][0](0.8), Orthogonal(3)
    x, y = normal(key, (2, 3))
    for g in group.sample(key, 3):
        assert np.allclose(kernel(group.act(g, x), group.act(g, y)), kernel(x, y))
    assert not np.allclose(kernel(group.act(g, x), y), kernel(x, y))


@pytest.mark.parametrize("base", [RBF(0.8), IMQ(0.8)])
def test_invariant_kernel_is_invariant_in_each_argument(base, key):
    group = Cyclic(4)
    kernel = Invariant(base, group)
    x, y = normal(key, (2, 2))
    values = jax.vmap(jax.vmap(kernel, (None, 0)), (0, None))(
        group.orbit(x), group.orbit(y)
    )
    assert np.allclose(values, kernel(x, y))


# ------------------------------------------------- one particle along its orbit

ORBITS = {
    "c4": (lambda: Equivariant(RBF(0.7), Cyclic(4)), RotatedGaussians(Cyclic(4))),
    "d5": (lambda: Equivariant(RBF(0.7), Dihedral(5)), RotatedGaussians(Dihedral(5))),
    "so3": (
        lambda: Equivariant(RBF(0.7), SpecialOrthogonal(3)),
        Shells((2.0, 4.0), 0.5, 3),
    ),
    "point cloud": (lambda: Pullback(RBF(0.7), DoubleWell().features), DoubleWell()),
    "planar point cloud": (
        lambda: Equivariant(RBF(2.0), PointCloud((0,) * 4, 2)),
        DoubleWell(),
    ),
    "gradient": (lambda: Gradient(RBF(2.0), DoubleWell().features), DoubleWell()),
    "moments": (
        # A large ridge, or solving for the weights amplifies the rounding.
        lambda: Moments(PairHistogram((0,) * 4, num_centers=8), ridge=0.1),
        DoubleWell(),
    ),
}


def errors_of_turning_one(kernel, target, optimizer, dtype, key):
    """Move one particle along its orbit; return the errors of it and of the others."""
    group = target.group
    point_key, element_key, run_key = jr.split(key, 3)
    x = 1.5 * normal(point_key, (6, *_SHAPES[type(target), group]), dtype)
    x = jax.vmap(group.project)(x)
    sampler = SVGD(kernel, optimizer, score_clip=10.0)

    @jax.jit
    def three_steps(x):
        step = lambda _, state: sampler.step(run_key, state, target.log_density)[0]
        return jax.lax.fori_loop(
            0, 3, step, sampler.init(x, target.log_density)
        ).particles

    @jax.jit
    def turn(point):
        elements = group.sample(element_key, 16)
        moved = jax.vmap(group.act, (0, None))(elements, x[2])
        gaps = jnp.sum((moved - x[2][None]).reshape(16, -1) ** 2, axis=1)
        farthest = jax.tree.map(lambda leaf: leaf[jnp.argmax(gaps)], elements)
        return group.act(farthest, point)

    straight, turned = three_steps(x), three_steps(x.at[2].set(turn(x[2])))
    assert np.max(np.abs(straight[2] - x[2])) > 1e-3
    gaps = np.abs(turned - straight.at[2].set(turn(straight[2])))
    gaps = np.max(gaps.reshape(6, -1), axis=1)
    return gaps[2], np.max(np.delete(gaps, 2))


_SHAPES = {
    (RotatedGaussians, Cyclic(4)): (2,),
    (RotatedGaussians, Dihedral(5)): (2,),
    (Shells, Orthogonal(3)): (3,),
    (DoubleWell, PointCloud((0,) * 4, 2)): (4, 2),
}


@pytest.mark.parametrize(
    ("name", "optimizer", "dtype", "tolerance"),
    [
        *((name, vector_adam(0.1), jnp.float64, 1e-10) for name in ORBITS),
        ("so3", optax.sgd(1.0), jnp.float64, 1e-10),
        ("point cloud", vector_adam(0.1), jnp.float32, 1e-5),
    ],
)
def test_turning_one_particle_turns_its_path_and_no_other(
    name, optimizer, dtype, tolerance, key
):
    make, target = ORBITS[name]
    own, others = errors_of_turning_one(make(), target, optimizer, dtype, key)
    assert own < tolerance
    assert others < tolerance


@pytest.mark.parametrize("order", [4, 5])
def test_the_invariant_kernel_does_not_turn_the_path(order, key):
    target = RotatedGaussians(Cyclic(4) if order == 4 else Dihedral(5))
    kernel = Invariant(RBF(0.7), target.group)
    own, _ = errors_of_turning_one(kernel, target, optax.sgd(1.0), jnp.float64, key)
    assert own > 1e-2


def test_adam_does_not_turn_the_path(key):
    make, target = ORBITS["so3"]
    own, _ = errors_of_turning_one(make(), target, optax.adam(0.1), jnp.float64, key)
    assert own > 1e-2


@pytest.mark.parametrize("wrap", [Equivariant, Invariant])
def test_a_haar_sample_lives_on_the_subspace_of_its_group(wrap, key):
    group = PointCloud((0, 1, 1), 2)
    kernel = wrap(RBF(0.7), group, num_samples=3, key=jr.key(1))
    x, y, s = points_and_scores(key, (3, 2))
    force = stein_force(kernel, x, y, s)
    assert np.max(np.abs(np.mean(force, axis=1))) < 1e-12
    projected = [jax.vmap(group.project)(points) for points in (x, y, s)]
    assert np.allclose(force, stein_force(kernel, *projected), atol=1e-12)
