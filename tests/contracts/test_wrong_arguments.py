"""Whatever a public function is given: an error of ours that names it, or an answer."""

import pathlib
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from call_registry import CALLS
from hypothesis import given, HealthCheck, settings, strategies

import equistein as es

SOURCE = pathlib.Path(es.__file__).parent
PLACES = [(name, argument) for name in CALLS for argument in CALLS[name][1]]

NUMBERS = strategies.one_of(
    strategies.integers(-3, 3), strategies.floats(), strategies.booleans(),
    strategies.sampled_from([10**13, 2**31, 1e300, np.int64(-1), np.float32(np.nan)]),
)  # fmt: skip
SHAPES = strategies.lists(strategies.sampled_from([0, 1, 2, 3, 6]), max_size=4)


@strategies.composite
def arrays(draw):
    dtype = draw(strategies.sampled_from([float, int, bool]))
    array = np.ones(draw(SHAPES), dtype)
    fill = draw(strategies.sampled_from([1.0, -1.0, np.nan, np.inf, 1e30]))
    if dtype is float:
        array = array * fill
    return jnp.asarray(array)


WRONG = strategies.one_of(
    strategies.none(), strategies.text(max_size=4), NUMBERS, arrays(),
    strategies.lists(NUMBERS, max_size=3), strategies.just({"a": 1}),
    strategies.sampled_from(
        [object(), np.array(["a", "b"]), es.groups.Cyclic, es.groups.Cyclic(5),
         lambda: 1, es.kernels.RBF(1.0)]
    ),
)  # fmt: skip


