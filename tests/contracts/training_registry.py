"""The parts of a fit, all small, and energies that they are for."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax

from equistein.diffusion import (
    DenoisingScoreMatching,
    DiffusionSteps,
    NoiseConditionalScoreMatching,
    NoiseEnergy,
    ReverseDiffusion,
    ScoreMatching,
    StepSizes,
)
from equistein.energies import JointEnergy, KnownEnergy, PlainEnergy
from equistein.groups import Cyclic, PointCloud, Trivial
from equistein.kernels import RBF
from equistein.networks import MLP, NoiseMLP
from equistein.samplers import Langevin, MALA, Normal, SVGD
from equistein.training import (
    Batch,
    Blurred,
    Box,
    ContrastiveDivergence,
    CrossEntropy,
    DataPoints,
    Fitted,
    ForceMatching,
    FromData,
    Normals,
    Persistent,
    Reweighted,
    SamplesOf,
    SamplingGenerator,
    SquaredError,
)

NUM, SHAPE = 8, (3, 2)


def points(dtype=None):
    return jr.normal(jr.key(0), (NUM, *SHAPE), dtype or jnp.zeros(()).dtype)


def plain():
    return PlainEnergy(MLP(6, widths=(4,), key=jr.key(1)))


def joint():
    return JointEnergy(MLP(6, widths=(4,), out_size=2, key=jr.key(1)))


def levels():
    return NoiseEnergy(NoiseMLP(6, widths=(4,), key=jr.key(1)), points(), 0.3)


SGD = optax.sgd(0.1)  # closures are compiled anew, the same ones are not


def svgd():
    step = jnp.full((), 0.1, points().dtype)
    return SVGD(RBF(1.0), SGD, langevin=step)


FEW = {"num_particles": 4, "num_steps": 2, "reset_probability": 0.5}
NEGATIVES = {  # adding negatives to the library means adding a line here
    "persistent": lambda: Persistent(svgd(), start(), **FEW),
    "reset to data": lambda: Persistent(
        Langevin(0.1), start(), reset_to_data=0.5, **FEW
    ),
    "until still": lambda: Persistent(svgd(), start(), tolerance=0.1, **FEW),
    "repelled": lambda: Persistent(SVGD(RBF(1.0), SGD), start(), repel=True, **FEW),
    "from data": lambda: FromData(Langevin(0.1), num_steps=2),
    "reweighted": lambda: Reweighted(
        MALA(0.1), Normal(jnp.zeros(SHAPE), 1.0), num_particles=4, num_steps=2
    ),
    "buffer": lambda: Persistent(svgd(), start(), buffer_size=9, **FEW),
}


def start():
    return Box(points(), Trivial())


def diffusion_steps():
    sizes = StepSizes(*(jnp.full((), x, points().dtype) for x in (0.1, 0.01, 50.0)))
    return DiffusionSteps(sizes, 4, RBF(1.0))


def divergence():
    return ContrastiveDivergence(NEGATIVES["persistent"]())


CLASSES, ENERGIES = jnp.arange(NUM) % 2, jnp.linspace(-1.0, 1.0, NUM)
OBJECTIVES = {  # adding an objective to the library means adding a line here
    "contrastive divergence": (divergence, plain, None),
    "cross entropy": (CrossEntropy, joint, CLASSES),
    "squared error": (SquaredError, plain, ENERGIES),
    "denoising": (lambda: DenoisingScoreMatching(0.3), plain, None),
    "denoising over levels": (lambda: DenoisingScoreMatching(0.3, 2.0), plain, None),
    "score matching": (ScoreMatching, plain, None),
    "force matching": (lambda: ForceMatching(-points()), plain, None),
    "blurred": (lambda: Blurred(divergence(), 0.1), plain, None),
    "sum": (lambda: divergence() + 0.1 * CrossEntropy(), joint, CLASSES),
    "all levels": (NoiseConditionalScoreMatching, levels, None),
}  # fmt: skip


def reverse():
    return ReverseDiffusion(diffusion_steps(), SHAPE, 3)


GENERATORS = {  # a generator, an energy, and the conditions that it knows
    "sampler": (
        lambda: SamplingGenerator(svgd(), start(), num_steps=3, num_at_once=3),
        plain, [None],
    ),
    "sampler of classes": (
        lambda: SamplingGenerator(svgd(), start(), num_steps=3, num_at_once=3),
        joint, [None, 0, 1],
    ),
    "reverse diffusion": (reverse, levels, [None]),
}  # fmt: skip
STARTS = {  # adding a start to the library means adding a line here
    "box": lambda group: Box(data_of(group), group),
    "data": lambda group: DataPoints(data_of(group), group),
    "normals": lambda group: Normals(data_of(group), group),
    "samples": lambda group: SamplesOf(fitted_of(group)),
    "normals of classes": lambda group: Normals(data_of(group), group, CLASSES, 2),
}
GROUPS = {"none": Trivial(), "cyclic": Cyclic(4), "cloud": PointCloud("COO", 2)}


def data_of(group):
    return jax.vmap(group.project)(points() + 1.0)


def fitted_of(group):
    box = Box(data_of(group), group)
    generator = SamplingGenerator(
        Langevin(1e-3, project=group.project), box, num_steps=2
    )
    reference = Normal(box.center, 1.0, group)
    known = KnownEnergy(reference.log_density, group)
    return Fitted(known, {}, [], generator, reference)


def batch_of(labels=None, dtype=None):
    return Batch(points(dtype), labels, jnp.arange(NUM))


def arrays(tree):
    return eqx.filter(tree, eqx.is_array)
