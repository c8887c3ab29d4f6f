import math

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import equistein as es
from equistein.groups import Cyclic, PointCloud, SpecialOrthogonal

SGD = optax.sgd(0.1)


def bowl(x):
    return -jnp.sum(x**2)


def ramp(x):
    return x[0]


def test_the_message_names_the_point_the_element_and_the_size():
    with pytest.raises(es.InvarianceError) as caught:
        es.check_invariance(ramp, Cyclic(2), jnp.array([[0.0, 1.0], [3.0, 0.5]]))
    message = str(caught.value)
    assert "Cyclic" in message
    assert "[3.  0.5]" in message
    assert "[[-1. -0.]\n [ 0. -1.]]" in message
    assert "it is 3, and after" in message
    assert "it is -3, a violation of 6 " in message
    assert "check=False" not in message  # which is an argument of `es.run` alone
    with pytest.raises(es.InvarianceError) as caught:
        es.run(
            0, es.SVGD(es.kernels.Equivariant(es.kernels.RBF(1.0), Cyclic(2)), SGD),
            ramp, jnp.array([[3.0, 0.5]]), num_steps=1,
        )  # fmt: skip
    assert "check=False" in caught.value.__notes__[0]


def rotated(angle, x):
    cos, sin = jnp.cos(angle).astype(x.dtype), jnp.sin(angle).astype(x.dtype)
    return jnp.array([cos * x[0] - sin * x[1], sin * x[0] + cos * x[1]])


class Rotations(es.groups.AbstractFiniteGroup):
    """Rotations of the plane by a sixth of a turn, and what goes wrong with them."""

    angles: tuple[float, ...] = tuple(k * math.pi / 3 for k in range(6))
    center: float = 0.0
    scale: float = 1.0
    bend: float = 0.0
    sign: int = -1
    drawn: float = 0.0
    missing: int = 0

    @property
    def order(self):
        return len(self.angles) + self.missing

    def elements(self):
        return jnp.array(self.angles)

    def act(self, element, point):
        center = jnp.array([self.center, 0.0], point.dtype)
        bend = self.bend * point[0] ** 2 * jnp.array([0.0, 1.0], point.dtype)
        moved = center + self.scale * rotated(element, point - center)
        return jnp.where(element == 0, point, moved + bend)

    def compose(self, left, right):
        return left + right

    def inverse(self, element):
        return self.sign * element

    def sample(self, key, num):
        return jr.choice(key, self.elements(), (num,)) + self.drawn

    def canonicalize(self, point):
        return jnp.array([jnp.linalg.norm(point), 0.0])


class Pushing(Rotations):
    def push(self, element, vector):
        return rotated(element, vector)


class Composed(Rotations):
    def compose(self, left, right):
        return left - right


BROKEN = {
    "closure": Rotations(angles=(0.0, 0.7, 1.4)),
    "linearity": Rotations(center=3.0),
    "linearity, bent": Rotations(bend=0.1),
    "isometry": Rotations(scale=1.5),
    "inverse": Rotations(sign=1),
    "composition": Composed(),
    "sampling": Rotations(drawn=0.1),
    "order": Rotations(missing=1),
    "order, the identity last": Rotations((math.pi, 0.0)),
    "order, one twice": Rotations((*(k * math.pi / 3 for k in range(6)), math.pi)),
    "closure of a factor": es.groups.Product(Cyclic(2), Rotations((0.0, 0.7))),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("closure", jnp.float32), *((name, jnp.float64) for name in BROKEN)],
)
def test_a_custom_group_that_is_none_is_refused_with_the_axiom(name, dtype, key):
    group, x = BROKEN[name], jr.normal(key, (10, 2), dtype)
    axiom = name.partition(",")[0].partition(" of")[0]
    with pytest.raises(ValueError, match=f"as a group .* axiom of {axiom}") as caught:
        es.check_invariance(bowl, group, x)
    assert not isinstance(caught.value, es.InvarianceError)
    if name == "closure":
        kernel = es.kernels.Equivariant(es.kernels.RBF(1.0), group)
        with pytest.raises(ValueError, match=f"axiom of {axiom}"):
            es.run(key, es.SVGD(kernel, SGD), bowl, x, num_steps=1)


def test_a_custom_group_is_accepted_if_it_is_one(key):
    x = jr.normal(key, (10, 2))
    off_center = lambda x: bowl(x - jnp.array([3.0, 0.0]))
    es.check_invariance(off_center, Pushing(center=3.0), x)
    far = np.asarray(1e4 * x, np.float32)
    es.check_invariance(bowl, es.groups.Product(Cyclic(2), Rotations()), far)


def test_fit_checks_the_axioms_of_a_custom_group(key):
    group, x = BROKEN["closure"], jr.normal(key, (10, 2))
    energy = es.energies.KnownEnergy(bowl, group)
    with pytest.raises(ValueError, match="axiom of closure"):
        es.fit(
            key, energy, x, es.objectives.ScoreMatching(), num_epochs=1, batch_size=5
        )


class Leaning(es.features.Radius):
    def __call__(self, point):
        return super().__call__(point) + 0.1 * point[0]


class Averaged(es.kernels.AbstractScalarKernel):
    """Invariant in each argument, as the paper's kernel, and so not equivariant."""

    group: Cyclic

    def __call__(self, x, y):
        return jnp.mean(jnp.exp(-jnp.sum((self.group.orbit(y) - x[None]) ** 2, axis=1)))


class Lopsided(es.kernels.Equivariant):
    def matrix(self, x, y):
        return super().matrix(x, y) * (1 + 0.1 * x[0])


