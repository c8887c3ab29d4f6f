"""SVGD and other samplers; `run`, which drives them; `advance`, without checks."""

from equistein.samplers._annealed_smc import (
    AnnealedSMC as AnnealedSMC,
    SMCInfo as SMCInfo,
    SMCState as SMCState,
)
from equistein.samplers._base import (
    AbstractSampler as AbstractSampler,
    shard_samplers as shard_samplers,
    ShardedSampler as ShardedSampler,
)
from equistein.samplers._blackjax import (
    as_blackjax as as_blackjax,
    BlackJAXChains as BlackJAXChains,
    from_blackjax as from_blackjax,
)
from equistein.samplers._geometric_path import (
    AbstractReference as AbstractReference,
    FittedNormal as FittedNormal,
    GeometricPath as GeometricPath,
    Normal as Normal,
    PathWalker as PathWalker,
)
from equistein.samplers._ladder import (
    systematic_resampling as systematic_resampling,
    temperatures as temperatures,
)
from equistein.samplers._langevin import (
    Langevin as Langevin,
    LangevinInfo as LangevinInfo,
    LangevinState as LangevinState,
)
from equistein.samplers._markov_chains import (
    AbstractMarkovChains as AbstractMarkovChains,
    ChainInfo as ChainInfo,
    ChainParameters as ChainParameters,
    ChainState as ChainState,
)
from equistein.samplers._metropolis import HMC as HMC, MALA as MALA
from equistein.samplers._parallel_tempering import (
    ParallelTempering as ParallelTempering,
    TemperingInfo as TemperingInfo,
    TemperingState as TemperingState,
)
from equistein.samplers._run import run as run
from equistein.samplers._samples import (
    EvaluationFailed as EvaluationFailed,
    load_samples as load_samples,
    NonFiniteError as NonFiniteError,
    RunInterrupted as RunInterrupted,
    Samples as Samples,
)
from equistein.samplers._scan import advance as advance, visit as visit
from equistein.samplers._steps import (
    clip_norms as clip_norms,
    DecayingStep as DecayingStep,
    Geometric as Geometric,
    identity as identity,
    thermal as thermal,
)
from equistein.samplers._svgd import (
    annealed_svgd as annealed_svgd,
    canonical_optimizer as canonical_optimizer,
    SVGD as SVGD,
    SVGDInfo as SVGDInfo,
    SVGDState as SVGDState,
    vector_adam as vector_adam,
)
from equistein.samplers._validation import check_signature as check_signature
from equistein.samplers._warnings import (
    collect_warnings as collect_warnings,
    SamplingWarning as SamplingWarning,
    split_r_hat as split_r_hat,
    suppress_warnings as suppress_warnings,
    warn_of_samples as warn_of_samples,
)
