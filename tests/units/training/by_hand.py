"""Energies and samplers that are easy to compute with, and short fits of them."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

from equistein.energies import AbstractEnergy
from equistein.groups import Trivial
from equistein.kernels import RBF
from equistein.networks import AbstractNetwork
from equistein.samplers import AbstractSampler, Langevin, SVGD
from equistein.training import (
    Batch,
    Box,
    ContrastiveDivergence,
    Persistent,
    SamplingGenerator,
    Trainer,
)
from short_fits import fit as short_fit


class Bowl(AbstractEnergy):
    r"""$E(x) = a |x|^2 / 2 + b \cdot x$."""

    precision: jax.Array
    slope: jax.Array

    def __call__(self, point):
        return 0.5 * self.precision * jnp.sum(point**2) + jnp.sum(self.slope * point)

    def group(self, shape):
        return Trivial()


class Ramps(AbstractNetwork):
    """Logits that are linear in the point."""

    slopes: jax.Array

    def __call__(self, point):
        return self.slopes @ point

    def group(self, shape):
        return Trivial()


class Jump(AbstractSampler):
    """A sampler that puts all particles in one place."""

    place: float

    def init(self, particles, log_density):
        return Langevin(1.0).init(particles, log_density)

    def step(self, key, state, log_density):
        new, info = Langevin(1.0).step(key, state, log_density)
        there = jnp.full_like(new.particles, self.place)
        return eqx.tree_at(lambda s: s.particles, new, there), info


STILL = Langevin(1e-20)
sgd = functools.cache(optax.sgd)  # closures are compiled anew, the same ones are not


def bowl(precision=1.0, slope=0.0):
    return Bowl(jnp.asarray(precision, float), jnp.asarray(slope, float))


def svgd(step=0.1, langevin=0.1, bandwidth=1.0):
    return SVGD(RBF(bandwidth), sgd(step), langevin=langevin)


def batch_of(points, labels=None):
    """Return points as a batch, with the first rows of the data."""
    return Batch(points, labels, jnp.arange(len(points)))


def persistent(data, sampler=None, **options):
    """Return a few particles that start in the data's box."""
    options = {"num_particles": 5, "num_steps": 1, "reset_probability": 0.0} | options
    return Persistent(sampler or svgd(), Box(data, Trivial()), **options)


def divergence_of(data, sampler=None, regularization=0.0, **options):
    return ContrastiveDivergence(persistent(data, sampler, **options), regularization)


def epochs(key, energy, data, objective, num=1, rate=0.0, labels=None, **options):
    """Return the states before and after each epoch, and the info of each."""
    batch_size = options.get("batch_size", 8)
    trainer = Trainer(
        objective, sgd(rate), batch_size, max(1, len(data) // batch_size),
        options.get("ema", 0.0),
    )  # fmt: skip
    state = trainer.init(key, energy, batch_of(data, labels))
    states, infos = [state], []
    for _ in range(num):
        state, info = trainer.epoch(state, data, labels)
        states.append(state)
        infos.append(info)
    return states, infos


def fit(key, energy, data, objective=None, **options):
    """Return a short fit, by contrastive divergence unless an objective is given."""
    objective = objective or divergence_of(data)
    options = {"num_epochs": 1, "batch_size": 8, "ema": 0.0} | options
    return short_fit(key, energy, data, objective, **options)


def generator_of(data, sampler=None, num_steps=4, num_at_once=5):
    start = Box(data, Trivial())
    return SamplingGenerator(
        sampler or svgd(), start, num_steps=num_steps, num_at_once=num_at_once
    )


def two_clusters(key):
    """Return points of two classes that are far apart, with their classes."""
    classes = np.arange(32) % 2
    data = jr.normal(key, (32, 2)) * 0.3
    return data.at[:, 0].add(jnp.where(classes == 1, 2.0, -2.0)), classes
