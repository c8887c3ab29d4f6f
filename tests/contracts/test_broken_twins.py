"""Each contract's test fails for something that breaks the contract.

The tests of the other modules are called here with broken groups, features, kernels,
samplers, targets, networks, energies, objectives and metrics.
"""

import types

import jax
import jax.numpy as jnp
import jax.random as jr
import optax
import pytest
import test_compiled_equals_eager as compiled_contracts
import test_energies as energy_contracts
import test_features as feature_contracts
import test_groups as group_contracts
import test_kernel_symmetry as symmetry_contracts
import test_kernels as kernel_contracts
import test_metrics as metric_contracts
import test_networks as network_contracts
import test_samplers as sampler_contracts
import test_targets as target_contracts
from training_registry import plain

from equistein.energies import KnownEnergy
from equistein.features import Radius
from equistein.groups import (
    AbstractGroup,
    Cyclic,
    Dihedral,
    InvarianceError,
    Orthogonal,
)
from equistein.kernels import AbstractRadialKernel, Equivariant, RBF
from equistein.networks import MLP
from equistein.samplers import Langevin, SVGD
from equistein.targets import RotatedGaussians
from equistein.training import ScoreMatching


def is_traced(x):
    """Return 1 if the compiler looks, and 0 if it is a user."""
    return float(isinstance(x, jax.core.Tracer))


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


class Rewritten(Cyclic):
    def act(self, element, point):
        return super().act(element, point) + is_traced(point)


def of_group(contract, broken, *more):
    test = getattr(group_contracts, f"test_{contract}")
    return lambda key: test(lambda: broken(4), (2,), *more, key)


