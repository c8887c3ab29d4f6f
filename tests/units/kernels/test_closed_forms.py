import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.special

from equistein.groups import Orthogonal, PointCloud, SpecialOrthogonal
from equistein.kernels import Equivariant, RBF
from equistein.kernels.averages._clouds import proper_svd, rotation_moments
from equistein.targets import DoubleWell


def turns_of_the_plane():
    """Return rotations and reflections of the plane, and equal weights."""
    angles = 2 * np.pi * np.arange(400) / 400
    cos, sin = np.cos(angles), np.sin(angles)
    rotations = np.array([[cos, -sin], [sin, cos]]).transpose(2, 0, 1)
    return rotations, np.full(400, 1 / 400)


def turns_of_space():
    """Return rotations by Euler angles, z-y-z, and their quadrature weights."""
    angles = 2 * np.pi * np.arange(24) / 24
    heights, weights = np.polynomial.legendre.leggauss(24)
    about_z = np.zeros((24, 3, 3))
    about_z[:, 0, 0] = about_z[:, 1, 1] = np.cos(angles)
    about_z[:, 1, 0], about_z[:, 0, 1] = np.sin(angles), -np.sin(angles)
    about_z[:, 2, 2] = 1
    tilts = np.zeros((24, 3, 3))
    tilts[:, 0, 0] = tilts[:, 2, 2] = heights
    tilts[:, 0, 2] = np.sqrt(1 - heights**2)
    tilts[:, 2, 0] = -tilts[:, 0, 2]
    tilts[:, 1, 1] = 1
    rotations = np.einsum("aij,bjk,ckl->abcil", about_z, tilts, about_z)
    share = np.broadcast_to(weights[None, :, None] / (2 * 24 * 24), (24, 24, 24))
    return rotations.reshape(-1, 3, 3), share.ravel()


QUADRATURES = {2: turns_of_the_plane, 3: turns_of_space}


def turns(dim, reflections):
    """Return the elements of O(d) or SO(d) and their quadrature weights."""
    matrices, weights = QUADRATURES[dim]()
    if not reflections:
        return matrices, weights
    mirror = np.diag([-1.0] + [1.0] * (dim - 1))
    matrices = np.concatenate([matrices, matrices @ mirror])
    return matrices, np.concatenate([weights, weights]) / 2


# ------------------------------------------------------------ one vector


@pytest.mark.parametrize("make", [SpecialOrthogonal, Orthogonal])
@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("bandwidth", [0.8, 3.0])  # small and large arguments
def test_closed_form_is_the_haar_integral(make, dim, bandwidth, key):
    kernel = Equivariant(RBF(bandwidth), make(dim))
    matrices, weights = turns(dim, make is Orthogonal)
    matrix = eqx.filter_jit(kernel.matrix)
    for x, y in np.asarray(jr.normal(key, (4, 2, dim))):
        squared = np.sum((x - matrices @ y) ** 2, axis=1)
        values = np.exp(-squared / (2 * bandwidth**2))
        integral = np.einsum("g,gij->ij", weights * values, matrices)
        assert np.allclose(matrix(x, y), integral, atol=1e-6)


@pytest.mark.parametrize("make", [SpecialOrthogonal, Orthogonal])
@pytest.mark.parametrize("dim", [2, 3])
def test_closed_form_survives_narrow_bandwidths_and_far_points(make, dim):
    kernel = Equivariant(RBF(1e-3), make(dim))
    x = jnp.zeros((2, dim)).at[:, 0].set(jnp.array([50.0, 50.0]))
    force = stein_force(kernel, x, x, jnp.ones_like(x))
    assert np.all(np.isfinite(force))
    assert force[0, 0] > 0  # attraction along the score


# ------------------------------------------------------------ point clouds


@eqx.filter_jit
def stein_force(kernel, targets, sources, scores):
    return kernel.stein_force(targets, sources, scores)


def force_by_quadrature(group, bandwidth, targets, sources, scores):
    """Return the Stein force against the orbits of the sources, element by element."""
    targets, sources, scores = (np.asarray(z) for z in (targets, sources, scores))
    matrices, weights = turns(group.dim, group.reflections)
    orders = group.permutations()
    force = np.zeros_like(targets)
    for source, score in zip(sources, scores, strict=True):
        copies = np.einsum("gab,pib->gpia", matrices, source[orders])
        pulls = np.einsum("gab,pib->gpia", matrices, score[orders])
        for target, total in zip(targets, force, strict=True):
            gaps = target - copies
            values = np.exp(-np.sum(gaps**2, axis=(2, 3)) / (2 * bandwidth**2))
            values *= weights[:, None] / len(orders)
            total += np.einsum("gp,gpia->ia", values, pulls + gaps / bandwidth**2)
    return force / len(sources)


