"""Each contract's test fails for something that breaks the contract.

The tests of the other modules are called here with broken groups, features, kernels,
samplers, targets, networks, energies, objectives and metrics.
"""

import types

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
import pytest
import test_compiled_equals_eager as compiled_contracts
import test_energies as energy_contracts
import test_metrics as metric_contracts
import test_networks as network_contracts
import test_samplers as sampler_contracts
import test_targets as target_contracts
from broken_parts import FEATURES, GROUPS, KERNELS
from training_registry import plain

from equistein.diffusion import ScoreMatching
from equistein.energies import KnownEnergy
from equistein.groups import AbstractGroup, Cyclic, Dihedral, InvarianceError
from equistein.kernels import RBF
from equistein.networks import MLP
from equistein.samplers import Langevin, SVGD
from equistein.targets import RotatedGaussians

# ----------------------------------------------------------------------- samplers


class Narrowed(Langevin):
    def step(self, key, state, log_density):
        state, info = super().step(key, state, log_density)
        narrow = lambda x: x.astype(jnp.float32) if x.dtype == jnp.float64 else x
        return jax.tree.map(narrow, state), info


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


def is_traced(x):
    """Return 1 if the compiler looks, and 0 if it is a user."""
    return float(isinstance(x, jax.core.Tracer))


class ReSampled(Langevin):
    def step(self, key, state, log_density):
        state, info = super().step(key, state, log_density)
        moved = state.particles + is_traced(state.particles)
        return eqx.tree_at(lambda s: s.particles, state, moved), info


class Doubled(ScoreMatching):
    def loss(self, key, energy, state, batch):
        value, state, info = super().loss(key, energy, state, batch)
        return value + is_traced(batch.points), state, info


class Tilted(MLP):
    """A network of no symmetry that claims one."""

    def group(self, shape):
        return Dihedral(4)


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
    "a loss that is compiled to another": lambda key: (
        compiled_contracts.test_a_compiled_loss_equals_eager(Doubled, plain, None, key)
    ),
    "a step that is compiled to another": lambda key: (
        compiled_contracts.test_a_compiled_step_equals_eager(ReSampled(0.05), key)
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
