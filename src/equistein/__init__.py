"""Sample and learn probability densities that have a symmetry."""

from equistein import (
    data as data,
    diagnostics as diagnostics,
    diffusion as diffusion,
    energies as energies,
    features as features,
    groups as groups,
    kernels as kernels,
    metrics as metrics,
    models as models,
    molecules as molecules,
    negatives as negatives,
    networks as networks,
    objectives as objectives,
    posteriors as posteriors,
    samplers as samplers,
    targets as targets,
    training as training,
)
from equistein._devices import device_mesh as device_mesh
from equistein.groups import (
    check_invariance as check_invariance,
    InvarianceError as InvarianceError,
)
from equistein.metrics import reweight as reweight, score_against as score_against
from equistein.models import load as load, Model as Model
from equistein.posteriors import (
    from_numpyro as from_numpyro,
    Parameters as Parameters,
    Posterior as Posterior,
    relabel as relabel,
    to_arviz as to_arviz,
)
from equistein.samplers import (
    AnnealedSMC as AnnealedSMC,
    as_blackjax as as_blackjax,
    from_blackjax as from_blackjax,
    Langevin as Langevin,
    MALA as MALA,
    NonFiniteError as NonFiniteError,
    ParallelTempering as ParallelTempering,
    run as run,
    RunInterrupted as RunInterrupted,
    Samples as Samples,
    SVGD as SVGD,
    vector_adam as vector_adam,
)
from equistein.training import (
    Clamp as Clamp,
    DivergenceError as DivergenceError,
    fit as fit,
    Fitted as Fitted,
    ModelFileError as ModelFileError,
)
