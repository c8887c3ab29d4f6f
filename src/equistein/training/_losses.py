"""The terms of the loss, each for one batch."""

import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Float, Int, Num

from equistein._types import Key, Scalar
from equistein.energies import (
    AbstractEnergy,
    FormulasEnergy,
    JointEnergy,
    NoiseEnergy,
)
from equistein.groups import AbstractGroup

Batch = Float[Array, "point *shape"]


def energies_of(
    energy: AbstractEnergy, points: Batch, labels: Num[Array, " point"] | None
) -> tuple[Float[Array, " point"], Float[Array, "point class"] | None]:
    """Return the energies of data, and what a joint energy has them from: the logits.

    Args:
        energy: The energy.
        points: The data.
        labels: For a `FormulasEnergy` the formula of each.
    """
    if isinstance(energy, JointEnergy):
        logits = jax.vmap(energy.logits)(points)
        return jax.vmap(energy.from_logits)(logits), logits
    if isinstance(energy, FormulasEnergy):
        value_of = lambda label, x: energy.given(label)(x)
        return jax.vmap(value_of)(labels, points), None
    return jax.vmap(energy)(points), None


def contrastive_divergence(
    positive: Float[Array, " point"], negative: Float[Array, " particle"]
) -> Scalar:
    r"""Return $\mathbb E[E(x^+)] - \mathbb E[E(x^-)]$.

    Its gradient in the weights, with the negatives held fixed, estimates that of the
    mean negative log-likelihood of the data under $e^{-E}/Z$; under $e^{-E/T}/Z$ it is
    that times T.

    Args:
        positive: The energies of data.
        negative: The energies of samples of the model.

    References:
        Hinton et al. (2006); Jaini, Holdijk and Welling (2021), equation grad.
    """
    return jnp.mean(positive) - jnp.mean(negative)


def energy_magnitude(
    positive: Float[Array, " point"], negative: Float[Array, " particle"] | None
) -> Scalar:
    r"""Return $\mathbb E[E(x^+)^2] + \mathbb E[E(x^-)^2]$, which keeps energies small.

    Without negatives it is the first term.

    References:
        Du and Mordatch (2019), Implicit generation and modeling with EBMs.
    """
    square = jnp.mean(positive**2)
    return square if negative is None else square + jnp.mean(negative**2)


def cross_entropy(
    logits: Float[Array, "point class"], labels: Int[Array, " point"]
) -> tuple[Scalar, Scalar]:
    r"""Return the mean of $-\log p(y | x)$ over the labelled points, and the accuracy.

    Points without a label have -1; with none labelled both are 0.

    Args:
        logits: Those of a joint energy.
        labels: The classes.

    References:
        Jaini, Holdijk and Welling (2021), equation loss-JEM.
    """
    known = (labels >= 0).astype(logits.dtype)
    share = known / jnp.maximum(jnp.sum(known), 1)
    losses = optax.softmax_cross_entropy_with_integer_labels(
        logits, jnp.maximum(labels, 0)
    )
    guessed = jnp.argmax(logits, axis=1).astype(labels.dtype)
    right = (guessed == labels).astype(logits.dtype)
    return jnp.sum(share * losses), jnp.sum(share * right)


def squared_error(
    energy: AbstractEnergy, points: Batch, energies: Float[Array, " point"]
) -> Scalar:
    """Return the mean squared difference to known energies; unknown ones are NaN."""
    values = jax.vmap(energy)(points)
    known = jnp.isfinite(energies)
    gaps = jnp.where(known, values - jnp.where(known, energies, 0), 0)
    return jnp.sum(gaps**2) / jnp.maximum(jnp.sum(known.astype(values.dtype)), 1)


def denoising_score_matching(
    key: Key,
    energy: AbstractEnergy,
    points: Batch,
    noise: Float[Array, "..."],
    group: AbstractGroup,
    labels: Int[Array, " point"] | None = None,
) -> Scalar:
    r"""Return the mean of $|\sigma s(x + \sigma \xi) + \xi|^2$ a coordinate.

    With $s = -\nabla E$ and normal $\xi$ it is least where s is the score of the data
    blurred by $\sigma$. No negatives are needed; the weights of modes much further
    apart than $\sigma$ remain undetermined. A `NoiseEnergy` has a score for each level.

    Args:
        key: The source of the noise.
        energy: The energy.
        points: The data.
        noise: The noise $\sigma$, of all points or of each.
        group: The symmetry; the noise stays on its subspace.
        labels: For a `FormulasEnergy` the formula of each point.

    References:
        Vincent (2011), A connection between score matching and denoising autoencoders.
    """
    drawn = jr.normal(key, points.shape, points.dtype)
    noise = jnp.broadcast_to(noise, points.shape[:1])

    def gap(model, point, noise, drawn):
        score = jax.grad(model.log_density)(point + noise * drawn)
        return (noise * score + drawn) ** 2

    def of_formula(label, point, noise, drawn):
        assert isinstance(energy, FormulasEnergy)
        model = energy.given(label).at(noise)
        squares = gap(model, point, noise, model.project(drawn))
        share = energy.kinds.shape[1] / jnp.sum(energy.kinds[label] >= 0)
        return share.astype(point.dtype) * squares

    def of_any(point, noise, drawn):
        model = energy.at(noise) if isinstance(energy, NoiseEnergy) else energy
        return gap(model, point, noise, group.project(drawn))

    if isinstance(energy, FormulasEnergy):
        return jnp.mean(jax.vmap(of_formula)(labels, points, noise, drawn))
    return jnp.mean(jax.vmap(of_any)(points, noise, drawn))


def noise_levels(key: Key, energy: NoiseEnergy, num: int) -> Float[Array, " point"]:
    """Return levels of noise, one in each of `num` like parts of their range."""
    dtype = energy.noise.dtype
    shares = (jnp.arange(num, dtype=dtype) + jr.uniform(key, (num,), dtype)) / num
    return energy.level(shares)
