"""A sum of sinusoids in noise."""

import math

import jax.numpy as jnp
import jax.random as jr
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int

from equistein._types import Key, Scalar
from equistein.experiments.posteriors._model import AbstractModel, order_number
from equistein.posteriors import Parameters

_TURN = 6.283185307179586
_AMPLITUDE = 1.0  # the median of its prior
_NOISE = 0.5  # the median of its prior, and of the data
_BAND = (1.0, 6.0)
_DURATION = 2.0
_TRUTH = {
    "amplitude": (1.0, 0.8, 0.6),
    "frequency": (1.8, 2.6, 4.5),
    "phase": (1.0, 4.0, 2.0),
}

Tree = dict[str, Array]


class Waves(AbstractModel):
    r"""Sinusoids of unknown amplitudes, frequencies and phases, in noise.

    $$y_t = \sum_j a_j \sin(2 \pi f_j t + \varphi_j) + \sigma \xi_t$$

    $\log a_j$ and $\log \sigma$ are normal, $f_j$ is uniform in a band and $\varphi_j$
    on the circle. The waves can be exchanged, and phases come again after a turn.

    References:
        Andrieu and Doucet (1999), Joint Bayesian model selection and estimation of
        noisy sinusoids via reversible jump MCMC.
    """

    times: Float[Array, " time"]
    values: Float[Array, " time"]
    num_components: int

    @property
    def num_copies(self) -> int:
        return math.factorial(self.num_components)

    def parameters(self) -> Parameters:
        ones = jnp.ones(self.num_components)
        waves = {
            "amplitude": _AMPLITUDE * ones,
            "frequency": sum(_BAND) / 2 * ones,
            "phase": _TURN / 2 * ones,
        }
        return Parameters(
            waves | {"noise": jnp.asarray(_NOISE)},
            exchangeable=dict.fromkeys(waves, 0),
            positive=["amplitude", "noise"],
            interval={"frequency": _BAND},
            periodic={"phase": _TURN},
        )

    def log_density(self, tree: Tree) -> Scalar:
        signal = _signal(tree, self.times)
        likelihood = jnp.sum(norm.logpdf(self.values, signal, tree["noise"]))
        logs = jnp.log(tree["amplitude"]), jnp.log(tree["noise"])
        medians = jnp.log(_AMPLITUDE), jnp.log(_NOISE)
        priors = [
            jnp.sum(norm.logpdf(log, median, 1.0) - log)
            for log, median in zip(logs, medians, strict=True)
        ]
        flat = self.num_components * jnp.log((_BAND[1] - _BAND[0]) * _TURN)
        return likelihood + sum(priors) - flat

    def prior(self, key: Key) -> Tree:
        amplitude, frequency, phase, noise = jr.split(key, 4)
        shape = (self.num_components,)
        return {
            "amplitude": _AMPLITUDE * jnp.exp(jr.normal(amplitude, shape)),
            "frequency": jr.uniform(frequency, shape, minval=_BAND[0], maxval=_BAND[1]),
            "phase": jr.uniform(phase, shape, maxval=_TURN),
            "noise": _NOISE * jnp.exp(jr.normal(noise)),
        }

    def quantities(self, tree: Tree) -> Float[Array, " quantity"]:
        order = jnp.argsort(tree["frequency"])
        sorted_ = tree["frequency"][order], jnp.log(tree["amplitude"][order])
        return jnp.append(jnp.concatenate(sorted_), jnp.log(tree["noise"]))

    def components(self, tree: Tree) -> Float[Array, " component"]:
        return tree["frequency"]

    def copy(self, tree: Tree) -> Int[Array, ""]:
        return order_number(tree["frequency"])

    def scores(self, trees: dict[str, Array]) -> dict[str, Scalar]:
        del trees
        return {}

    def truth(self) -> Float[Array, " quantity"]:
        return self.quantities(_true_tree())


def signal_data(num: int) -> tuple[Float[Array, " time"], Float[Array, " time"]]:
    """Return times and noisy values of three waves that are known."""
    times = jnp.linspace(0.0, _DURATION, num)
    return times, _signal(_true_tree(), times) + _NOISE * jr.normal(jr.key(0), (num,))


def _true_tree() -> Tree:
    waves = {name: jnp.asarray(values) for name, values in _TRUTH.items()}
    return waves | {"noise": jnp.asarray(_NOISE)}


def _signal(tree: Tree, times: Float[Array, " time"]) -> Float[Array, " time"]:
    angles = _TURN * tree["frequency"][None] * times[:, None] + tree["phase"][None]
    return jnp.sin(angles) @ tree["amplitude"]
