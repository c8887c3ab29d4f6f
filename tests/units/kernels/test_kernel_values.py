import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from equistein.features import Radius, SortedDistances
from equistein.groups import Cyclic, SpecialOrthogonal
from equistein.kernels import (
    AbstractScalarKernel,
    Equivariant,
    Gradient,
    IMQ,
    Invariant,
    measured_bandwidth,
    Median,
    Moments,
    Pullback,
    RBF,
)
from equistein.samplers import run, SVGD

X, Y = jnp.zeros(2), jnp.array([2.0, 0.0])


def test_rbf_value_fixes_the_bandwidth_convention():
    assert np.isclose(RBF(2.0)(X, Y), np.exp(-0.5))
    assert np.isclose(RBF(1.0)(X, Y), np.exp(-2.0))
    assert RBF(2.0)(Y, Y) == 1


def test_imq_value_fixes_the_bandwidth_convention():
    assert np.isclose(IMQ(2.0)(X, Y), (1 + 0.5) ** -0.5)
    assert np.isclose(IMQ(1.0)(X, Y), (1 + 2.0) ** -0.5)
    assert IMQ(2.0)(Y, Y) == 1


@pytest.mark.parametrize("make", [RBF, IMQ])
def test_profile_is_the_kernel_and_its_slope(make):
    kernel, squared = make(0.7), jnp.array([0.0, 0.3, 4.0])
    value, slope = kernel.profile(squared)
    assert np.allclose(value[1], kernel(X, jnp.array([0.3**0.5, 0.0])))
    derivative = jax.vmap(jax.grad(lambda u: kernel.profile(u)[0]))(squared)
    assert np.allclose(slope, derivative)


def test_force_of_one_source_by_hand():
    # k s + grad_y k = exp(-1/2) (s + (x - y) / h^2), with h = 2.
    force = RBF(2.0).stein_force(X[None], Y[None], jnp.array([[3.0, 1.0]]))
    assert np.allclose(force, np.exp(-0.5) * np.array([[3.0 - 2 / 4, 1.0]]))


@pytest.mark.parametrize("kernel", [RBF(0.5), IMQ(0.5)])
def test_few_points_have_the_forces_that_products_give(kernel, key):
    # As many targets as sources go by differences, half of the targets do not.
    points = jr.normal(key, (40, 2))
    force = eqx.filter_jit(kernel.stein_force)
    found = force(points, points, -points)
    half = force(points[:20], points, -points)
    assert np.allclose(found[:20], half, rtol=1e-4, atol=1e-6)
    assert not np.allclose(found[20:], half, rtol=1e-2)


def test_equivariant_kernel_of_quarter_turns_by_hand():
    x = jnp.array([1.0, 0.0])
    near, side, far = (np.exp(-d / 2) for d in (0.0, 2.0, 4.0))  # squared distances
    matrix = Equivariant(RBF(1.0), Cyclic(4)).matrix(x, x)
    # The quarter turns forth and back cancel; identity and half turn do not.
    assert np.allclose(matrix, (near - far) / 4 * np.eye(2))
    value = Invariant(RBF(1.0), Cyclic(4))(x, x)
    assert np.isclose(value, (near + 2 * side + far) / 4)


def test_pullback_along_the_radius_by_hand():
    x, y = jnp.array([3.0, 4.0]), jnp.array([0.0, 2.0])
    matrix = Pullback(RBF(2.0), Radius(1e-6)).matrix(x, y)
    expected = np.exp(-(3.0**2) / 8) * np.outer([0.6, 0.8], [0.0, 1.0])
    assert np.allclose(matrix, expected, atol=1e-6)


@pytest.mark.slow
def test_pullback_force_carries_the_volume_element():
    # One particle, flat density: psi = (d - 1) / r along the radius.
    for dim in (2, 3):
        x = jnp.zeros((1, dim)).at[0, 0].set(2.0)
        force = Pullback(RBF(1.0), Radius(1e-6)).stein_force(x, x, 0 * x)
        assert np.allclose(force[0, 0], (dim - 1) / 2.0, atol=1e-6)
        closed = Equivariant(RBF(1.0), SpecialOrthogonal(dim)).stein_force(x, x, 0 * x)
        assert closed[0, 0] > 0


def test_gradient_kernel_along_the_radius_by_hand():
    x, y = jnp.array([3.0, 4.0]), jnp.array([0.0, 2.0])
    # The mixed derivative of k(u) in its two arguments is -k''(u), at u = 3, h = 2.
    v = (1 + 9 / 8) ** -0.5
    for base, far, near in (
        (RBF(2.0), np.exp(-9 / 8) * (1 / 4 - 9 / 16), 1 / 4),
        (IMQ(2.0), v**3 / 8 - 9 * 3 / 64 * v**5, 1 / 8),
    ):
        kernel = Gradient(base, Radius(1e-6))
        matrix_of = eqx.filter_jit(kernel.matrix)
        matrix = matrix_of(x, y)
        assert np.allclose(matrix, far * np.outer([0.6, 0.8], [0, 1]), atol=1e-6)
        matrix = matrix_of(x, x)
        assert np.allclose(matrix, near * np.outer([0.6, 0.8], [0.6, 0.8]), atol=1e-6)


