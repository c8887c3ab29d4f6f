"""Models of NumPyro's documentation and examples, with little data of our own.

Each is a function that returns a model and the arguments it is called with.
"""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpyro
import numpyro.distributions as dist
from numpyro.contrib.control_flow import scan

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


def common_scale_mixture():
    """Pyro's and NumPyro's tutorial mixture: one LogNormal scale for all."""

    def model(data):
        weights = numpyro.sample("weights", dist.Dirichlet(0.5 * jnp.ones(2)))
        scale = numpyro.sample("scale", dist.LogNormal(0.0, 2.0))
        locs = numpyro.sample("locs", dist.Normal(0.0, 10.0).expand([2]).to_event(1))
        mixture = dist.MixtureSameFamily(
            dist.Categorical(probs=weights), dist.Normal(locs, scale)
        )
        with numpyro.plate("n", len(data)):
            numpyro.sample("obs", mixture, obs=data)

    return model, (jnp.array([0.0, 1.0, 10.0, 11.0, 12.0]),)


def mixture_of_regressions():
    """Lines through two clouds, of which no one says which point is whose."""

    def model(x, y):
        weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(2)))
        slopes = numpyro.sample("slopes", dist.Normal(0.0, 3.0).expand([2]))
        offsets = numpyro.sample("offsets", dist.Normal(0.0, 3.0).expand([2]))
        sigma = numpyro.sample("sigma", dist.Exponential(1.0))
        lines = dist.Normal(offsets + slopes * x[:, None], sigma)
        mixture = dist.MixtureSameFamily(dist.Categorical(probs=weights), lines)
        numpyro.sample("y", mixture, obs=y)

    return model, (LINE, jnp.sign(NOISE) * LINE + 0.1 * NOISE)


def eight_schools():
    """The centered model of NumPyro's first page."""

    def model(sigma, y):
        mu = numpyro.sample("mu", dist.Normal(0, 5))
        tau = numpyro.sample("tau", dist.HalfCauchy(5))
        with numpyro.plate("J", 8):
            theta = numpyro.sample("theta", dist.Normal(mu, tau))
            numpyro.sample("obs", dist.Normal(theta, sigma), obs=y)

    effects = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    errors = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    return model, (errors, effects)


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


def autoregression():
    """The AR(2) process of the ar2 example, by `scan`."""

    def model(y):
        alpha = numpyro.sample("alpha", dist.Normal(0, 1).expand([2]))
        const = numpyro.sample("const", dist.Normal(0, 1))
        sigma = numpyro.sample("sigma", dist.HalfNormal(1))

        def step(carry, now):
            first, second = carry
            mean = const + alpha[0] * first + alpha[1] * second
            numpyro.sample("y", dist.Normal(mean, sigma), obs=now)
            return (now, first), None

        scan(step, (y[1], y[0]), y[2:])

    return model, (jnp.sin(9 * LINE) + 0.1 * NOISE,)


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
    common_scale_mixture: {"weights": (0,), "locs": (0,)},
    mixture_of_regressions: {"weights": (0,), "slopes": (0,), "offsets": (0,)},
    eight_schools: {},
    logistic_regression: {},
    bayesian_network: {"into": (1,), "out": (0,)},
    autoregression: {},
    hidden_markov_model: {"move": (0, 1), "locs": (0,)},
}