def neighbors(key, group, num, shape, spread):
    """Return centered clouds and as many that stand near the orbits of the first."""
    x_key, noise_key, element_key = jr.split(key, 3)
    x = jax.jit(jax.vmap(group.project))(spread * jr.normal(x_key, (num, *shape)))
    moved = jax.jit(jax.vmap(group.act))(group.sample(element_key, num), x)
    noise = 0.1 * jr.normal(noise_key, x.shape)
    return x, jax.jit(jax.vmap(group.project))(moved + noise)


@pytest.mark.parametrize("reflections", [True, False])
@pytest.mark.parametrize("bandwidth", [0.4, 5.0])
def test_force_on_four_like_particles_is_the_sum_over_all_motions(
    bandwidth, reflections, key
):
    group = PointCloud((0,) * 4, 2, reflections=reflections)
    x, y = neighbors(key, group, 3, (4, 2), spread=2.0)
    scores = jax.jit(jax.vmap(jax.grad(DoubleWell().log_density)))(y)
    kernel = Equivariant(RBF(bandwidth), group)
    force = stein_force(kernel, x, y, scores)
    expected = force_by_quadrature(group, bandwidth, x, y, scores)
    assert np.max(np.abs(expected)) > 1e-2
    assert np.allclose(force, expected, rtol=0, atol=1e-6 * np.max(np.abs(expected)))


@pytest.mark.parametrize("reflections", [True, False])
@pytest.mark.parametrize("bandwidth", [1.0, 4.0])
def test_force_on_clouds_in_space_is_the_sum_over_all_motions(
    bandwidth, reflections, key
):
    group = PointCloud((0, 0, 1, 1), 3, reflections=reflections)
    x, y = neighbors(key, group, 2, (4, 3), spread=0.6)
    kernel = Equivariant(RBF(bandwidth), group)
    force = stein_force(kernel, x, y, -y)
    expected = force_by_quadrature(group, bandwidth, x, y, -y)
    assert np.max(np.abs(expected)) > 1e-2
    assert np.allclose(force, expected, rtol=0, atol=1e-6 * np.max(np.abs(expected)))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("dim", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("reflections", [True, False])
def test_cloud_forms_survive_narrow_bandwidths_and_far_points(
    dim, reflections, dtype, key
):
    group = PointCloud((0, 0, 1), dim, reflections=reflections)
    kernel = Equivariant(RBF(1e-3), group)
    near = jr.normal(key, (8, 3, dim), dtype)
    x = jnp.concatenate([near, near[:1], 50 * near, 1e4 * near])
    x = jax.vmap(group.project)(x)

    @jax.jit
    def force_and_matrices(x):
        force = kernel.stein_force(x, x, jnp.ones_like(x))
        return force, jax.vmap(kernel.matrix)(x, x[::-1])

    for values in force_and_matrices(x):
        assert values.dtype == dtype
        assert np.all(np.isfinite(values))


@pytest.mark.parametrize("reflections", [True, False])
@pytest.mark.parametrize(
    ("dim", "share"),
    [
        (2, 0.1),
        (2, 0.01),
        pytest.param(3, 0.1, marks=pytest.mark.slow),
        pytest.param(3, 0.003, marks=pytest.mark.slow),
        pytest.param(3, 0.001, marks=pytest.mark.slow),
    ],
)
def test_narrow_kernels_of_clouds_hold_in_single_precision(
    dim, share, reflections, key
):
    group = PointCloud((0, 0, 1, 1), dim, reflections=reflections)
    keys = jr.split(key, 3)
    x = jax.jit(jax.vmap(group.project))(jr.normal(keys[0], (6, 4, dim)))
    bandwidth = share * jnp.sqrt(jnp.mean(jnp.sum(x**2, axis=(1, 2))))
    y = jax.jit(jax.vmap(group.act))(group.sample(keys[1], 6), x)
    y = y + 0.5 * bandwidth * jr.normal(keys[2], x.shape)
    forces = []
    for dtype in (jnp.float32, jnp.float64):
        kernel = Equivariant(RBF(bandwidth.astype(dtype)), group)
        points = (x.astype(dtype), y.astype(dtype), -y.astype(dtype))
        forces.append(np.asarray(stein_force(kernel, *points)))
    error = np.max(np.abs(forces[0] - forces[1])) / np.max(np.abs(forces[1]))
    assert error < 2e-3


# ------------------------------------------------------------ rotations of space


@jax.jit
def moments(matrix, shift):
    svd = proper_svd(matrix)
    return rotation_moments(matrix, shift, svd, jnp.sum(svd.kappa) - shift)


@jax.jit
def slopes_of_moments(matrix, shift, change):
    """Return the moments and their derivative along a change of the matrix."""
    return jax.jvp(lambda matrix: moments(matrix, shift), (matrix,), (change,))


def moments_by_quadrature(matrix, shift):
    """Return the normalizer and the moment by Euler angles, for small matrices."""
    rotations, weights = turns_of_space()
    values = weights * np.exp(np.sum(rotations * matrix, axis=(1, 2)) - shift)
    return np.sum(values), np.einsum("g,gij->ij", values, rotations)


_MATRICES = {
    "identity": np.eye(3),
    "zero": np.zeros((3, 3)),
    "rank one": np.outer([1.0, -0.5, 0.3], [0.2, 1.0, -1.0]),
    "rank two": np.diag([1.5, 0.7, 0.0]),
    "two equal values": np.diag([2.0, 2.0, 0.5]),
    "mirror": np.diag([1.0, 1.0, -1.0]),
    "point reflection": -1.5 * np.eye(3),
    "turned": np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
    "any": np.array([[1.2, -0.4, 0.3], [0.1, -0.8, 0.9], [-1.0, 0.5, 0.2]]),
}
every_matrix = pytest.mark.parametrize("matrix", _MATRICES.values(), ids=_MATRICES)


def total(matrix):
    """Return the sum of the singular values, the least shift there should be."""
    return np.sum(np.linalg.svd(matrix, compute_uv=False))


@every_matrix
def test_rotation_moments_are_the_integrals(matrix):
    shift = total(matrix) + 0.7
    found = moments(matrix, shift)
    for value, exact in zip(found, moments_by_quadrature(matrix, shift), strict=True):
        assert np.allclose(value, exact, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 60.0])
