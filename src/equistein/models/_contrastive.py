"""Energies on invariant features, what suits them, and their contrastive training."""

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from equistein._arrays import as_keys
from equistein._check_arguments import check_arguments
from equistein._limits import check_memory
from equistein._types import AnyKey, Particles
from equistein.energies import (
    AbstractEnergy,
    ConditionalEnergy,
    JointEnergy,
    LinearEnergy,
    PlainEnergy,
    SummedEnergy,
    TemperedEnergy,
)
from equistein.features import (
    AbstractFeatures,
    Concatenated,
    Coordinates,
    PairBasis,
    PairHistogram,
    Radius,
    SortedDistances,
    SortedRowSums,
)
from equistein.groups import (
    AbstractGroup,
    ImageRotations,
    Orthogonal,
    PointCloud,
    SpecialOrthogonal,
)
from equistein.kernels import AbstractKernel, Equivariant, Pullback, RBF
from equistein.models._model import Model, model_of, setting_or
from equistein.models._settings import ContrastiveSettings
from equistein.networks import EGNN, FeatureNetwork, MLP, Symmetrized
from equistein.samplers import (
    AbstractSampler,
    AnnealedSMC,
    DecayingStep,
    Langevin,
    MALA,
    Normal,
    SVGD,
)
from equistein.training import (
    AbstractInitial,
    AbstractNegatives,
    Blurred,
    Box,
    check_classes,
    ContrastiveDivergence,
    CrossEntropy,
    Normals,
    Persistent,
    Reweighted,
    SamplingGenerator,
    SquaredError,
)

_MAX_COPIES = 120  # elements to average over: the permutations of five labels
_NUM_CENTERS = 12  # of the histogram that the kernel of a graph network sees
_BYTES = 32  # of a number of a particle, with its gradient and what a step needs
_BATCHES, _EPOCHS = 500, 60  # at least


@check_arguments
def energy_for(
    key: AnyKey, group: AbstractGroup, data: Particles, *,
    num_classes: int | None = None, widths: Sequence[int] = (128, 128, 128),
    temperature: float = 1.0,
) -> AbstractEnergy:  # fmt: skip
    """Return an energy with the symmetry of `group`, scaled to the data, untrained.

    Its network is an MLP on invariant features for a continuous group, the orbit mean
    of an MLP for a finite one, and a plain MLP for the trivial one. With a number of
    classes it is a `JointEnergy`; `widths` are the units of each hidden layer, and the
    points are of this temperature.
    """
    if num_classes is not None and num_classes < 2:
        raise ValueError(f"`num_classes` must be at least 2, but got {num_classes}.")
    group.check_shape(data.shape[1:])
    features = _features(group, data)
    num = jax.eval_shape(features, data[0]).size
    make = eqx.filter_jit(MLP)  # one program, not one for each layer
    network = make(num, out_size=num_classes, widths=tuple(widths), key=as_keys(key))
    if group.order is None or group.order == 1:
        network = FeatureNetwork(network, features, data)
    else:  # averaged over rotated points, which must fit its scale as well
        orbits = jax.jit(jax.vmap(group.orbit))(data).reshape(-1, *data.shape[1:])
        network = Symmetrized(FeatureNetwork(network, features, orbits), group)
    if num_classes is not None:
        return JointEnergy(network, temperature)
    energy = PlainEnergy(network)
    return energy if temperature == 1 else TemperedEnergy(energy, temperature)


def _features(group: AbstractGroup, data: Particles) -> AbstractFeatures:
    # Features are smoothed well below the size of the data, whatever its unit.
    spread = float(np.max(np.abs(np.asarray(data) - np.asarray(data[:1]))))
    size = max(2.5e-3 * spread, 1e-30)
    # A power of two, so that other data rarely need other compiled code.
    epsilon = 2.0 ** round(math.log2(size))
    if isinstance(group, PointCloud):
        if not group.reflections:
            raise ValueError(
                "No features tell mirror images apart: use a `group` with reflections."
            )
        # Some shapes share all distances; the sums over a particle tell them apart.
        distances = SortedDistances(group.species, epsilon)
        return Concatenated(distances, SortedRowSums(group.species, epsilon))
    if isinstance(group, Orthogonal | SpecialOrthogonal) and data.ndim == 2:
        return Radius(epsilon)
    if isinstance(group, ImageRotations) or (group.order or math.inf) > _MAX_COPIES:
        raise ValueError(
            f"No invariant features are known for {group} and points of shape "
            f"{data.shape[1:]}, and no mean is taken over more than {_MAX_COPIES} "
            "elements: give `es.fit` PlainEnergy(network) of this symmetry. Rotations "
            "are of one vector, several are a point cloud; images have `image_model`."
        )
    return Coordinates()


def num_classes_of(labels: Any) -> int | None:
    """Return the number of classes, if the labels are some."""
    if labels is None or not np.issubdtype(np.asarray(labels).dtype, np.integer):
        return None
    return int(check_classes(np.asarray(labels)).max()) + 1


