"""Groups, features and kernels that break a contract, and the tests that see it."""

import jax.numpy as jnp
import test_features as feature_contracts
import test_groups as group_contracts
import test_kernel_symmetry as symmetry_contracts
import test_kernels as kernel_contracts

from equistein.features import Radius
from equistein.groups import Cyclic, Orthogonal
from equistein.kernels import AbstractRadialKernel, Equivariant, RBF

# ------------------------------------------------------------------------- groups


class Stretching(Cyclic):
    def act(self, element, point):
        return 1.01 * super().act(element, point)


class Uninverted(Cyclic):
    def inverse(self, element):
        return element


class Reversed(Cyclic):
    def elements(self):
        return super().elements()[::-1]


class Misaligned(Cyclic):
    """The orbit is not closed under products."""

    def elements(self):
        return super().elements().at[1].multiply(-1.0)


class Unmoved(Cyclic):
    def canonicalize(self, point):
        return point


class Flattened(Cyclic):
    def canonicalize(self, point):
        return 0 * point


class Shrinking(Cyclic):
    def project(self, point):
        return 0.5 * point


def of_group(contract, broken, *more):
    test = getattr(group_contracts, f"test_{contract}")
    return lambda key: test(lambda: broken(4), (2,), *more, key)


GROUPS = {
    "a product of stretching": of_group(
        "product_acts_as_one_after_the_other", Stretching
    ),
    "no inverse": of_group("inverse_undoes_the_action", Uninverted),
    "an action that stretches": of_group(
        "action_is_linear_and_keeps_distances", Stretching
    ),
    "elements in another order": of_group(
        "elements_are_distinct_and_begin_with_the_identity", Reversed
    ),
    "elements that are no group": of_group(
        "products_of_elements_are_elements", Misaligned
    ),
    "a representative that moves": of_group(
        "representative_is_the_same_over_the_orbit", Unmoved, jnp.float64, 1e-12
    ),
    "a representative from elsewhere": of_group(
        "representative_lies_in_the_orbit", Flattened
    ),
    "a projection that shrinks": of_group(
        "projection_is_idempotent_and_commutes_with_the_action", Shrinking
    ),
}  # fmt: skip

# ----------------------------------------------------------------------- features


class Leaning(Radius):
    def __call__(self, point):
        return super().__call__(point) + 1e-3 * point[0]


class Kinked(Radius):
    def __call__(self, point):
        return jnp.sqrt(jnp.sum(point**2))[None]


class Same(Radius):
    def __call__(self, point):
        return 0 * super().__call__(point)


class Twisted(Radius):
    def laplacian(self, point):
        return 1.01 * super().laplacian(point)


def of_features(broken):
    test = "test_features_are_constant_on_the_orbits_and_have_their_derivatives"
    check = getattr(feature_contracts, test)
    return lambda key: check(broken(), (2,), 1, Orthogonal(2), key)


FEATURES = {
    "features that see directions": of_features(Leaning),
    "features with a kink": of_features(Kinked),
    "features that tell nothing": of_features(Same),
    "a Laplacian of something else": of_features(Twisted),
}

# ------------------------------------------------------------------------ kernels


class Steep(AbstractRadialKernel):
    """Its slope is not that of its values."""

    bandwidth: float

    def profile(self, squared):
        value = jnp.exp(-squared / self.bandwidth)
        return value, -1.1 * value / self.bandwidth


class Negative(RBF):
    def matrix(self, x, y):
        return -super().matrix(x, y)


class Lopsided(RBF):
    def matrix(self, x, y):
        return super().matrix(x, 1.01 * y)


class Pointed(AbstractRadialKernel):
    bandwidth: float

    def profile(self, squared):
        root = jnp.sqrt(squared)
        value = jnp.exp(-root / self.bandwidth)
        return value, -value / (2 * self.bandwidth * root)


class Rough(RBF):
    def force(self, targets, prepared):
        force = super().force(targets, prepared)
        if force.dtype == jnp.float32:
            force = force.astype(jnp.bfloat16).astype(jnp.float32)
        return force


def of_kernel(contract, make):
    test = getattr(kernel_contracts, f"test_{contract}")
    return lambda key: test(make, (2,), key)


KERNELS = {
    "a negative kernel": of_kernel(
        "matrix_is_symmetric_and_positive_semidefinite", Negative
    ),
    "a kernel that is not symmetric": of_kernel(
        "matrix_is_symmetric_and_positive_semidefinite", Lopsided
    ),
    "a slope of another kernel": of_kernel("force_is_what_the_definition_says", Steep),
    "a kernel with a kink": of_kernel(
        "force_and_its_gradient_are_finite_where_particles_meet", Pointed
    ),
    "a kernel of few digits": of_kernel("single_precision_is_close_to_double", Rough),
    "a kernel of a smaller group": lambda key: (
        symmetry_contracts.test_matrix_is_equivariant_in_each_argument(
            lambda h: Equivariant(RBF(h), Cyclic(4)), Cyclic(8), (2,), key
        )
    ),
    "the paper's kernel of matrices": lambda key: (
        symmetry_contracts.test_matrix_is_equivariant_in_each_argument(
            RBF, Cyclic(4), (2,), key
        )
    ),
}  # fmt: skip