GROUPS = {
    "a product of stretching": of_group(
        "product_acts_as_one_after_the_other", Stretching
    ),
    "no inverse": of_group("inverse_undoes_the_action", Uninverted),
    "an action that stretches": of_group(
        "action_is_linear_and_keeps_distances_and_precision", Stretching,
        jnp.float64, 1e-12,
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
    "a group that is compiled to another": of_group(
        "compiled_equals_eager", Rewritten
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


class OtherwiseCompiled(Radius):
    def __call__(self, point):
        return super().__call__(point) + is_traced(point)


def of_features(contract, broken, *more):
    test = getattr(feature_contracts, f"test_{contract}")
    return lambda key: test(broken(), (2,), 1, Orthogonal(2), *more, key)


FEATURES = {
    "features that see directions": of_features(
        "features_are_constant_on_the_orbits", Leaning
    ),
    "features with a kink": of_features(
        "features_are_smooth_where_particles_meet", Kinked, jnp.float64
    ),
    "features that tell nothing": of_features(
        "features_tell_most_points_apart", Same
    ),
    "a Laplacian of something else": of_features(
        "laplacian_is_the_trace_of_the_hessian", Twisted
    ),
    "features that are compiled to others": of_features(
        "compiled_features_equal_eager", OtherwiseCompiled
    ),
}  # fmt: skip

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
    def stein_force(self, targets, sources, scores):
        force = super().stein_force(targets, sources, scores)
        if force.dtype == jnp.float32:
            force = force.astype(jnp.bfloat16).astype(jnp.float32)
        return force


class Recompiled(RBF):
    def stein_force(self, targets, sources, scores):
        return super().stein_force(targets, sources, scores) + is_traced(targets)


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
    "a kernel that is compiled to another": of_kernel(
        "compiled_force_equals_eager", Recompiled
    ),
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

# ----------------------------------------------------------------------- samplers


class Narrowed(Langevin):
    def step(self, key, state, log_density):
        state, info = super().step(key, state, log_density)
        narrow = lambda x: x.astype(jnp.float32) if x.dtype == jnp.float64 else x
        return jax.tree.map(narrow, state), info


class Begun(Langevin):
    """It counts its steps anew when it goes on."""

    def renewed(self, state, log_density):
        return self.init(state.particles)


class Deaf(Langevin):
    def step(self, key, state, log_density):
        return super().step(jr.key(0), state, log_density)


class Ordered(SVGD):
    def step(self, key, state, log_density):
        state, info = super().step(key, state, log_density)
        shift = jnp.linspace(0, 1e-3, len(state.particles))[:, None]
        particles = state.particles + shift.astype(state.particles.dtype)
        return type(state)(
            particles, state.opt_state, state.bandwidth, state.step
        ), info  # fmt: skip


def of_sampler(contract, sampler, *more):
    test = getattr(sampler_contracts, f"test_{contract}")
    return lambda key: test(sampler, *more, key)


def deaf(key):
    sampler = Deaf(0.05)
    sampler_contracts.NOISY.append(sampler)
    try:
        sampler_contracts.test_a_run_repeats_itself_with_the_same_key(sampler, key)
    finally:
        sampler_contracts.NOISY.remove(sampler)


SAMPLING = {
    "a state of another precision": of_sampler(
        "step_gives_a_state_like_the_one_it_took", Narrowed(0.05), jnp.float64
    ),
    "a run that begins anew": of_sampler(
        "going_on_gives_the_numbers_of_a_straight_run", Begun(0.05)
    ),
    "noise that no key changes": deaf,
    "particles that are told apart": of_sampler(
        "order_of_the_particles_does_not_matter", Ordered(RBF(0.7), optax.sgd(0.1))
    ),
}

# ------------------------------------- targets, networks, energies, losses, metrics


class Mirrored(RotatedGaussians):
    """It claims reflections, which turn its long axes elsewhere."""

    @property
    def group(self) -> AbstractGroup:
        return Cyclic(8)


class Unsure(RotatedGaussians):
    def _log_density(self, point):
        return super()._log_density(point) + is_traced(point)


class Tilted(MLP):
    """A network of no symmetry that claims one."""

    def group(self, shape):
        return Dihedral(4)


class ReSampled(Langevin):
    def step(self, key, state, log_density):
        state, info = super().step(key, state, log_density)
        if is_traced(state.particles):
            state = type(state)(state.particles + 1, *list(vars(state).values())[1:])
        return state, info


class Doubled(ScoreMatching):
    def loss(self, key, energy, state, batch):
        value, state, info = super().loss(key, energy, state, batch)
        return value + is_traced(batch.points), state, info


def target(contract, broken):
    test = getattr(target_contracts, f"test_{contract}")
    return lambda key: test(broken(Cyclic(4)), (2,), key)


def energy(contract, log_density):
    """Call a test with a density that claims the symmetry of C4."""
    test = getattr(energy_contracts, f"test_{contract}")

    def call(key):
        data = jr.normal(key, (20, 2))
        known = KnownEnergy(log_density, Cyclic(4))
        test(types.SimpleNamespace(
            energy=known, data=data, group=Cyclic(4), shape=(2,)
        ))  # fmt: skip

    return call


def distance(function):
    def call(key):
        metric_contracts.DISTANCES[function] = function, (2,)
        try:
            metric_contracts.test_distance_is_one_of_samples(function, key)
        finally:
            del metric_contracts.DISTANCES[function]

    return call


OTHERS = {
    "a target of a larger group": target("density_has_the_declared_symmetry", Mirrored),
    "a target that is compiled to another": target(
        "compiled_density_equals_eager", Unsure
    ),
    "a network without its symmetry": lambda key: (
        network_contracts.test_each_output_has_the_declared_symmetry(
            (2,), lambda key, data, out: Tilted(2, widths=(8,), out_size=out, key=key),
            key,
        )
    ),
    "an energy without its symmetry": energy(
        "energy_is_invariant_and_so_is_its_kernel",
        lambda x: -jnp.sum(x**2) / 2 + 1e-3 * x[0],
    ),
    "an energy that is infinite": energy(
        "energy_and_score_are_finite_everywhere", lambda x: jnp.log(jnp.sum(x**2))
    ),
    "an energy without walls": energy(
        "walls_keep_the_density_normalizable", lambda x: -jnp.log(1 + jnp.sum(x**2))
    ),
    "an energy that is compiled to another": energy(
        "compiled_energy_equals_eager", lambda x: -jnp.sum(x**2) / 2 + is_traced(x)
    ),
    "a loss that is compiled to another": lambda key: (
        compiled_contracts.test_a_compiled_loss_equals_eager(
            Doubled, plain, None, key
        )
    ),
    "a step that is compiled to another": lambda key: (
        compiled_contracts.test_a_compiled_step_equals_eager(
            ReSampled(0.05), key
        )
    ),
    "a distance with a sign": distance(lambda x, y: jnp.mean(x - y)),
    "a distance that is not symmetric": distance(
        lambda x, y: jnp.mean((jnp.mean(x, 0) - jnp.mean(y, 0)) ** 2) * jnp.std(x)
    ),
    "a distance of the first samples": distance(
        lambda x, y: jnp.linalg.norm(x[0] - y[0])
    ),
}  # fmt: skip


EVERY = GROUPS | FEATURES | KERNELS | SAMPLING | OTHERS


@pytest.mark.parametrize("name", EVERY)
def test_what_is_broken_is_seen(name, key):
    with pytest.raises((AssertionError, InvarianceError)):
        EVERY[name](key)
