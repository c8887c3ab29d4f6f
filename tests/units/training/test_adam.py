import jax
import jax.numpy as jnp
import numpy as np

from equistein.training import adam


def step_sizes(optimizer, num):
    """Return the size of each update under a constant gradient, as Adam takes it."""
    weight = jnp.ones(())
    state, sizes = optimizer.init(weight), []
    with jax.numpy_dtype_promotion("standard"):
        update = jax.jit(optimizer.update)
        for _ in range(num):
            change, state = update(jnp.ones(()), state, weight)
            sizes.append(float(-change))
    return np.array(sizes)


def test_the_learning_rate_warms_up():
    sizes = step_sizes(adam(0.01, 10_000, warm_up=4), 7)
    rise = np.array([0.2, 0.4, 0.6, 0.8, 1, 1, 1])
    assert np.allclose(sizes, 0.01 * rise, rtol=1e-4)
    assert np.allclose(step_sizes(adam(0.01, 10_000), 7), 0.01, rtol=1e-4)


def test_the_learning_rate_falls_along_a_cosine():
    exact = 0.5 * (1 + np.cos(np.pi * np.arange(11) / 10))
    sizes = step_sizes(adam(0.01, 10), 11)
    assert np.allclose(sizes, 0.01 * (0.99 * exact + 0.01), rtol=1e-4)


def test_the_learning_rate_may_fall_in_steps():
    sizes = step_sizes(adam(0.01, 10, factors={2: 0.5, 6: 0.1}), 8)
    factors = np.array([1, 1, 0.5, 0.5, 0.5, 0.5, 0.1, 0.1])
    assert np.allclose(sizes, 0.01 * factors, rtol=1e-4)
    assert np.allclose(step_sizes(adam(0.01, 3, factors={}), 8), 0.01, rtol=1e-4)


def test_the_gradient_is_clipped():
    optimizer = adam(0.01, 5, gradient_clip=2.0)
    weights = jnp.zeros(2)
    with jax.numpy_dtype_promotion("standard"):
        state = optimizer.init(weights)
        _, after = optimizer.update(jnp.array([30.0, 40.0]), state, weights)
    moments = after[1][0]  # the mean of gradients has taken a tenth of the first
    assert np.allclose(moments.mu, 0.1 * 2.0 * jnp.array([0.6, 0.8]))


def test_the_same_arguments_give_the_same_object():
    assert adam(0.01, 10, warm_up=2) is adam(0.01, 10, warm_up=2)
    assert adam(0.01, 10) is not adam(0.01, 20)
