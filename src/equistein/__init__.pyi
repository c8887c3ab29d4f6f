"""What `import equistein as es` offers."""

from . import (
    bridges as bridges,
    data as data,
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
from ._sharding import device_mesh as device_mesh
from .bridges import (
    from_ase as from_ase,
    from_energy_forces as from_energy_forces,
    from_openmm as from_openmm,
    to_ase as to_ase,
)
from .bridges.scikit_learn import EnergyModel as EnergyModel
from .data import enable_compilation_cache as enable_compilation_cache
from .groups import (
    check_invariance as check_invariance,
    InvarianceError as InvarianceError,
)
from .metrics import (
    check_coverage as check_coverage,
    reweight as reweight,
    score_against as score_against,
)
from .models import load as load, Model as Model
from .posteriors import (
    from_numpyro as from_numpyro,
    Parameters as Parameters,
    Posterior as Posterior,
    relabel as relabel,
    to_arviz as to_arviz,
)
from .samplers import (
    AnnealedSMC as AnnealedSMC,
    as_blackjax as as_blackjax,
    EvaluationFailed as EvaluationFailed,
    from_blackjax as from_blackjax,
    HMC as HMC,
    Langevin as Langevin,
    MALA as MALA,
    NonFiniteError as NonFiniteError,
    ParallelTempering as ParallelTempering,
    run as run,
    RunInterrupted as RunInterrupted,
    Samples as Samples,
    SamplingWarning as SamplingWarning,
    SVGD as SVGD,
    vector_adam as vector_adam,
)
from .training import (
    Clamp as Clamp,
    DivergenceError as DivergenceError,
    FileFormatError as FileFormatError,
    fit as fit,
    fit_linear as fit_linear,
    Fitted as Fitted,
)
