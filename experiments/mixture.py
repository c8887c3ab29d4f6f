"""`mixture`: components of a mixture whose labels mean nothing."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from equistein.kernels import Equivariant, RBF
from equistein.plotting import error_bars
from equistein.runs import FLOOR, Outcome
from experiments._engine import (
    Entry,
    EXACT,
    Experiment,
    Figure,
    has_package,
    Key,
    Particles,
    Shown,
    Stage,
    Trial,
)
from experiments._figures import histograms
from experiments._mixture_samplers import (
    Found,
    MixtureConfig,
    NUM_FLOORS,
    Samplers,
)


def entries(config: MixtureConfig) -> list[Entry]:
    """Return the samplers, with the floor first."""
    known = Samplers(config, config.num_components)
    of_each = {k: Samplers(config, k) for k in config.evidence_components}

    def floor(trial: Trial) -> Outcome:
        num = min(config.num_draws, config.num_reference)
        return known.outcome(Found(known.exact(trial.index, num), 0.0, {}))

    def evidence(trial: Trial, name: str, found: Found) -> dict[str, Any]:
        """Return the log evidence and its error for each number of components."""
        rows = []
        for k, samplers in of_each.items():
            numbers = found.numbers
            if k != config.num_components:
                start = samplers.start(trial.key(0))
                numbers = getattr(samplers, name)(trial.key(k), start).numbers
            rows.append([numbers["log_evidence"], numbers["log_evidence_error"]])
        return {"evidence": rows}

    def stage(name: str, sample: Callable[[Key, Particles], Found]) -> Stage:
        def of_trial(trial: Trial) -> Outcome:
            found = sample(trial.key(1), known.start(trial.key(0)))
            measured = name in ("tempering", "smc")
            swept = evidence(trial, name, found) if measured else {}
            return known.outcome(found, swept)

        return of_trial

    few = config.num_particles
    copies = math.factorial(config.num_components)
    many = max(few, min(few * copies, config.num_draws))
    plain = lambda pilot: RBF()
    equivariant = lambda pilot: Equivariant(RBF(), pilot.group)
    partial = functools.partial
    samplers = {
        "tempering": (known.tempering, _TEMPERING),
        "smc": (known.smc, _SMC),
        "nuts": (known.nuts, _NUTS),
        "e-svgd": (partial(known.svgd, equivariant, few), _E_SVGD),
        "svgd": (partial(known.svgd, plain, few), _SVGD),
        "svgd-many": (partial(known.svgd, plain, many), _MANY),
    }
    if not has_package("blackjax"):
        del samplers["nuts"]
    return [
        Entry(FLOOR, floor, label="as many exact samples", num_seeds=NUM_FLOORS),
        *(
            Entry(name, stage(name, sample), note)
            for name, (sample, note) in samplers.items()
        ),
    ]


_TEMPERING = (
    "The default: parallel tempering of MALA from a density that is normal in "
    "standardized coordinates. Its chains go through all copies of a mode."
)
_SMC = "Annealed sequential Monte Carlo of MALA along the same path."
_NUTS = (
    "BlackJAX's NUTS with its own warm-up. Its chains stay in the copies near their "
    "start; where they stay in modes that are no copies, their cost is a lower bound."
)
_E_SVGD = (
    "SVGD with the equivariant kernel and Langevin noise: particles repel across all "
    "copies. Expanded, each stands for its whole orbit."
)
_SVGD = "Vanilla SVGD with the same noise, of as many particles."
_MANY = "The same with as many particles as all copies together, or `num_draws`."

# Neal (1999), Erroneous results in "Marginal likelihood from the Gibbs output". Chib
# (1995) has -224.138: his estimate lacks most of the factor 3! of the labels.
_PUBLISHED = {3: -226.791}


def _draw_evidence(config: MixtureConfig, shown: Shown) -> Any | None:
    places, series, colors = np.array(config.evidence_components), {}, {}
    for entry, outcome in shown:
        if "evidence" in outcome.arrays:
            values, errors = np.moveaxis(outcome.arrays["evidence"], -1, 0)
            error = np.sqrt(np.mean(errors**2, axis=0) / len(errors))
            series[entry.label] = places, values.mean(axis=0), error
            colors[entry.label] = entry.color
    if not series:
        return None
    known = {k: value for k, value in _PUBLISHED.items() if k in places}
    if known:
        where, values = np.array(list(known)), np.array(list(known.values()))
        series["Neal (1999)"] = where, values, np.full(len(known), np.nan)
        colors["Neal (1999)"] = EXACT
    return error_bars(
        series, "log evidence", x_label="number of components", colors=colors
    )


MIXTURE = Experiment(
    name="mixture",
    figure="beyond the paper",
    headlines=("energy_distance_ratio", "log_evidence", "evaluations_to_1000"),
    summary="the velocities of 82 galaxies as a mixture whose labels can be exchanged: "
    "tempering, sequential Monte Carlo, NUTS and SVGD, and the evidence",
    presets={
        "smoke": MixtureConfig(
            num_seeds=1, num_components=2, evidence_components=(2,), num_draws=16,
            num_reference=16, num_temperatures=3, num_chains=8, num_steps=32, every=4,
            num_smc_particles=16, num_smc_runs=4, num_moves=1, ess_fraction=0.2,
            nuts_steps=8, num_particles=16, svgd_steps=8,
        ),
        "quick": MixtureConfig(),
        "paper": MixtureConfig(
            num_seeds=10, evidence_components=(2, 3, 4, 5, 6),
            num_chains=64, num_steps=10_000, every=50, num_smc_particles=8_192,
            num_moves=40, nuts_steps=2_000, svgd_steps=5_000,
        ),
    },
    entries=entries,
    figures=(
        histograms(
            "marginals",
            "first_component",
            "mean of the first component",
            line_of=FLOOR,
            caption="Mean of the first component, as samplers label it: of a single "
            "chain in each seed where there are chains, else of all draws. All "
            "components have the same marginal, the line; a chain that does not go "
            "through all copies shows another.",
        ),
        Figure(
            "evidence",
            _draw_evidence,
            "The log evidence over the number of components, with the stated standard "
            "errors of the mean over the seeds, beside the published value.",
        ),
    ),
)  # fmt: skip
