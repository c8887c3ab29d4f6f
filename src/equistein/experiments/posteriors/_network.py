"""A Bayesian network of a few hidden units."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import logsumexp
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int

from equistein._types import Key, Scalar
from equistein.experiments.posteriors._model import AbstractModel
from equistein.posteriors import Parameters

_SPREADS = {"w_in": 2.0, "b": 2.0, "w_out": 1.0, "bias": 1.0}
_NOISE = 0.2  # the median of its prior, and of the data
_NUM_TEST = 200
_REACH = 2.5
_PLACES = (-2.0, -1.0, 0.0, 1.0, 2.0)

Tree = dict[str, Array]


class Network(AbstractModel):
    r"""Regression by one hidden layer of tanh units.

    $$y = c + \sum_j v_j \tanh(u_j x + b_j) + \sigma \xi$$

    Normal priors, with $\log \sigma$ normal as well. A swap of two units, and a change
    of the signs of $u_j, b_j, v_j$ together, change nothing.

    References:
        Neal (1996), Bayesian Learning for Neural Networks.
    """

    inputs: Float[Array, " datum"]
    outputs: Float[Array, " datum"]
    num_units: int

    @property
    def num_copies(self) -> int:
        """That of the signs: the orders are too many to be counted."""
        return 2**self.num_units

    def parameters(self) -> Parameters:
        return Parameters(
            _tree(jnp.zeros((3, self.num_units)), jnp.zeros(()), jnp.log(_NOISE)),
            exchangeable={"w_in": 1, "b": 0, "w_out": 0},
            positive=["noise"],
            signed=True,
        )

    def log_density(self, tree: Tree) -> Scalar:
        fitted = jax.vmap(lambda x: self.predicted(tree, x))(self.inputs)
        likelihood = jnp.sum(norm.logpdf(self.outputs, fitted, tree["noise"]))
        priors = [
            jnp.sum(norm.logpdf(tree[name], 0.0, scale))
            for name, scale in _SPREADS.items()
        ]
        log_noise = jnp.log(tree["noise"])
        return (
            likelihood
            + sum(priors)
            + norm.logpdf(log_noise, jnp.log(_NOISE), 1.0)
            - log_noise
        )

    def predicted(self, tree: Tree, x: Scalar) -> Scalar:
        """Return the mean of the output at an input."""
        units = jnp.tanh(tree["w_in"][0] * x + tree["b"])
        return tree["bias"] + jnp.sum(tree["w_out"] * units)

    def prior(self, key: Key) -> Tree:
        units_key, bias_key, noise_key = jr.split(key, 3)
        scales = jnp.array([_SPREADS[name] for name in ("w_in", "b", "w_out")])
        units = scales[:, None] * jr.normal(units_key, (3, self.num_units))
        bias = _SPREADS["bias"] * jr.normal(bias_key)
        return _tree(units, bias, jnp.log(_NOISE) + jr.normal(noise_key))

    def quantities(self, tree: Tree) -> Float[Array, " quantity"]:
        places = jnp.asarray(_PLACES)
        fitted = jax.vmap(lambda x: self.predicted(tree, x))(places)
        return jnp.append(fitted, jnp.log(tree["noise"]))

    def components(self, tree: Tree) -> Float[Array, " component"]:
        return tree["w_out"]

    def copy(self, tree: Tree) -> Int[Array, ""]:
        bits = 2 ** jnp.arange(self.num_units)
        return jnp.sum(jnp.where(tree["w_out"] > 0, bits, 0))

    def truth(self) -> Float[Array, " quantity"]:
        return jnp.append(_function(jnp.asarray(_PLACES)), jnp.log(_NOISE))

    def scores(self, trees: dict[str, Array]) -> dict[str, Scalar]:
        """Return the mean log density of test data, averaged over the draws."""
        inputs, outputs = regression_data(_NUM_TEST, 1)

        def each(tree):
            fitted = jax.vmap(lambda x: self.predicted(tree, x))(inputs)
            return norm.logpdf(outputs, fitted, tree["noise"])

        logs = jax.vmap(each)(trees)
        mixed = logsumexp(logs, axis=0) - jnp.log(float(len(logs)))
        return {"test_log_density": jnp.mean(mixed)}


def regression_data(
    num: int, part: int
) -> tuple[Float[Array, " datum"], Float[Array, " datum"]]:
    """Return inputs and noisy outputs of a wave; part 0 is to learn from, 1 to test."""
    input_key, key = jr.split(jr.key(part))
    inputs = jr.uniform(input_key, (num,), minval=-_REACH, maxval=_REACH)
    return inputs, _function(inputs) + _NOISE * jr.normal(key, (num,))


def _function(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    return jnp.sin(2 * x) + 0.3 * x


def _tree(units: Float[Array, "3 unit"], bias: Scalar, log_noise: Scalar) -> Tree:
    return {
        "w_in": units[:1],
        "b": units[1],
        "w_out": units[2],
        "bias": bias,
        "noise": jnp.exp(log_noise),
    }
