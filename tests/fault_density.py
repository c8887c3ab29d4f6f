"""A run of a log density that fails after some calls: `fault_density.py raises 500`.

Prints "as it should" if the run ends with its own error, which holds finite particles,
and goes on from there to the same numbers.
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import equistein as es

STEPS = 400


def disturbed(way, number):
    """Return a normal log density that calls Python, and fails at a call."""
    calls = 0

    def host(x):
        nonlocal calls
        calls += 1
        if calls == number and way == "raises":
            raise OSError("the calculator is gone")
        if calls == number and way == "sleeps":
            print("asleep", flush=True)
        if calls >= number and way == "sleeps":
            time.sleep(0.01)
        return np.full(
            x.shape, np.nan if calls >= number and way == "is NaN" else 0, x.dtype
        )

    def zeros(x):
        like = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(host, like, x, vmap_method="sequential")

    @jax.custom_jvp
    def zero(x):
        return jnp.sum(zeros(x))

    @zero.defjvp
    def _(primals, tangents):
        none = zeros(*primals)
        return jnp.sum(none), jnp.sum(none * tangents[0])

    return lambda x: -0.5 * jnp.sum(x**2) + zero(x)


def run(log_density, num_steps, *start, **options):
    return es.run(
        0, es.Langevin(0.1), log_density, *start, num_steps=num_steps, **options
    )


def main(way, number):
    start = jax.random.normal(jax.random.key(1), (4, 2))
    sound = lambda x: -0.5 * jnp.sum(x**2)
    whole = run(sound, STEPS, start)
    errors = {
        "raises": es.EvaluationFailed, "sleeps": es.RunInterrupted,
        "is NaN": es.NonFiniteError,
    }  # fmt: skip
    try:
        run(disturbed(way, number), STEPS, start)
    except errors[way] as error:
        kept = error.samples
        assert np.all(np.isfinite(kept.particles)), kept.particles
        assert kept.num_steps < STEPS
        left = STEPS - kept.num_steps
        again = run(sound, left, initial_state=kept.state)
        np.testing.assert_array_equal(again.particles, whole.particles)
        print(f"as it should, after {kept.num_steps} steps")
        return 0
    print("no error")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
