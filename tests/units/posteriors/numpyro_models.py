"""Models of NumPyro's documentation and examples, with little data of our own.

Each is a function that returns a model and the arguments it is called with.
"""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpyro
import numpyro.distributions as dist

NOISE = jr.normal(jr.key(3), (40,))
LINE = jnp.linspace(-1.0, 1.0, 40)


def gaussian_mixture():
    """The mixture of the MixtureSameFamily documentation, as a model with priors."""

    def model(data):
        weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(3)))
        with numpyro.plate("components", 3):
            locs = numpyro.sample("locs", dist.Normal(0.0, 5.0))
            scales = numpyro.sample("scales", dist.HalfNormal(2.0))
        mixture = dist.MixtureSameFamily(
            dist.Categorical(probs=weights), dist.Normal(locs, scales)
        )
        numpyro.sample("data", mixture, obs=data)

    return model, (jnp.where(LINE > 0, 3.0, -3.0) + 0.5 * NOISE,)


def logistic_regression():
    """That of the covertype example."""

    def model(data, labels):
        coefs = numpyro.sample("coefs", dist.Normal(jnp.zeros(3), jnp.ones(3)))
        numpyro.sample("obs", dist.Bernoulli(logits=data @ coefs), obs=labels)

    data = jnp.stack([LINE, LINE**2, jnp.ones(40)], axis=1)
    return model, (data, (LINE + NOISE > 0).astype(int))


def bayesian_network():
    """The network of the bnn example, with one layer of three hidden units."""

    def model(x, y):
        into = numpyro.sample("into", dist.Normal(jnp.zeros((1, 3)), jnp.ones((1, 3))))
        out = numpyro.sample("out", dist.Normal(jnp.zeros((3, 1)), jnp.ones((3, 1))))
        precision = numpyro.sample("prec_obs", dist.Gamma(3.0, 1.0))
        mean = jnp.tanh(x @ into) @ out
        with numpyro.plate("data", len(x)):
            likelihood = dist.Normal(mean, 1 / jnp.sqrt(precision)).to_event(1)
            numpyro.sample("y", likelihood, obs=y)

    return model, (LINE[:, None], (jnp.sin(3 * LINE) + 0.1 * NOISE)[:, None])


def hidden_markov_model():
    """The one of the hmm example, its states summed out by the forward algorithm."""

    def model(y):
        move = numpyro.sample("move", dist.Dirichlet(jnp.ones((2, 2))))
        locs = numpyro.sample("locs", dist.Normal(0, 3).expand([2]))
        angle = numpyro.sample("angle", dist.VonMises(0.0, 2.0))
        seen = dist.Normal(locs, 1 + 0.5 * jnp.cos(angle)).log_prob(y[:, None])

        def forward(logits, now):
            logits = jax.nn.logsumexp(logits[:, None] + jnp.log(move), axis=0) + now
            return logits, None

        logits, _ = jax.lax.scan(forward, seen[0] - jnp.log(2.0), seen[1:])
        numpyro.factor("data", jax.nn.logsumexp(logits))

    return model, (jnp.where(LINE > 0, 2.0, -2.0) + NOISE,)


MODELS = {  # with the labels that each has
    gaussian_mixture: {"weights": (0,), "locs": (0,), "scales": (0,)},
    logistic_regression: {},
    bayesian_network: {"into": (1,), "out": (0,)},
    hidden_markov_model: {"move": (0, 1), "locs": (0,)},
}
