import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from by_hand import batch_of, bowl

from equistein.energies import AbstractEnergy
from equistein.groups import Trivial
from equistein.samplers import MALA, Normal
from equistein.training import Box, Persistent, Reweighted

NUM = 2_000


class Wells(AbstractEnergy):
    r"""Two wells at -3 and 3, of which the second holds a share of the mass."""

    share: jax.Array
    depth: jax.Array

    def __call__(self, point):
        gaps = (point[0] - jnp.array([-3.0, 3.0])) ** 2 / 2
        wells = jnp.log(jnp.stack([1 - self.share, self.share])) - gaps
        normal = jnp.sum(point**2) / 18
        return (1 - self.depth) * normal - self.depth * jax.nn.logsumexp(wells)

    def group(self, shape):
        return Trivial()


def reweighted(**options):
    reference = Normal(jnp.zeros(1), 3.0)
    options = {"num_particles": NUM, "num_steps": 3} | options
    return Reweighted(MALA(0.5), reference, **options)


def mass_on_the_right(key, negatives):
    """Return it, after an energy has parted two wells and then tilted them."""
    start_key, key = jr.split(key)
    points = jnp.array([[-3.0], [3.0]])
    depths = np.append(np.linspace(0, 1, 20), np.ones(20))
    shares = np.append(np.full(20, 0.5), np.linspace(0.5, 0.9, 20))
    energies = [
        Wells(jnp.asarray(share), jnp.asarray(depth))
        for share, depth in zip(shares, depths, strict=True)
    ]
    state = negatives.init(start_key, energies[0], batch_of(points))
    draw = eqx.filter_jit(negatives.draw)
    batch = batch_of(points)
    for number, energy in enumerate(energies):
        drawn, state, info = draw(jr.fold_in(key, number), energy, state, batch)
    assert drawn.shape == (NUM, 1)
    return float(jnp.mean(drawn > 0)), info


@pytest.mark.slow
def test_chains_that_cannot_cross_learn_the_weights_of_modes(key):
    found, info = mass_on_the_right(key, reweighted())
    # Choosing anew adds noise a few times over.
    assert abs(found - 0.9) < 5 * (3 * 0.9 * 0.1 / NUM) ** 0.5
    assert 0.5 < float(info["ess_fraction"]) < 0.99
    # The broken twin: the same chains without weights stay where they are.
    start = Box(jnp.array([[-3.0], [3.0]]), Trivial())
    twin = Persistent(
        MALA(0.5), start, num_particles=NUM, num_steps=3, reset_probability=0.0
    )
    assert mass_on_the_right(key, twin)[0] < 0.85


def test_a_reference_far_from_the_data_is_refused(key):
    far = Reweighted(MALA(0.5), Normal(jnp.full(2, 1e5), 1.0))
    with pytest.raises(ValueError, match="Where particles start"):
        far.init(key, bowl(), batch_of(jnp.ones((2, 2))))


@pytest.mark.slow
def test_errors_of_weights_are_forgotten_by_fresh_samples(key):
    found = {}
    points = jnp.array([[-3.0], [3.0]])
    energy = Wells(jnp.asarray(0.9), jnp.asarray(1.0))
    for chance in (0.2, 0.0):  # the broken twin starts no chain anew
        negatives = reweighted(reset_probability=chance)
        state = negatives.init(key, energy, batch_of(points))
        wrong = jnp.full_like(state.particles, -3.0)
        values = jax.vmap(energy.log_density)(wrong)
        fields = lambda s: (s.particles, s.log_densities)
        state = eqx.tree_at(fields, state, (wrong, values))
        draw = eqx.filter_jit(negatives.draw)
        for number in range(25):
            drawn, state, _ = draw(
                jr.fold_in(key, number), energy, state, batch_of(points)
            )
        found[chance] = float(jnp.mean(drawn > 0))
    assert abs(found[0.2] - 0.9) < 0.03
    assert found[0.0] < 0.5
