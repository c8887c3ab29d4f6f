"""A mixture whose modes differ in weight and width, too far apart for plain chains."""

import dataclasses

import numpy as np

from equistein.kernels import RBF
from equistein.runs import FLOOR, Outcome
from equistein.samplers import (
    AbstractSampler,
    from_blackjax,
    MALA,
    run,
    SVGD,
    vector_adam,
)
from experiments._engine import (
    Entry,
    Experiment,
    has_package,
    Key,
    Keys,
    Particles,
    sampled,
    side_by_side,
    Starts,
    Trial,
)
from experiments._figures import curves
from experiments._hard_mixture_samplers import (
    annealed,
    averaged,
    HardMixtureConfig,
    outcome_of,
    REACH,
    tempering,
    weights_of_modes,
)

_WIDE_REACH = 4.5
_WIDE_SEEDS = 3  # at most
_SVGD_STEP = 0.1
_NUM_FLOORS = 50


def entries(config: HardMixtureConfig) -> list[Entry]:
    """Return the samplers, with the floor first."""
    target, chain_steps = config.target, config.chain_steps
    num_starts = max(config.num_ladders, config.num_chains, config.num_svgd_particles)

    def start(key: Key) -> Particles:
        return target.start(key, num_starts)

    def floor(trial: Trial) -> Outcome:
        points = target.sample(trial.key(2), config.num_exact)
        return outcome_of(
            target, points, np.asarray(weights_of_modes(target, points)), 0.0
        )

    def chains(
        name: str, sampler: AbstractSampler, num: int, steps: int, after: int, note: str
    ) -> Entry:
        def sample(keys: Keys, start: Starts) -> list[Outcome]:
            samples = run(
                keys, sampler, target.log_density, start[:, :num], num_steps=steps,
                record_every=max(1, steps // 100), keep=num, progress=True,
            )  # fmt: skip
            return [averaged(target, samples[i], after) for i in range(len(keys))]

        return Entry(name, side_by_side(start, sample), note, together=True)

    half = chain_steps // 2
    svgd = SVGD(RBF(), vector_adam(_SVGD_STEP))
    listed = [
        Entry(FLOOR, floor, label="independent exact samples", num_seeds=_NUM_FLOORS),
        Entry(
            "tempering", sampled(start, tempering(config, REACH)), _TEMPERING,
            trains=True,
        ),
        Entry("smc", sampled(start, annealed(config)), _SMC, trains=True),
        Entry(
            "wide", sampled(start, tempering(config, _WIDE_REACH)), _WIDE, trains=True,
            num_seeds=min(_WIDE_SEEDS, config.num_seeds), label="tempering, wide",
        ),
        chains(
            "mala", MALA(0.5, num_adapt=half), config.num_chains, chain_steps, half,
            _MALA,
        ),
        chains(
            "svgd", svgd, config.num_svgd_particles, chain_steps, chain_steps - 1, _SVGD
        ),
    ]  # fmt: skip
    if has_package("blackjax"):
        import blackjax

        nuts, steps = from_blackjax(blackjax.nuts), config.nuts_steps
        listed.append(
            chains("nuts", nuts, config.num_ladders, steps, steps // 2, _NUTS)
        )
    return listed


_TEMPERING = (
    "Parallel tempering with MALA, from a reference whose points are as far from the "
    "origin as the modes are; the weights are averages over its chains after the "
    "adaptation. Short runs fail without a sign of it: hardly any point comes back in "
    "the narrowest and heaviest mode, so that its weight, log Z and the stated error "
    "are too small."
)
_SMC = (
    "Annealed sequential Monte Carlo with MALA. It does better than tempering where "
    "evaluations are few, and needs more of them for a small error. With few particles "
    "the stated error says so; with too few moves log Z is mostly too small."
)
_WIDE = (
    "The same tempering from a reference as wide as the circle of the modes, which is "
    "what one fitted to the start would be: as many steps do not suffice."
)
_MALA = (
    "Plain chains fail: from a wide start most fall into the widest and lightest "
    "mode, and none leaves the mode that it fell into."
)
_SVGD = (
    "Vanilla SVGD with the median rule: most of its particles are in the widest mode, "
    "and they collapse towards its center (the relative width is 1 when exact)."
)
_NUTS = "BlackJAX's NUTS, where it is installed, fails like MALA."

_QUICK = HardMixtureConfig()

HARD_MIXTURE = Experiment(
    name="hard-mixture",
    figure="beyond the paper",
    headlines=("weight_error", "weights_within_tolerance", "log_z_error"),
    summary="modes of several weights and widths, too far apart for plain chains: "
    "tempering and sequential Monte Carlo beside MALA, NUTS and SVGD",
    presets={
        "smoke": dataclasses.replace(
            _QUICK, num_seeds=1, dim=4, num_temperatures=4, num_ladders=8, num_steps=80,
            num_records=20, num_smc_particles=64, num_smc_runs=4, num_moves=2,
            ess_fraction=0.5, num_chains=8, chain_steps=20, nuts_steps=10,
            num_svgd_particles=16, num_exact=100,
        ),
        "quick": _QUICK,
        # A ladder forgets its mode in about 1 400 steps: 64 of them in 45 000 steps
        # give the heaviest weight with an error of .01. With 15 moves instead of 40,
        # particles of SMC lag behind the temperature, and log Z is too small.
        "paper": dataclasses.replace(
            _QUICK, num_seeds=20, num_steps=50_000, num_smc_particles=147_456,
            num_moves=40,
        ),
    },
    entries=entries,
    figures=(
        curves(
            "weight-error",
            "weight_error",
            "largest error of a weight",
            level="weight_error",
            x_label="score evaluations, all chains together",
            log_x=True,
            log_y=True,
            caption="The largest error of the weight of a mode against evaluations of "
            "the score, of all chains or particles together: mean and range over the "
            "seeds. Chains are averaged over, after their adaptation. The line is what "
            "independent exact samples reach, as many as the table says.",
        ),
    ),
)  # fmt: skip