def features_of(energy: AbstractEnergy, **options: Any) -> AbstractFeatures:
    """Return the features in which samples of an energy are compared with data.

    Those of its network, a smooth histogram of distances for a graph network (with
    `options` of `PairHistogram`), and otherwise the coordinates.
    """
    if isinstance(energy, TemperedEnergy | ConditionalEnergy):
        return features_of(energy.energy, **options)
    if isinstance(energy, SummedEnergy):
        return features_of(energy.energies[-1], **options)
    if isinstance(energy, LinearEnergy):
        whole = energy.features
        first = whole.parts[0] if isinstance(whole, Concatenated) else whole
        if not isinstance(first, PairBasis):
            return Coordinates()
        return first if first.cloud else SortedDistances(first.species, first.epsilon)
    network = getattr(energy, "network", None)
    if isinstance(network, EGNN):
        reach = float(network.reach)
        epsilon = 1e-3 * reach
        return PairHistogram(network.species, reach=reach, epsilon=epsilon, **options)
    return network.features if isinstance(network, FeatureNetwork) else Coordinates()


@check_arguments
def kernel_for(
    energy: AbstractEnergy, shape: tuple[int, ...], bandwidth: float | None = None
) -> AbstractKernel:
    """Return the kernel that makes SVGD respect the symmetry of an energy.

    For points of this shape: `Equivariant` for a finite group, `Pullback` along the
    invariant features of its network (for a graph network a smooth histogram of the
    distances), and plain `RBF` without symmetry. Without a bandwidth it is the median.
    """
    base, group = RBF(bandwidth), energy.group(shape)
    group.check_shape(shape)
    if group.order == 1:
        return base
    if group.order is not None:
        return Equivariant(base, group)
    features = features_of(energy, num_centers=_NUM_CENTERS)
    if isinstance(features, Concatenated):
        features = features.parts[0]
    if isinstance(features, Coordinates):  # not invariant under a group
        raise ValueError(
            f"No kernel is known for the symmetry {group} of {type(energy).__name__}: "
            "give the sampler of the negatives a kernel, as Pullback(RBF(), features)."
        )
    return Pullback(base, features)


@check_arguments
def contrastive_model(
    energy: AbstractEnergy, data: Particles, labels: Any = None,
    settings: ContrastiveSettings | None = None,
) -> Model:  # fmt: skip
    """Return an energy with its contrastive training.

    Labels are the class of each point, -1 where it is unknown, for a `JointEnergy`, or
    its known energy, NaN where it is unknown. The default settings suit small particle
    systems.
    """
    settings = settings or ContrastiveSettings()
    shape, group = data.shape[1:], energy.group(data.shape[1:])
    numbers = settings.num_particles * (math.prod(shape) + sum(settings.widths))
    check_memory(
        f"Training with {settings.num_particles} particles",
        _BYTES * (numbers + math.prod(shape) * (settings.buffer_size or 0)),
        "take a smaller `num_particles`, `widths` or `buffer_size`",
    )
    initial: AbstractInitial = Box(data, group)
    if settings.initial == "normals":
        initial = Normals(data, group)
        if labels is not None and isinstance(energy, JointEnergy):
            num_classes = energy.num_classes(shape) or 1
            initial = Normals(data, group, jnp.asarray(labels), num_classes)
    negatives, sampler = _samplers(energy, initial, settings)
    generator = SamplingGenerator(
        sampler, initial, num_steps=settings.sample_steps,
        num_at_once=settings.sample_at_once,
    )  # fmt: skip
    objective: Any = ContrastiveDivergence(negatives, settings.regularization)
    weight = settings.label_weight
    known, classes = labels is not None and weight > 0, num_classes_of(labels)
    if known and classes:
        objective = objective + weight * CrossEntropy()
    if settings.data_noise:
        objective = Blurred(objective, settings.data_noise)
    if known and not classes:  # known energies are those of the points themselves
        objective = objective + weight * SquaredError()
    batches = settings.epoch_batches or max(1, len(data) // settings.batch_size)
    num = max(_BATCHES, _EPOCHS * batches)
    return model_of(settings, energy, objective, generator, num, batches)


def _samplers(
    energy: AbstractEnergy, initial: AbstractInitial, settings: ContrastiveSettings
) -> tuple[AbstractNegatives, AbstractSampler]:
    """Return the negatives, and what draws new samples."""
    shape = initial.center.shape
    group = energy.group(shape)
    langevin = setting_or(settings.langevin_step_size, (0.01 * initial.reach) ** 2)
    names = ("num_particles", "num_steps", "reset_probability")
    options: dict[str, Any] = {name: getattr(settings, name) for name in names}
    if settings.negatives == "reweighted":
        chains = MALA(langevin, score_clip=settings.score_clip, project=group.project)
        reference = Normal(initial.center, initial.reach / 2, group)
        annealed = AnnealedSMC(chains, reference=reference, num_runs=1, num_moves=5)
        return Reweighted(chains, reference, **options), annealed
    kernel = None
    if settings.kernel == "plain":
        kernel = RBF(settings.bandwidth)
    elif settings.kernel == "equivariant":
        kernel = kernel_for(energy, shape, settings.bandwidth)
    stein = setting_or(settings.stein_step_size, langevin)
    clip = setting_or(settings.score_clip, 450 / initial.reach)

    def sampler(step: Any) -> AbstractSampler:
        step = 0.0 if settings.langevin_step_size == 0 else step
        more: dict[str, Any] = {"score_clip": clip, "project": group.project}
        if kernel is None:
            return Langevin(step, **more)
        return SVGD(kernel, None, factor=stein, langevin=step, **more)

    tail = max(1, round(settings.cooling_fraction * settings.sample_steps))
    decaying = DecayingStep(langevin, settings.sample_steps - tail, tail)
    negatives = Persistent(
        sampler(langevin), initial, buffer_size=settings.buffer_size,
        reset_to_data=settings.reset_to_data, **options,
    )  # fmt: skip
    return negatives, sampler(decaying)
