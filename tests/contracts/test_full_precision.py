"""On a GPU products round their factors to TF32, unless they ask for full precision."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from group_registry import every_group
from jax.extend.core import ClosedJaxpr, Jaxpr, primitives
from kernel_registry import every_kernel_costly_ones_slow, points_and_scores

import equistein as es
from equistein.groups import Cyclic
from equistein.kernels import Equivariant, RBF
from equistein.targets import RotatedGaussians
from equistein.training import Batch, Trainer

_PRODUCTS = {"dot_general", "conv_general_dilated"}


def products(jaxpr):
    """Yield the products of a traced function and of all functions in it."""
    for equation in jaxpr.eqns:
        if equation.primitive.name in _PRODUCTS:
            yield equation
        for inner in jax.tree.leaves(list(equation.params.values())):
            if isinstance(inner, Jaxpr | ClosedJaxpr):
                yield from products(getattr(inner, "jaxpr", inner))


def num_rounded(function, *arguments):
    """Return how many products would be rounded, of all that there are."""
    found = list(products(jax.make_jaxpr(function)(*arguments).jaxpr))
    highest = (jax.lax.Precision.HIGHEST,) * 2
    rounded = [
        equation
        for equation in found
        if equation.params["precision"] != highest
        and jnp.issubdtype(equation.outvars[0].aval.dtype, jnp.floating)
    ]
    return len(rounded), len(found)


@every_kernel_costly_ones_slow
def test_no_product_of_a_kernel_is_rounded(make, shape):
    kernel, arrays = make(0.8), points_and_scores(jr.key(0), shape, jnp.float32)
    assert num_rounded(kernel.stein_force, *arrays)[0] == 0
    assert num_rounded(kernel.matrix, arrays[0][0], arrays[1][0])[0] == 0


@every_group
def test_no_product_of_a_group_is_rounded(make, shape):
    group, point = make(), jnp.ones(shape, jnp.float32)
    first = lambda key: jax.tree.map(lambda leaf: leaf[0], group.sample(key, 1))
    element = jax.eval_shape(first, jr.key(0))
    assert num_rounded(group.act, element, point)[0] == 0
    assert num_rounded(group.compose, element, element)[0] == 0
    for method in (group.canonicalize, group.project):
        assert num_rounded(method, point)[0] == 0


# --------------------------------------- networks are rounded as a fit says


def test_products_are_counted():
    """The broken twin: what asks for nothing is found, in loops too."""
    eye = jnp.eye(2, dtype=jnp.float32)
    looped = lambda x: jax.lax.fori_loop(0, 3, lambda _, x: x @ x, x)
    assert num_rounded(looped, eye) == (1, 1)


@pytest.fixture
def tf32(monkeypatch):
    """Round the factors of products to 10 bits, as a GPU does; what asks is spared."""
    exact = primitives.dot_general_p.impl

    def rounded(x):
        if x.dtype != jnp.float32:
            return x
        bits = np.asarray(x).view(np.uint32) + np.uint32(1 << 12)
        return jnp.asarray((bits >> 13 << 13).view(np.float32))

    def patch(spare):
        def product(left, right, *, precision, **params):
            asked = precision == (jax.lax.Precision.HIGHEST,) * 2
            if not (spare and asked):
                left, right = rounded(left), rounded(right)
            return exact(left, right, precision=precision, **params)

        monkeypatch.setattr(primitives.dot_general_p, "impl", product)

    return patch


def test_the_force_is_right_where_products_are_rounded(tf32, key):
    kernel = Equivariant(RBF(0.2), Cyclic(4))
    target = RotatedGaussians(Cyclic(4))
    points = 3 * jr.normal(key, (80, 2), jnp.float32)  # so many: by a product
    scores = jax.jit(jax.vmap(jax.grad(target.log_density)))(points)
    right = kernel.stein_force(points, points, scores)
    size = jnp.max(jnp.abs(right))
    with jax.disable_jit():
        tf32(spare=True)
        asked = kernel.stein_force(points, points, scores)
        tf32(spare=False)  # the broken twin: as if nobody had asked
        rounded = kernel.stein_force(points, points, scores)
    assert jnp.max(jnp.abs(asked - right)) < 1e-4 * size
    assert jnp.max(jnp.abs(rounded - right)) > 1e-2 * size


# --------------------------------------- networks are rounded as a fit says


@pytest.fixture
def model():
    data = jr.normal(jr.key(0), (16, 2))
    settings = es.models.ContrastiveSettings(
        num_particles=8, num_steps=2, batch_size=4, widths=(4,)
    )
    return es.models.for_data(jr.key(0), Cyclic(4), data, settings=settings), data


def asked(model, data, precision):
    trainer = Trainer(model.objective, optax.sgd(0.1), 4, 1, 0.0, precision)
    state = trainer.init(jr.key(0), model.energy, Batch(data, None, jnp.arange(16)))
    arrays, static = eqx.partition(state, eqx.is_array)
    step = lambda arrays: eqx.filter(
        trainer.epoch(eqx.combine(arrays, static), data), eqx.is_array
    )
    return {
        str(each.params["precision"])
        for each in products(jax.make_jaxpr(step)(arrays).jaxpr)
    }


@pytest.mark.parametrize(
    ("precision", "wanted"),
    [("bfloat16", "DEFAULT"), ("tensorfloat32", "HIGH,"), ("float32", None)],
)
def test_products_of_networks_ask_for_what_was_given(precision, wanted, model):
    """Those of the kernel ask for all digits in any case."""
    found = asked(*model, precision)
    assert any("HIGHEST" in each for each in found)
    assert {"HIGHEST" in each for each in found} == (
        {True} if wanted is None else {True, False}
    )
    assert wanted is None or any(wanted in each for each in found)
    assert "None" in asked(*model, None)
