"""Posteriors of posteriordb and with several modes, by the defaults, beside NUTS."""

import dataclasses
import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein.metrics import summarize_chains
from equistein.runs import Metric, Outcome, seed_outcome, WARNING
from equistein.samplers import collect_warnings
from experiments._engine import (
    AbstractConfig,
    Entry,
    Experiment,
    Key,
    Trial,
)
from experiments._figures import boxes
from experiments._posteriordb_models import load_model, Model, MODELS, reference

_REACH = 2.0  # of the starts of NUTS, as of Stan

Known = Mapping[str, tuple[float, float]]
"""The mean and standard deviation of each number."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PosteriordbConfig(AbstractConfig):
    """Settings of `posteriordb`.

    Attributes:
        posteriors: Their names, DATA-MODEL, as in posteriordb where they are there.
        num_chains: The chains of `Posterior.run`.
        num_steps: The steps of its tempering.
        num_draws: The draws of a chain.
        reference_steps: The steps of the run that is the reference where posteriordb
            has no draws.
        nuts_chains: The chains of NumPyro's NUTS.
        nuts_draws: The steps of its warm-up, and then the draws of a chain.
    """

    num_seeds: int = 1
    posteriors: tuple[str, ...] = tuple(MODELS)
    num_chains: int = 32
    num_steps: int = 2_000
    num_draws: int = 200
    reference_steps: int = 6_000
    nuts_chains: int = 4
    nuts_draws: int = 1_000

    words: ClassVar[Mapping[str, Collection[str]]] = {"posteriors": tuple(MODELS)}


def entries(config: PosteriordbConfig) -> list[Entry]:
    """Return the posteriors, each sampled by `Posterior.run` and by NUTS."""
    return [
        Entry(name, functools.partial(_outcome, config, name), trains=True)
        for name in config.posteriors
    ]


def _outcome(config: PosteriordbConfig, name: str, trial: Trial) -> Outcome:
    model = load_model(name)
    known = reference(name, config.num_chains, config.reference_steps)
    key = trial.key(1)
    first, draws, texts, _ = _sampled(config, model, known, key, True)
    second, _, more, choice = _sampled(config, model, known, key, False)
    points, evaluations = _nuts(config, model, trial.key(2))
    theirs = _measured(known, model.numbers(points), evaluations)
    numbers: dict[str, Any] = {"chose_hmc": float(choice.startswith("HMC"))}
    for prefix, these in (("", first), ("direct_", second), ("nuts_", theirs)):
        ratio = {"over_nuts": these["draws"] / theirs["draws"]}
        numbers |= {f"{prefix}{key}": value for key, value in (these | ratio).items()}
    joined = np.stack(list(draws.values()), axis=-1)
    events = [{"event": WARNING, "text": t} for t in dict.fromkeys([*texts, *more])]
    return seed_outcome(numbers, joined.reshape(-1, joined.shape[-1]), events=events)


def _sampled(
    config: PosteriordbConfig, model: Model, known: Known, key: Key, evidence: bool
) -> tuple[dict[str, float], dict[str, np.ndarray], Collection[str], str]:
    """Return numbers, draws, warnings and the choice of a run of the posterior."""
    with collect_warnings() as texts:
        samples = model.posterior.run(
            key, num_chains=config.num_chains, num_steps=config.num_steps,
            num_draws=config.num_draws, evidence=evidence,
        )  # fmt: skip
    draws = model.numbers(samples.points)
    numbers = _measured(known, draws, samples.evaluations)
    return numbers | {"warned": float(bool(texts))}, draws, texts, samples.choice


def _measured(
    known: Known, draws: Mapping[str, np.ndarray], evaluations: int
) -> dict[str, float]:
    """Return how far means and deviations are from the reference, and what it took."""
    found = summarize_chains(np.stack(list(draws.values()), axis=-1))
    size = float(np.min(found["bulk"]))
    own = np.stack([np.ravel(draws[name]) for name in known])
    mean, sd = np.array(list(known.values())).T
    numbers = {
        "mean_error": np.max(np.abs(own.mean(axis=1) - mean) / sd),
        "sd_error": np.max(np.abs(own.std(axis=1) / sd - 1)),
        "r_hat": np.max(found["r_hat"]),
        "draws": 1_000 * size / evaluations,
        "evaluations": evaluations,
    }
    return {name: float(value) for name, value in numbers.items()}


def _nuts(config: PosteriordbConfig, model: Model, key: Key) -> tuple[Any, int]:
    """Return draws of NumPyro's NUTS, and its evaluations with the warm-up's."""
    from numpyro.infer import MCMC, NUTS

    dim = model.posterior.parameters.dim
    keys = jr.split(key, 3)
    start = jr.uniform(
        keys[0], (config.nuts_chains, dim), minval=-_REACH, maxval=_REACH
    )
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        mcmc = MCMC(
            NUTS(potential_fn=lambda z: -model.posterior.log_density(z)),
            num_warmup=config.nuts_draws, num_samples=config.nuts_draws,
            num_chains=config.nuts_chains, chain_method="vectorized",
            progress_bar=False,
        )  # fmt: skip
        spent, field = 0, "num_steps"
        mcmc.warmup(
            keys[1], init_params=start, extra_fields=(field,), collect_warmup=True
        )
        spent += int(np.sum(mcmc.get_extra_fields()[field]))
        mcmc.run(keys[2], extra_fields=(field,))
        spent += int(np.sum(mcmc.get_extra_fields()[field]))
    return jnp.asarray(mcmc.get_samples(group_by_chain=True)), spent


def _metrics(ways: Sequence[tuple[str, str]]) -> dict[str, Metric]:
    about = {
        "mean_error": ("largest error of a mean, in reference deviations", "lower"),
        "sd_error": ("largest relative error of a deviation", "lower"),
        "r_hat": ("largest R-hat", "lower"),
        "draws": ("effective draws for 1,000 evaluations", "higher"),
        "evaluations": ("evaluations of the score", ""),
        "warned": ("whether a warning came", ""),
        "over_nuts": ("effective draws an evaluation over those of NUTS", "higher"),
    }
    return {
        f"{prefix}{name}": Metric(f"{label}{suffix}", better)  # type: ignore
        for prefix, suffix in ways
        for name, (label, better) in about.items()
    }


POSTERIORDB = Experiment(
    name="posteriordb",
    figure="beyond the paper",
    summary="posteriors of posteriordb, and five with several modes, by the defaults: "
    "errors against references, and effective draws beside NumPyro's NUTS",
    presets={
        "smoke": PosteriordbConfig(
            posteriors=("arK-arK", "low_dim_gauss_mix-free_gauss_mix"),
            num_chains=8, num_steps=80, num_draws=20, reference_steps=120,
            nuts_chains=2, nuts_draws=20,
        ),
        "quick": PosteriordbConfig(
            posteriors=tuple(
                name for name in MODELS
                if name.partition("-")[0] in ("arK", "earnings", "eight_schools",
                "kidiq", "kilpisjarvi_mod", "mesquite", "sblrc", "nes1980")
                or name.endswith(("factor_model", "free_hmm"))
            ),
        ),
        "paper": PosteriordbConfig(num_seeds=3),
    },
    metrics=_metrics(
        [("", ""), ("direct_", ", without evidence"), ("nuts_", ", NUTS")]
    )
    | {"chose_hmc": Metric("whether HMC was chosen where no evidence is asked for")},
    headlines=("mean_error", "sd_error", "direct_over_nuts"),
    entries=entries,
    needs={"numpyro": "bayes"},
    check=lambda config: [load_model(name) for name in config.posteriors],
    figures=(
        boxes(
            "errors", "mean_error", "largest error of a mean, in reference deviations",
            caption="The largest error of a mean by tempering, in units of its "
            "standard deviation by the reference.",
        ),
    ),
)  # fmt: skip