def raised_by_us(error):
    """Whether an error is one that the package raises itself."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return pathlib.Path(last.filename).is_relative_to(SOURCE) and (
        last.line.startswith("raise") or not isinstance(error, ValueError | TypeError)
    )


def is_a_number(result):
    """Whether no number of a result is NaN, which would say nothing."""
    for leaf in jax.tree.leaves(result):
        if isinstance(leaf, jax.Array | np.ndarray) and leaf.dtype.kind == "f":
            if np.any(np.isnan(np.asarray(leaf))):
                return False
    return True


def verdict(function, arguments, argument, value):
    """Return what a call with one wrong argument comes to, None if all is well."""
    try:
        result = function(**arguments | {argument: value})
    except (es.NonFiniteError, es.EvaluationFailed):
        return None
    except Exception as error:
        if isinstance(error, ValueError) and raised_by_us(error):
            return None
        return f"{type(error).__name__}: {error}"
    given = arguments | {argument: value}
    if is_a_number(result) or not is_a_number(given):  # a prediction of NaN may be
        return None
    return "the answer is NaN"


NAN, INF, MIXED = float("nan"), float("inf"), es.groups.Cyclic(5)
REFUSED = {  # values of an argument that are refused by its name
    "es.groups.Cyclic": {"order": [0, -1, 2.0, True, "4"]},
    "es.groups.Dihedral": {"corners": [0, True]},
    "es.groups.SpecialOrthogonal": {"dim": [0, 2.0]},
    "es.groups.Orthogonal": {"dim": [0, 2.0]},
    "es.groups.Permutations": {"num": [0, True]},
    "es.groups.Signs": {"num": [0, "4"]},
    "es.groups.PointCloud": {"species": [(), 3, None], "dim": [0, 2.0]},
    "es.groups.Molecule": {"topology": [3, None, ((), (8, 1)), (((0, 5),), (8, 1))]},
    "es.groups.TorusTranslations": {"periods": [[0.0, 1.0], [INF], [], 3.0, "ab"]},
    "es.features.Periodic": {"periods": [[0.0, 1.0], [-1.0], [INF], [], 3.0, "ab"]},
    "es.features.Radius": {"epsilon": [0.0, -1.0]},
    "es.features.SortedDistances": {"species": [(0,), (), 4, 1.5], "epsilon": [0.0]},
    "es.features.SortedRowSums": {"species": [(0,), (), 4], "epsilon": [0.0]},
    "es.features.PairHistogram": {
        "species": [(0,), 4], "reach": [0.0, -8.0, INF, NAN], "num_centers": [1],
        "width": [0.0, NAN], "epsilon": [0.0],
    },
    "es.kernels.RBF": {
        "bandwidth": [0, -1.0, NAN, INF, np.float64(-2.0), jnp.zeros(()), jnp.ones(2)]
    },
    "es.kernels.IMQ": {"bandwidth": [0, -1.0, NAN, jnp.array(3)]},
    "es.kernels.Median": {
        "factor": [0, -1], "every": [0, -1], "max_particles": [0, -1]
    },
    "es.kernels.Equivariant": {"base": [0.2], "group": [4]},
    "es.kernels.Invariant": {"base": [0.2], "group": [4]},
    "es.kernels.Pullback": {"base": [0.2], "features": [MIXED]},
    "es.kernels.Gradient": {"base": [0.2], "features": [MIXED]},
    "es.kernels.Moments": {"features": [0.2], "ridge": [0.0, -1.0, NAN]},
    "es.samplers.SVGD": {
        "kernel": ["rbf", es.kernels.RBF, lambda x, y: 1.0], "optimizer": [0.1],
        "score_clip": [0.0], "langevin": [-0.1],
    },
    "es.samplers.Langevin": {"step_size": [0.0, -0.1, NAN], "score_clip": [0.0]},
    "es.samplers.MALA": {
        "step_size": [0.0, -0.1, INF], "acceptance": [0.0, 1.0], "num_adapt": [-1],
        "score_clip": [0.0, -2.0],
    },
    "es.samplers.ParallelTempering": {
        "inner": [es.Langevin(0.1)], "num_temperatures": [1],
        "num_adapt": [0], "reference": [jnp.sum],
    },
    "es.samplers.AnnealedSMC": {
        "num_runs": [0], "num_moves": [0], "ess_fraction": [0.0, 1.0],
        "reference": [jnp.sum],
    },
    "es.samplers.temperatures": {
        "kelvin": [0.0, -1.0, NAN, 1200.0], "hottest": [300.0, INF], "num": [1, 2.0]
    },
    "es.samplers.Normal": {"scale": [0.0, -1.0, NAN, INF]},
    "es.samplers.Geometric": {"num_steps": [0], "start": [0.0, 2.0]},
    "es.training.adam": {
        "learning_rate": [0.0, NAN], "num_updates": [0], "gradient_clip": [INF, -1.0],
        "warm_up": [-1, 1.5], "factors": [{0: 0.5}, {3: 0.0}, {3: INF}],
    },
    "es.training.fit": {"num_epochs": [0, 2.0], "batch_size": [0, -1]},
    "es.training.Monitor": {"every": [0, -1, 2.0, True]},
    "es.training.Optimization": {
        "max_rollbacks": [-1, 1.0], "energy_limit": [0.0, NAN]
    },
    "es.training.SamplingGenerator": {
        "num_steps": [0], "num_at_once": [2.0], "sampler": [None]
    },
    "es.training.Reweighted": {
        "sampler": [None], "reference": [jnp.sum], "num_steps": [0],
        "ess_fraction": [0], "reset_probability": [1.5],
    },
    "es.negatives.Persistent": {
        "num_particles": [0, 2.0], "num_steps": [True], "tolerance": [0.0],
        "reset_probability": [1.5, NAN], "reset_to_data": [-0.1], "sampler": ["svgd"],
        "initial": [None], "repel": [True], "buffer_size": [3, 0, 12.0],
    },
    "es.negatives.FromData": {"num_steps": [0]},
    "es.objectives.ContrastiveDivergence": {
        "negatives": [None], "regularization": [-1.0, NAN, INF]
    },
    "es.objectives.DenoisingScoreMatching": {
        "sigma_min": [0.0, -1.0, NAN, INF], "sigma_max": [0.05]
    },
    "es.objectives.Blurred": {"noise": [0.0, -1.0, NAN, INF]},
    "es.diffusion.DiffusionSteps": {"temperature": [0.0]},
    "es.diffusion.HeunSteps": {"num_steps": [0]},
    "es.diffusion.ReverseDiffusion": {"ending": ["middle"]},
    "es.diffusion.NoiseEnergy": {"sigma_min": [0.0, -1.0, NAN, 100.0]},
    "es.networks.EGNN": {
        "species": ["C"], "width": [0], "depth": [0], "num_centers": [1],
        "reach": [0.0, NAN], "atomic_numbers": [(6, 8)],
    },
    "es.networks.SteerableConv": {
        "in_fields": [0, 2.0], "size": [0, -1], "stride": [0], "image_size": [0, -1]
    },
    "es.networks.Symmetrized": {"symmetry": [es.groups.SpecialOrthogonal(2), 4]},
    "es.energies.TemperedEnergy": {"temperature": [0.0, -1.0, NAN, INF]},
    "es.energies.JointEnergy": {"temperature": [0.0, -1.0, NAN], "network": [jnp.sum]},
    "es.metrics.annealed_importance_sampling": {
        "num_particles": [1, 0], "num_steps": [0]
    },
    "es.metrics.total_variation": {
        "limits": [(0.0, INF), (-INF, 1.0), (NAN, 1.0), (1.0, 1.0)]
    },
    "es.metrics.typicality": {"labels": [jnp.full(6, -1), jnp.full(6, 3)]},
    "es.targets.DoubleWell": {
        "num_particles": [1], "dim": [0], "c": [0.0, -1.0], "temperature": [0.0]
    },
    "es.targets.LennardJones": {
        "num_particles": [1], "dim": [0], "pair_factor": [0.0], "minimum": [-1.0],
        "trap": [0.0, NAN], "temperature": [0.0, NAN], "container": [-2.0, NAN],
    },
    "es.targets.HardMixture": {
        "dim": [1, 51, True], "width_ratio": [0.9], "radius": [0.0, NAN],
    },
    "es.targets.RotatedGaussians": {
        "group": [es.groups.SpecialOrthogonal(2)], "mean": [((1.0, 0.0),)],
        "covariance": [((1.0,),), ((1.0, 2.0), (2.0, 1.0))],
    },
    "es.targets.Shells": {
        "radii": [(4.0, -8.0)], "widths": [0.0, (0.5, 0.5, 0.5)], "dim": [1, 2.0]
    },
    "es.bridges.from_energy_forces": {
        "temperature": [0, NAN, True], "container": [-1.0],
        "on_failure": ["ignore"], "function": [3],
    },
}  # fmt: skip


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", REFUSED)
def test_values_out_of_range_are_refused_by_name(name):
    function, arguments = CALLS[name]
    for argument, values in REFUSED[name].items():
        for value in values:
            with pytest.raises(ValueError, match=argument):
                function(**arguments | {argument: value})


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", CALLS)
def test_a_right_call_is_answered(name):
    function, arguments = CALLS[name]
    assert is_a_number(function(**arguments))


FEW = settings(
    derandomize=True, deadline=None, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("num", "num_raw"), [(100, 0), pytest.param(2_000, 50, marks=pytest.mark.slow)]
)
def test_wrong_arguments_are_named_or_answered(num, num_raw):
    raw = []

    @settings(FEW, max_examples=num)
    @given(place=strategies.sampled_from(PLACES), value=WRONG)
    def try_one(place, value):
        name, argument = place
        if (found := verdict(*CALLS[name], argument, value)) is not None:
            raw.append(f"{name}({argument}={value!r}): {found}")

    try_one()
    assert len(raw) <= num_raw, "\n".join(raw)


def test_a_raw_error_and_an_answer_that_is_nan_are_found():
    """The broken twins."""

    def careless(x):
        return jnp.sqrt(x + 0.0)

    assert "TypeError" in verdict(careless, {"x": 1.0}, "x", "much")
    assert verdict(careless, {"x": 1.0}, "x", -1.0) == "the answer is NaN"
    assert verdict(careless, {"x": 1.0}, "x", 4.0) is None
