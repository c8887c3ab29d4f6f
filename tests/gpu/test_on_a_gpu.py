"""That the same code is right on a GPU, in single precision, where there is one."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import equistein as es
from equistein.groups import Cyclic, ImageRotations
from equistein.kernels import Equivariant, Gradient, Pullback, RBF
from equistein.samplers import SVGD

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        jax.default_backend() == "cpu", reason="JAX finds no GPU on this machine"
    ),
    pytest.mark.usefixtures("single_precision"),
]
FEATURES = es.features.SortedDistances((0,) * 4)
KERNELS = {  # made in the test's own precision
    "rbf": (lambda: RBF(1.0), (16,)),
    "c4": (lambda: Equivariant(RBF(0.5), Cyclic(4)), (2,)),
    "images": (lambda: Equivariant(RBF(9.0), ImageRotations()), (8, 8)),
    "pullback": (lambda: Pullback(RBF(0.5), FEATURES), (4, 2)),
    "gradient": (lambda: Gradient(RBF(0.5), FEATURES), (4, 2)),
}


def force(make, x):
    """Return the force on 64 of many particles."""
    return jax.jit(lambda x: make().stein_force(x[:64], x, -x))(x)


def particles(shape, key):
    """Return many particles far from the origin."""
    return 3.0 + jr.normal(key, (4_096, *shape), "float32")


@pytest.mark.parametrize("name", KERNELS)
def test_forces_are_those_of_the_processor_in_double_precision(name, key):
    make, shape = KERNELS[name]
    x = particles(shape, key)
    found = force(make, x)
    with jax.default_device(jax.devices("cpu")[0]), jax.enable_x64(True):
        wanted = force(make, jnp.asarray(np.asarray(x), "float64"))
    error = np.linalg.norm(found - np.asarray(wanted)) / np.linalg.norm(wanted)
    assert error < 1e-4


def test_rounded_products_would_be_seen(key, monkeypatch):
    """The broken twin, whose products may be TF32."""
    make, shape = KERNELS["rbf"]
    x = particles(shape, key)
    right = force(make, x)
    for module in ("_pairs", "_radial"):
        monkeypatch.setattr(f"equistein.kernels.{module}.matmul", jnp.matmul)
    with jax.default_matmul_precision("tensorfloat32"):
        rounded = force(make, x)
    assert np.linalg.norm(rounded - right) > 1e-3 * np.linalg.norm(right)


def test_memory_of_a_million_particles_is_that_of_some_blocks():
    sampler = SVGD(RBF(1.0), optax.sgd(0.1))
    start = jax.ShapeDtypeStruct((10**6, 16), "float32")
    state = jax.eval_shape(lambda x: sampler.init(x, log_density), start)
    step = jax.jit(lambda state: sampler.step(jr.key(0), state, log_density)[0])
    analysis = step.lower(state).compile().memory_analysis()
    assert analysis.temp_size_in_bytes < 3 * 2**30


def log_density(x):
    return -0.5 * jnp.sum(x**2)


def test_a_run_and_a_fit_end_with_numbers(key):
    target = es.targets.RotatedGaussians(Cyclic(4))
    start = jr.normal(key, (64, 2), "float32")
    sampler = SVGD(Equivariant(RBF(0.5), Cyclic(4)), optax.sgd(0.1))
    mesh = es.device_mesh(1)
    alone = es.run(key, sampler, target.log_density, start, num_steps=20)
    shared = es.run(key, sampler, target.log_density, start, num_steps=20, mesh=mesh)
    assert np.allclose(alone.particles, shared.particles, atol=1e-3)
    data = target.sample(key, 256)
    model = es.models.for_data(key, target.group, data)
    fitted = es.fit(key, model.energy, data, model.objective, num_epochs=2)
    assert np.all(np.isfinite(fitted.history["loss"]))