@pytest.mark.parametrize(
    ("make", "is_gradient"),
    [
        (lambda f: Gradient(RBF(1.0), f), True),
        (lambda f: Gradient(IMQ(1.0), f), True),
        (lambda f: Moments(f), True),
        (lambda f: Pullback(RBF(1.0), f), False),
    ],
)
def test_force_of_gradient_kernels_has_no_curl(make, is_gradient, key):
    kernel = make(SortedDistances("ABC"))
    source_key, target_key = jr.split(key)
    sources = jr.normal(source_key, (5, 3, 2))
    force = lambda x: kernel.stein_force(
        x.reshape(1, 3, 2), sources, -(sources**3)
    ).ravel()
    slopes = jax.jit(jax.jacfwd(force))(jr.normal(target_key, (6,)))
    curl = np.max(np.abs(slopes - slopes.T)) / np.max(np.abs(slopes))
    assert (curl < 1e-10) == is_gradient
    assert is_gradient or curl > 1e-2


def test_moments_along_the_radius_by_hand():
    x = jnp.array([[2.0, 0.0], [0.0, 4.0]])
    scores = jnp.array([[-3.0, 7.0], [1.0, 2.0]])
    # The means of s . x / r + (d - 1) / r, over the metric 1 and its ridge.
    weight = np.mean([-3 + 1 / 2, 2 + 1 / 4]) / 1.25
    kernel = Moments(Radius(1e-6), ridge=0.25)
    targets = jnp.array([[0.6, 0.8], [0.0, -5.0]])
    force = eqx.filter_jit(kernel.stein_force)(targets, x, scores)
    assert np.allclose(force, weight * np.array([[0.6, 0.8], [0, -1]]), atol=1e-6)
    matrix = eqx.filter_jit(kernel.at(x).matrix)(targets[0], x[1])
    assert np.allclose(matrix, np.outer([0.6, 0.8], [0, 1]) / 1.25, atol=1e-6)


@pytest.mark.slow
def test_moments_take_the_metric_of_the_sources_or_the_one_given(key):
    x, y = jr.normal(key, (2, 6, 3, 2))
    free = Moments(SortedDistances("ABC"))
    assert free.metric is None
    assert free.at(y).metric.shape == (3, 3)
    force = free.stein_force(x, y, -y)
    assert np.allclose(force, free.at(y).stein_force(x, y, -y), atol=1e-12)
    assert not np.allclose(force, free.at(x).stein_force(x, y, -y), atol=1e-3)


# ------------------------------------------------------------ the median rule


measured = eqx.filter_jit(measured_bandwidth)


def line(*positions):
    return jnp.array(positions)[:, None]


def test_median_of_three_points_by_hand():
    # Distances 3, 4 and 7.
    bandwidth = measured(RBF(Median()), line(0.0, 3.0, 7.0))
    assert np.isclose(bandwidth, 4 / np.sqrt(2 * np.log(3)))
    bandwidth = measured(RBF(Median(factor=0.5)), line(0.0, 3.0, 7.0))
    assert np.isclose(bandwidth, 2 / np.sqrt(2 * np.log(3)))


@pytest.mark.parametrize("points", [line(5.0), line(5.0, 5.0), line(1.0, 1.0, 1.0)])
def test_median_of_coinciding_points_is_one(points):
    assert measured(RBF(), points) == 1


def test_median_looks_at_so_many_particles():
    points = line(0.0, 100.0, 3.0, 100.0, 7.0, 100.0)
    bandwidth = measured(RBF(Median(max_particles=3)), points)
    assert np.isclose(bandwidth, 4 / np.sqrt(2 * np.log(3)))


def test_median_is_measured_between_orbits():
    # On the axes at radii 1, 2 and 4: orbits of quarter turns are 1, 2 and 3 apart.
    points = jnp.array([[1.0, 0.0], [0.0, 2.0], [-4.0, 0.0]])
    expected = 2 / np.sqrt(2 * np.log(3))
    for kernel in (
        Equivariant(RBF(), Cyclic(4)),
        Invariant(RBF(), Cyclic(4)),
        Equivariant(RBF(), SpecialOrthogonal(2)),
        Pullback(RBF(), Radius(1e-6)),
    ):
        assert np.isclose(measured(kernel, points), expected, rtol=1e-6)


def test_no_gradient_flows_through_the_median():
    points = line(0.0, 3.0, 7.0)
    assert np.array_equal(jax.grad(lambda x: measured(RBF(), x))(points), 0 * points)


def test_median_far_from_the_origin_keeps_its_digits():
    points = 1_000 + line(0.0, 0.3, 0.7).astype(jnp.float32)
    bandwidth = measured(RBF(), points)
    assert np.isclose(bandwidth, 0.4 / np.sqrt(2 * np.log(3)), rtol=1e-2)


class Laplace(AbstractScalarKernel):
    """A user's own kernel, with parameters and no bandwidth."""

    rate: float = 0.7

    def __call__(self, x, y):
        return jnp.exp(-self.rate * jnp.sqrt(1 + jnp.sum((x - y) ** 2)))


def test_a_kernel_without_a_bandwidth_runs(key):
    kernel, x = Laplace(), jr.normal(key, (5, 2))
    assert kernel.bandwidth == 1.0
    assert kernel.with_bandwidth(0.3) is kernel
    sampler, bowl = SVGD(kernel, optax.sgd(0.1)), lambda x: -jnp.sum(x**2)
    samples = run(key, sampler, bowl, x, num_steps=1)
    values = jax.jit(jax.vmap(jax.vmap(kernel, (None, 0)), (0, None)))(x, x)
    slopes = jax.jit(jax.vmap(jax.vmap(jax.grad(kernel, 1), (None, 0)), (0, None)))(
        x, x
    )
    force = (values @ (-2 * x) + jnp.sum(slopes, axis=1)) / 5
    assert np.allclose(samples.particles, x + 0.1 * force)
    assert samples.history["bandwidth"] == 1.0