@pytest.mark.parametrize(
    ("kernel", "named"),
    [
        (es.kernels.Pullback(es.kernels.RBF(), Leaning()), "`features` is not inv"),
        (Averaged(Cyclic(4)), "Averaged.* is not equivariant under"),
        (Lopsided(es.kernels.RBF(), Cyclic(4)), "Lopsided.* is not equivariant under"),
    ],
)
def test_custom_features_and_kernels_must_have_the_symmetry_they_declare(
    kernel, named, key
):
    x = jr.normal(key, (6, 2))
    with pytest.raises(ValueError, match=f"(?s){named}"):
        es.run(key, es.SVGD(kernel, SGD), bowl, x, num_steps=1)


def test_a_symmetry_of_few_elements_is_tried_in_full():
    # Broken by one of 32 turns alone.
    turns = Cyclic(32)
    point = jnp.array([1.0, 0.0])
    special = turns.orbit(point)[7]
    density = lambda x: bowl(x) + jnp.exp(-1e4 * jnp.sum((x - special) ** 2))
    with pytest.raises(es.InvarianceError):
        es.check_invariance(density, turns, point[None])


def test_tolerance_is_relative_and_may_be_given(key):
    x = jr.normal(key, (10, 2))
    nearly = lambda x: 1e6 * bowl(x) + 1e-3 * ramp(x)
    es.check_invariance(nearly, Cyclic(4), x)
    with pytest.raises(es.InvarianceError):
        es.check_invariance(nearly, Cyclic(4), x, tolerance=1e-12)
    es.check_invariance(lambda x: bowl(x) + 0.1 * ramp(x), Cyclic(4), x, tolerance=1.0)


def test_single_precision_is_allowed_its_rounding(key):
    x = 10 * jr.normal(key, (10, 2), jnp.float32)
    es.check_invariance(lambda x: 1e4 * bowl(x), Cyclic(5), x)


def test_a_density_that_is_finite_nowhere_is_not_invariant():
    with pytest.raises(ValueError, match="finite at none"):
        es.check_invariance(lambda x: jnp.nan * x[0], Cyclic(4), jnp.ones((4, 2)))


def test_an_action_must_keep_the_shape(key):
    class Shorter(Rotations):
        def act(self, element, point):
            return rotated(element, point)[:1]

    with pytest.raises(ValueError, match="moves \\(10, 2\\) points to \\(10, 1\\)"):
        es.check_invariance(bowl, Shorter(), jr.normal(key, (10, 2)))


@pytest.mark.parametrize("broken", [0.0, 1.0])
def test_a_constant_does_not_hide_an_asymmetry(broken, key, single_precision):
    density = lambda x: bowl(x) + broken * ramp(x) + 1e6
    points = jr.normal(key, (20, 2), jnp.float32)
    if not broken:
        es.check_invariance(density, Cyclic(5), points)
        return
    with pytest.raises(es.InvarianceError):
        es.check_invariance(density, Cyclic(5), points)


@pytest.mark.parametrize("broken", [0.0, 1e-4])
def test_a_little_asymmetry_is_seen_in_single_precision(broken, key, single_precision):
    # The second term is symmetric, but for rounding: that alone is more than 1e-5.
    bumps = lambda x: jnp.sin(20 * jnp.sum(x**2))
    density = lambda x: bumps(x) + broken * x[0]
    points = 3 * jr.normal(key, (64, 2), jnp.float32)
    if not broken:
        es.check_invariance(density, SpecialOrthogonal(2), points)
        return
    with pytest.raises(es.InvarianceError, match="allowed: 1e-05"):
        es.check_invariance(density, SpecialOrthogonal(2), points)


def test_a_density_of_single_precision_alone_is_allowed_its_rounding(
    key, single_precision
):
    density = lambda x: 1e-3 * jnp.sin(1e4 * jnp.float32(jnp.sum(x**2)))
    points = 3 * jr.normal(key, (64, 2), jnp.float32)
    es.check_invariance(density, SpecialOrthogonal(2), points)


def test_points_without_density_are_left_out():
    inside = lambda x: jnp.where(jnp.sum(x**2) < 1, bowl(x), -jnp.inf)
    es.check_invariance(inside, Cyclic(4), jnp.array([[0.1, 0.2], [5.0, 0.0]]))


def test_a_density_that_stops_being_finite_is_not_invariant():
    half = lambda x: jnp.where(x[0] > 0, bowl(x), jnp.nan)
    with pytest.raises(es.InvarianceError, match="nan"):
        es.check_invariance(half, Cyclic(2), jnp.array([[1.0, 0.2]]))
    half = lambda x: jnp.where(x[0] > 0, bowl(x), -jnp.inf)
    with pytest.raises(es.InvarianceError, match="-inf"):
        es.check_invariance(half, Cyclic(2), jnp.array([[1.0, 0.2]]))


def test_points_of_a_cloud_are_centred_before_they_are_compared(key):
    # Not invariant under shifts, but so on the subspace where particles live.
    x = 5 + jr.normal(key, (4, 3, 2))
    es.check_invariance(bowl, PointCloud((0, 0, 0), 2), x)


def test_run_checks_the_symmetry_that_the_kernel_relies_on(key):
    import optax

    x = jr.normal(key, (6, 2))
    kernel = es.kernels.Equivariant(es.kernels.RBF(0.5), Cyclic(4))
    sampler = es.SVGD(kernel, optax.sgd(0.1))
    tilted = lambda x: bowl(x) + ramp(x)
    with pytest.raises(es.InvarianceError):
        es.run(key, sampler, tilted, x, num_steps=3)
    samples = es.run(key, sampler, tilted, x, num_steps=3, check=False)
    assert np.all(np.isfinite(samples.particles))