@every_matrix
def test_derivative_of_rotation_moments_is_the_slope_of_differences(matrix, scale, key):
    matrix = scale * matrix
    shift = total(matrix) + 0.7
    for change in np.asarray(jr.normal(key, (3, 3, 3))):
        move = lambda t, change=change: moments(matrix + t * change, shift)
        found = slopes_of_moments(matrix, shift, change)[1]
        for after, before, slope in zip(move(1e-4), move(-1e-4), found, strict=True):
            assert np.allclose((after - before) / 2e-4, slope, rtol=1e-6, atol=1e-8)


def moments_by_panels(kappa):
    r"""Return the integrals over $\rho$ by quadrature on panels refined at both ends.

    Scaled by the exponential of minus the sum of the singular values.
    """
    edges = np.concatenate([[0], np.geomspace(1e-10, 0.5, 32)])
    edges = np.unique(np.concatenate([edges, 1 - edges]))
    nodes, weights = np.polynomial.legendre.leggauss(60)
    half = np.diff(edges)[:, None] / 2
    rho = (edges[:-1, None] + half * (1 + nodes)).ravel()
    weights = (half * weights).ravel()
    i0e, i1e = scipy.special.i0e, scipy.special.i1e
    a, b = rho * (kappa[0] + kappa[1]), (1 - rho) * (kappa[0] - kappa[1])
    weights = weights * np.exp(-2 * (1 - rho) * (kappa[1] + kappa[2]))
    along = np.sum(weights * rho * i1e(a) * i0e(b))
    across = np.sum(weights * (1 - rho) * i0e(a) * i1e(b))
    last = np.sum(weights * (2 * rho - 1) * i0e(a) * i0e(b))
    value = np.sum(weights * i0e(a) * i0e(b))
    return value, np.diag([along + across, along - across, last])


_SHAPES = [(1, 1, 1), (1, 1, 0), (1, 0.5, 0.5), (1, 0, 0), (1, 1, -1), (1, 0.7, -0.4)]


@pytest.mark.parametrize("largest", [3.0, 30.0, 100.0, 1e3, 1e5, 1e7])
@pytest.mark.parametrize("shape", _SHAPES)
def test_rotation_moments_hold_for_large_arguments(shape, largest):
    kappa = largest * np.array(shape)
    value, moment = moments(np.diag(kappa), np.sum(kappa))
    exact, matrix = moments_by_panels(kappa)
    tolerance = 1e-6 if largest < 1e5 else 1e-5
    assert abs(value / exact - 1) < tolerance
    assert np.max(np.abs(moment - matrix)) < tolerance * exact


@every_matrix
def test_rotation_moments_are_finite_in_single_precision(matrix):
    for scale in (1.0, 1e3, 1e9):
        large = np.asarray(scale * matrix, np.float32)
        both = slopes_of_moments(large, total(large), np.ones((3, 3), np.float32))
        for leaf in jax.tree.leaves(both):
            assert leaf.dtype == jnp.float32
            assert np.all(np.isfinite(leaf))
