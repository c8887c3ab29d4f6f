"""SVGD and its variants, the one loop `advance`, and the one driver `run`."""

from equistein.samplers._annealed_smc import (
    AnnealedSMC as AnnealedSMC,
    SMCInfo as SMCInfo,
    SMCState as SMCState,
)
from equistein.samplers._annealed_svgd import annealed_svgd as annealed_svgd
from equistein.samplers._annealing import (
    Geometric as Geometric,
    Power as Power,
    thermal as thermal,
)
from equistein.samplers._base import AbstractSampler as AbstractSampler
from equistein.samplers._blackjax import (
    as_blackjax as as_blackjax,
    SamplingAlgorithm as SamplingAlgorithm,
)
from equistein.samplers._blackjax_chains import BlackJAXChains as BlackJAXChains
from equistein.samplers._from_blackjax import from_blackjax as from_blackjax
from equistein.samplers._geometric_path import (
    GeometricPath as GeometricPath,
    PathWalker as PathWalker,
)
from equistein.samplers._langevin import (
    Langevin as Langevin,
    LangevinInfo as LangevinInfo,
    LangevinState as LangevinState,
)
from equistein.samplers._mala import MALA as MALA
from equistein.samplers._markov_chains import (
    AbstractMarkovChains as AbstractMarkovChains,
    ChainInfo as ChainInfo,
    ChainParameters as ChainParameters,
    ChainState as ChainState,
)
from equistein.samplers._minibatched import Minibatched as Minibatched
from equistein.samplers._normal import Normal as Normal
from equistein.samplers._optimizers import canonical_optimizer as canonical_optimizer
from equistein.samplers._parallel_tempering import (
    ParallelTempering as ParallelTempering,
    TemperingInfo as TemperingInfo,
    TemperingState as TemperingState,
)
from equistein.samplers._reference import AbstractReference as AbstractReference
from equistein.samplers._run import run as run
from equistein.samplers._run_errors import (
    EvaluationFailed as EvaluationFailed,
    NonFiniteError as NonFiniteError,
    RunInterrupted as RunInterrupted,
)
from equistein.samplers._samples import (
    load_samples as load_samples,
    Samples as Samples,
)
from equistein.samplers._scan import advance as advance
from equistein.samplers._scores import clipped as clipped, everywhere as everywhere
from equistein.samplers._split_r_hat import split_r_hat as split_r_hat
from equistein.samplers._split_rows import on_mesh as on_mesh, SplitRows as SplitRows
from equistein.samplers._svgd import (
    SVGD as SVGD,
    SVGDInfo as SVGDInfo,
    SVGDState as SVGDState,
)
from equistein.samplers._systematic_resampling import (
    systematic_resampling as systematic_resampling,
)
from equistein.samplers._thinning import thin as thin
from equistein.samplers._vector_adam import (
    scale_by_vector_adam as scale_by_vector_adam,
    vector_adam as vector_adam,
)
from equistein.samplers._warnings import (
    collect_warnings as collect_warnings,
    SamplingWarning as SamplingWarning,
    suppress_warnings as suppress_warnings,
    warn_of_samples as warn_of_samples,
)
