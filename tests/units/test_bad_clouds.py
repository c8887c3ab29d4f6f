import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import equistein as es
from equistein.features import PairHistogram, SortedDistances, SortedRowSums
from equistein.groups import PointCloud
from equistein.kernels import (
    Equivariant,
    Gradient,
    IMQ,
    Invariant,
    Moments,
    Pullback,
    RBF,
)
from equistein.targets import DoubleWell, LennardJones

_SPECIES = (0, 0, 0, 1)
_HISTOGRAM = PairHistogram(_SPECIES, reach=4.0, num_centers=6)
KERNELS = {  # one of each kind on point clouds, in the plane and in space
    "distances": lambda dim: Pullback(RBF(1.0), SortedDistances(_SPECIES)),
    "row sums": lambda dim: Pullback(IMQ(1.0), SortedRowSums(_SPECIES)),
    "gradient": lambda dim: Gradient(IMQ(1.0), _HISTOGRAM),
    "moments": lambda dim: Moments(_HISTOGRAM),
    "all motions": lambda dim: Equivariant(RBF(1.0), PointCloud(_SPECIES, dim)),
    "some motions": lambda dim: Equivariant(
        IMQ(1.0), PointCloud(_SPECIES, dim), num_samples=2, key=jr.key(0)
    ),
}


@eqx.filter_jit
def scores_of(log_density, points):
    return jax.vmap(jax.grad(log_density))(points)


@pytest.mark.parametrize(("dim", "dtype"), [(2, np.float64), (3, np.float32)])
@pytest.mark.parametrize("make", KERNELS.values(), ids=KERNELS.keys())
def test_force_is_finite_for_clashes_and_fragments(make, dim, dtype, key):
    kernel = make(dim)
    x = np.array(jr.normal(key, (12, 4, dim)), dtype)
    x[0, 1] = x[0, 0]  # two particles coincide
    x[1] = 0  # all do
    x[2, 3] = 1e6  # one is far away
    x[3] = x[4]  # two clouds coincide
    x[5:, 3] *= 1e6  # rounding may take either sign
    x = jnp.asarray(x)
    scores = scores_of(LennardJones(4, dim).log_density, x)
    assert np.all(np.isfinite(scores))
    force = jax.jit(lambda x, s: kernel.stein_force(x, x, s))(x, scores)
    assert force.dtype == dtype
    assert np.all(np.isfinite(force))
    # The second derivatives of so wide a kernel may underflow in single precision.
    if dtype == np.float64 or not isinstance(kernel, Gradient):
        assert np.max(np.abs(force[4])) > 0


@pytest.mark.parametrize("dim", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_far_fragment_does_not_move_the_others(dim, key):
    # Its cloud is beyond the reach of a Gaussian kernel.
    group = PointCloud(_SPECIES, dim)
    kernel = Equivariant(RBF(1.0), group)
    x = jax.vmap(group.project)(jr.normal(key, (3, 4, dim), jnp.float32))
    far = x.at[2, 3].set(1e6)
    force = jax.jit(lambda *points: kernel.stein_force(*points))
    beside, alone = force(x[:2], far, -far), force(x[:2], x[:2], -x[:2])
    largest = np.max(np.abs(alone))
    assert largest > 1e-3
    assert np.allclose(beside * 3, alone * 2, atol=1e-5 * largest)


@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(Equivariant(RBF(1.0), DoubleWell().group), marks=pytest.mark.slow),
        pytest.param(Gradient(RBF(1.0), DoubleWell().features), marks=pytest.mark.slow),
        Moments(PairHistogram((0,) * 4)),
    ],
    ids=["all motions", "gradient", "moments"],
)
def test_runs_from_clashes_stay_finite(kernel, key):
    target = DoubleWell()
    start = target.start(key, 6).astype(jnp.float32)
    start = start.at[0].set(0).at[1, 2].set(start[1, 1])
    sampler = es.SVGD(kernel, optax.sgd(0.01), langevin=0.01, score_clip=20.0)
    samples = es.run(key, sampler, target.log_density, start, num_steps=5)
    assert np.all(np.isfinite(samples.particles))


def test_a_cloud_of_too_many_permutations_is_refused_with_the_remedy():
    cloud = PointCloud((0,) * 6, 2)
    for wrap in (Equivariant, Invariant):
        with pytest.raises(ValueError, match="720 permutations") as caught:
            wrap(RBF(), cloud)
        assert "Pullback" in str(caught.value)
    sampled = Equivariant(RBF(), cloud, num_samples=2, key=jr.key(0))
    assert sampled.project(jnp.ones((6, 2))).shape == (6, 2)
    assert Equivariant(RBF(), PointCloud((0,) * 5, 2)).bandwidth is not None
    for dim in (1, 4):
        with pytest.raises(ValueError, match="no exact average over PointCloud"):
            Equivariant(RBF(), PointCloud((0, 0), dim))


@pytest.mark.parametrize(
    "make", [pytest.param(DoubleWell, marks=pytest.mark.slow), LennardJones]
)
def test_a_density_of_other_species_is_refused(make, key):
    # Like particles to the kernel, unlike ones to the density.
    target = make(3, 2)
    charges = jnp.array([0.0, 0.0, 1.0])
    tilted = lambda x: target.log_density(x) - jnp.sum(charges[:, None] * x**2)
    kernel = Equivariant(RBF(1.0), PointCloud((0, 0, 0), 2))
    start = target.start(key, 4)
    sampler = es.SVGD(kernel, optax.sgd(0.1))
    with pytest.raises(es.InvarianceError, match="not invariant"):
        es.run(key, sampler, tilted, start, num_steps=1)
    kernel = Equivariant(RBF(1.0), PointCloud((0, 0, 1), 2))
    sampler = es.SVGD(kernel, optax.sgd(0.1), score_clip=10.0)
    samples = es.run(key, sampler, tilted, start, num_steps=1)
    assert np.all(np.isfinite(samples.particles))
