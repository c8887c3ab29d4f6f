"""What is said of a kernel of a user's own that cannot work."""

import jax.numpy as jnp
import optax
import pytest

import equistein as es
from equistein.kernels import AbstractRadialKernel, AbstractScalarKernel

START = jnp.array([[0.5, 1.0], [-1.0, 0.25], [2.0, -0.5]])
QUARTERS = es.groups.Cyclic(4)


def normal(x):
    return -0.5 * jnp.sum(x**2)


class WithKink(AbstractScalarKernel):
    def __call__(self, x, y):
        return jnp.exp(-jnp.linalg.norm(x - y))


class OfVectors(AbstractScalarKernel):
    def __call__(self, x, y):
        return jnp.exp(-((x - y) ** 2))


class RadialWithKink(AbstractRadialKernel):
    def profile(self, squared):
        distance = jnp.sqrt(squared)
        value = jnp.exp(-distance)
        return value, -value / (2 * distance)


def step(kernel):
    sampler = es.SVGD(kernel, optax.sgd(0.1))
    return es.run(0, sampler, normal, START, num_steps=1)


@pytest.mark.parametrize(
    "kernel",
    [
        WithKink(), RadialWithKink(), es.kernels.Equivariant(RadialWithKink(), QUARTERS)
    ],
    ids=["scalar", "radial", "averaged"],
)  # fmt: skip
def test_a_kernel_without_a_gradient_at_its_center_is_refused(kernel):
    with pytest.raises(es.NonFiniteError, match="custom kernel at x = y"):
        step(kernel)


def test_a_kernel_must_return_one_number():
    with pytest.raises(TypeError, match="scalar-output"):
        step(OfVectors())
