import itertools

import jax
import jax.extend
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.features import Periodic
from equistein.groups import (
    Cyclic,
    Permutations,
    SignedPermutations,
    Signs,
    TorusTranslations,
)
from equistein.kernels import Equivariant, IMQ, PeriodicRBF, RBF
from equistein.kernels.averages._base import AverageOverElements
from equistein.kernels.averages._labels import least_sum, permanent_minors

_PARTS = (((3,), (0,)), ((2,), ()), ((2, 3), (1,)))
_PERIODS = Periodic([2.0, 2.0, 2.0, np.inf, 3.0])
CASES = {
    "rows": (RBF(0.9), Permutations(3), (3, 2)),
    "parts": (RBF(0.9), Permutations(3, _PARTS), (11,)),
    "signs": (RBF(0.9), Signs(3, _PARTS), (11,)),
    "both": (RBF(0.9), SignedPermutations(3, _PARTS), (11,)),
    "that wrap": (
        PeriodicRBF(0.9, periodic=_PERIODS),
        Permutations(3, (((3,), (0,)), ((2,), ()))),
        (5,),
    ),
}
QUICK = (("rows", jnp.float32), ("signs", jnp.float64))


def test_permanents_and_minors_are_sums_over_permutations(key):
    a = np.asarray(jr.normal(key, (4, 4, 2)))
    orders = list(itertools.permutations(range(4)))
    terms = [np.prod([a[i, order[i]] for i in range(4)], axis=0) for order in orders]
    value, minors = permanent_minors(jnp.asarray(a))
    assert np.allclose(value, np.sum(terms, axis=0))
    slopes = jax.jacrev(lambda a: jnp.sum(permanent_minors(a)[0]))(jnp.asarray(a))
    assert np.allclose(minors, slopes)
    costs = [np.sum([a[i, order[i]] for i in range(4)], axis=0) for order in orders]
    assert np.allclose(least_sum(jnp.asarray(a)), np.min(costs, axis=0))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow)
        for case in itertools.product(CASES, (jnp.float32, jnp.float64))
    ],
)
def test_average_over_labels_is_the_sum_over_all_elements(name, dtype, key):
    base, group, shape = CASES[name]
    kernel, every = (
        Equivariant(base, group),
        AverageOverElements(group, group.elements()),
    )
    x, y, s = (jr.normal(k, (7, *shape)) for k in jr.split(key, 3))
    low = [z.astype(dtype) for z in (x, y, s)]
    closed = jax.jit(lambda *z: kernel.stein_force(*z))(*low)
    summed = jax.jit(lambda *z: every.force(base, *z))(x, y, s)
    assert closed.dtype == dtype
    tolerance = 1e-5 if dtype == jnp.float32 else 1e-10
    closed = np.asarray(closed, float)
    assert np.max(np.abs(closed - summed)) < tolerance * np.max(np.abs(summed))
    distances, exact = (
        np.asarray(jax.jit(lambda *z, a=a: a.squared_orbit_distances(base, *z))(*pair))
        for a, pair in ((kernel.average, low[:2]), (every, (x, y)))
    )
    assert np.allclose(distances, exact, atol=1e-4)


@pytest.mark.slow
def test_average_over_shifts_is_the_sum_over_many(key):
    base = PeriodicRBF(0.7, periodic=_PERIODS)
    group = TorusTranslations(_PERIODS.periods)
    kernel = Equivariant(base, group)
    every = AverageOverElements(group, jnp.linspace(0, 2 * np.pi, 200, endpoint=False))
    x, y, s = (jr.normal(k, (5, 5)) for k in jr.split(key, 3))
    summed = every.force(base, x, y, s)
    assert np.allclose(kernel.stein_force(x, y, s), summed, atol=1e-12)
    nearest = every.squared_orbit_distances(base, x, y)
    assert np.allclose(
        kernel.average.squared_orbit_distances(base, x, y), nearest, atol=1e-3
    )


@pytest.mark.parametrize(
    ("base", "group"),
    [(RBF(1.0), Permutations(9)), (IMQ(1.0), Permutations(7)),
     (IMQ(1.0), SignedPermutations(6))],
)  # fmt: skip
def test_too_many_labels_are_refused_with_the_remedy(base, group):
    with pytest.raises(ValueError, match="`num_samples`"):
        Equivariant(base, group)
    sampled = Equivariant(base, group, num_samples=2, key=jr.key(0)).average.stacked
    assert {len(leaf) for leaf in jax.tree.leaves(sampled)} == {4}


def test_shifts_need_a_base_that_wraps():
    with pytest.raises(ValueError, match="PeriodicRBF with the same"):
        Equivariant(RBF(1.0), TorusTranslations([1.0, 2.0]))


def test_a_rotation_must_preserve_the_periodic_distances(key):
    density, points = lambda x: -jnp.sum(x**2), jr.normal(key, (4, 2))
    square, box = (PeriodicRBF(periodic=Periodic([2.0, p])) for p in (2.0, 3.0))
    Equivariant(square, Cyclic(4)).check(density, points)
    with pytest.raises(ValueError, match="not equivariant"):
        Equivariant(box, Cyclic(4)).check(density, points)


def test_particles_on_both_sides_of_a_seam_repel():
    kernel = PeriodicRBF(0.3, periodic=Periodic([2.0]))
    x = jnp.array([[0.05], [1.95]])
    force = kernel.stein_force(x, x, jnp.zeros_like(x))
    assert force[0, 0] > 0.1
    assert force[1, 0] < -0.1
    assert np.allclose(kernel(x[0], x[1]), kernel(x[0] + 4.0, x[1]))
    assert np.allclose(kernel.periodic.wrap(x + jnp.array([[8.0], [-6.0]])), x)
