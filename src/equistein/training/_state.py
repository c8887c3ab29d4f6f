"""What training carries from batch to batch, and what it tells of each."""

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int, PyTree, UInt32

from equistein._types import Particles, Scalar
from equistein.energies import AbstractEnergy

Labels = Int[Array, " point"] | Float[Array, " point"] | None


class TrainState(eqx.Module):
    """All that training carries from one epoch to the next.

    Attributes:
        energy: The energy that is trained.
        average: The running mean of its weights.
        opt_state: The optimizer's state.
        particles: The persistent particles, or the replay buffer.
        key: The words of the key that the randomness of each epoch comes from.
        epoch: The number of epochs done.
        update: The number of updates done.
        scale: What all steps are multiplied with: halved by each roll-back.
    """

    energy: AbstractEnergy
    average: AbstractEnergy
    opt_state: PyTree
    particles: Particles
    key: UInt32[Array, "..."]
    epoch: Int[Array, ""]
    update: Int[Array, ""]
    scale: Scalar


class BatchInfo(eqx.Module):
    """What one batch was like.

    Energies are means over the batch of data (positive) and the particles (negative);
    norms are root mean squares, that of the scores over an eighth of the particles.
    What a fit has no use for is None.
    """

    loss: Scalar
    positive_energy: Scalar
    negative_energy: Scalar | None
    largest_energy: Scalar
    score_norm: Scalar | None
    displacement: Scalar | None
    sampler_steps: Scalar | None
    supervised_loss: Scalar | None
    accuracy: Scalar | None
    num_labels: Int[Array, ""] | None
    score_matching_loss: Scalar | None
    is_finite: Bool[Array, ""]
