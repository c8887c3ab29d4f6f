import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.scipy.special import logsumexp

from equistein.groups import PointCloud, Trivial
from equistein.metrics import annealed_importance_sampling
from equistein.samplers import Normal

SHORT = {"num_particles": 256, "num_steps": 300}


def wide(shape=(2,), scale=3.0, group=Trivial(), dtype=jnp.float32):  # noqa: B008
    return Normal(jnp.zeros(shape, dtype), scale, group)


def normal(x):
    """A normal density of width 0.5 around (1, -1), times a hundred."""
    center = jnp.array([1.0, -1.0], x.dtype)
    return -0.5 * jnp.sum((x - center) ** 2) / 0.5**2 + jnp.log(100.0).astype(x.dtype)


def mixture(x):
    """Three parts of four at (2, 0), one at (-2, 0), each of width 0.5."""
    centers = jnp.array([[2.0, 0.0], [-2.0, 0.0]], x.dtype)
    weights = jnp.log(jnp.array([0.75, 0.25], x.dtype))
    squares = jnp.sum((x[None] - centers) ** 2, axis=1) / 0.5**2
    return logsumexp(weights - 0.5 * squares)


def walled(x):
    """Half a normal density, zero behind a hard wall."""
    return jnp.where(x[0] > 0, -0.5 * jnp.sum(x**2), -jnp.inf)


def undefined(x):
    """Half a normal density, not a number behind the wall."""
    return -0.5 * jnp.sum(x**2) + 0 * jnp.log(x[0])


EXACT = {
    normal: np.log(100 * 2 * np.pi * 0.5**2),
    mixture: np.log(2 * np.pi * 0.5**2),
    walled: np.log(np.pi),
    undefined: np.log(np.pi),
}


@pytest.mark.parametrize(
    "density",
    [
        pytest.param(f, marks=[] if f in (normal, walled) else pytest.mark.slow)
        for f in EXACT
    ],
    ids=lambda f: f.__name__,
)
def test_log_z_is_within_its_error(density, key):
    for one in jr.split(key, 4):
        found = annealed_importance_sampling(one, density, wide(), **SHORT)
        assert found.value.dtype == jnp.float32
        assert abs(float(found.value) - EXACT[density]) < float(found.error)
        assert found.error < 0.5
        assert 50 < found.effective_sample_size <= 256.01
        assert np.isclose(found.value, (found.lower + found.upper) / 2)


def test_one_step_from_a_narrow_base_misses_or_says_so(key):
    # The broken twin: no annealing, from where the density is not.
    found = annealed_importance_sampling(
        key, mixture, wide(scale=0.1), num_particles=256, num_steps=1
    )
    missed = abs(float(found.value) - EXACT[mixture])
    assert missed > 0.5
    assert found.effective_sample_size < 50 or missed > float(found.error)


@pytest.mark.parametrize(
    "density",
    [walled, pytest.param(undefined, marks=pytest.mark.slow)],
    ids=lambda f: f.__name__,
)
def test_behind_a_wall_both_ways_meet(density, key):
    # Without b(p > 0) the way back would be log 2 = 0.69 too high.
    found = annealed_importance_sampling(key, density, wide(), **SHORT)
    assert abs(float(found.lower) - EXACT[density]) < 0.3
    assert abs(float(found.upper) - EXACT[density]) < 0.3


NARROW = wide(scale=0.7)


def beyond(edge, x):
    """Return the density of a base, times exp(2), beyond an edge and zero before."""
    value = NARROW.log_density(x) + 2.0
    return jnp.where(x[0] > edge.astype(x.dtype), value, -jnp.inf)


def test_the_density_itself_as_base_is_exact_and_one_that_is_zero_there_has_no_error(
    key,
):
    found, missed = (
        annealed_importance_sampling(
            key, jax.tree_util.Partial(beyond, jnp.asarray(edge)), NARROW,
            num_particles=16, num_steps=3,
        )
        for edge in (-jnp.inf, 1e3)
    )  # fmt: skip
    assert missed.effective_sample_size == 0
    assert np.isposinf(missed.error)
    assert np.isclose(found.value, 2.0, atol=1e-5)
    assert found.error < 1e-4
    assert np.isclose(found.effective_sample_size, 16, rtol=1e-4)


@pytest.mark.slow
def test_log_z_of_a_cloud_is_that_of_its_subspace(key):
    group = PointCloud((0, 0, 0), 2)

    def density(x):
        return -0.5 * jnp.sum(group.project(x) ** 2) / 0.5**2

    base = wide((3, 2), 1.5, group)
    found = annealed_importance_sampling(key, density, base, **SHORT)
    assert abs(float(found.value) - 2 * np.log(2 * np.pi * 0.5**2)) < float(found.error)
    assert found.error < 0.5


# ------------------------------------------------------------ samples of the density

WIDTHS = (0.5, 0.05)
CENTERS = 2.0 * np.array([[1.0], [-1.0]]) * np.ones((1, 10)) / 10**0.5


def two_widths(x):
    """Two normal densities of equal weight in ten dimensions, log Z = log 2."""
    squares = jnp.sum((x[None] - CENTERS.astype(x.dtype)) ** 2, axis=1)
    widths = jnp.array(WIDTHS, x.dtype)
    heights = 10 * jnp.log(2 * jnp.pi * widths**2) / 2
    return logsumexp(-0.5 * squares / widths**2 - heights)


def samples_of(key, modes, num=300):  # more than there are chains
    keys, modes = jr.split(key, num), jnp.arange(num) % 2 if modes == 2 else 0
    noise = jax.vmap(lambda k: jr.normal(k, (10,), jnp.float32))(keys)
    modes = jnp.broadcast_to(modes, (num,))
    widths = jnp.array(WIDTHS, jnp.float32)[modes][:, None]
    return jnp.asarray(CENTERS, jnp.float32)[modes] + widths * noise


@pytest.mark.slow
@pytest.mark.parametrize(
    ("modes", "encloses"),
    [(2, True), (1, False), (0, False)],  # the twins: samples of one mode, and none
)
def test_samples_in_all_modes_bound_log_z_from_above(modes, encloses, key):
    found = annealed_importance_sampling(
        key, two_widths, wide((10,), 1.0),
        samples=samples_of(jr.key(1), modes) if modes else None, **SHORT,
    )  # fmt: skip
    # No chain finds the narrow mode, and half of Z is in it.
    exact = float(np.log(2))
    assert found.lower < exact - 0.5
    assert found.effective_sample_size > 20
    assert (abs(float(found.value) - exact) < float(found.error)) == encloses
    assert (found.upper > exact - 0.3) == encloses


def test_samples_that_do_not_fit_are_refused(key, unchecked):
    for samples in (jnp.zeros((5, 3)), jnp.zeros((1, 2)), jnp.zeros(2)):
        with pytest.raises(ValueError, match="at least two points of shape .2,."):
            annealed_importance_sampling(
                key, normal, wide(), samples=samples, num_particles=8, num_steps=2
            )


def test_samples_where_the_density_is_zero_are_refused(key):
    samples = jnp.array([[1.0, 0.0], [-1.0, 0.0]], jnp.float32)
    with pytest.raises(ValueError, match="`samples`"):
        annealed_importance_sampling(
            key, walled, wide(), samples=samples, num_particles=8, num_steps=2
        )
