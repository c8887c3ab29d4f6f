"""What experiments refuse, and what their reports say."""

import dataclasses
import re

import jax.random as jr
import pytest

from equistein.experiments import EXPERIMENTS
from equistein.experiments.learned._algorithm_1 import Algorithm1
from equistein.groups import Cyclic
from equistein.models import contrastive_model, energy_for
from equistein.runs._metric_words import METRIC_WORDS
from equistein.targets import RotatedGaussians
from equistein.training import ContrastiveDivergence


@pytest.mark.parametrize("name", ["dw4-sampling", "lj13-sampling", "molecules"])
def test_no_stein_force_is_a_setting(name):
    for config in EXPERIMENTS[name].presets.values():
        assert dataclasses.replace(config, stein_step=0.0).stein_step == 0


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        (
            "c4-gaussians",
            {"num_steps": 0},
            "`num_steps` must be a whole number above 0",
        ),
        (
            "two-circles",
            {"radii": (4.0, -8.0)},
            "`radii` must be one or more, each a finite number above 0",
        ),
        ("dw4-sampling", {"corrected_fraction": 1.0}, "above 0, below 1"),
        ("dw4-sampling", {"annealed_fraction": 1.5}, "above 0, at most 1"),
        ("dw4-sampling", {"num_particles": 1}, "`num_particles` must be at least 2"),
        ("dw4-sampling", {"pair_budget": 1}, "`pair_budget` must be at least"),
        ("dw4-sampling", {"budgets": ()}, "`budgets` must be one or more"),
        ("hard-mixture", {"width_ratio": 0.9}, "HardMixture needs `width_ratio` >= 1"),
        ("hard-mixture", {"width_ratios": (0.9, 1.0)}, "`width_ratios` must be at lea"),
        ("hard-mixture", {"smc_divisors": (3,)}, "`num_smc_particles` must be a multi"),
        ("hard-mixture", {"ratio_particles": 17}, "a multiple of it, but got 17 for"),
        ("hard-mixture", {"ratio_steps": 399}, "must be at least `num_records` and"),
        ("hard-mixture", {"adapt_fraction": 1e-4}, "4 / `adapt_fraction`, but got"),
        ("phases", {"num_smc_particles": 17}, "a multiple of it, but got 17 for 16"),
        ("mixture", {"every": 2_000}, "`num_steps` must be at least 4 times `every`"),
        ("molecules", {"noise": 0.6}, "`noise` must be at most"),
        ("images", {"models": ("convolutional",)}, "`models` must be of density"),
        ("images", {"fields": (2, 2)}, "`fields` of at least 4 layers"),
        ("images", {"models": ()}, "`models` must be of density"),
        ("images", {"labeled_fraction": 1.5}, "`labeled_fraction`"),
        ("objectives", {"objectives": ("guess",)}, "`objectives` must be of persis"),
    ],
)
def test_settings_are_refused_where_they_are_built(name, wrong, said):
    quick = EXPERIMENTS[name].presets["quick"]
    with pytest.raises(ValueError, match=said):
        dataclasses.replace(quick, **wrong)


@pytest.mark.parametrize("name", ["molecules", "molecules-training"])
def test_a_formula_that_cannot_be_compared_is_refused(name):
    experiment = EXPERIMENTS[name]
    config = dataclasses.replace(experiment.presets["smoke"], formula="CH4O")
    with pytest.raises(ValueError, match="`formula` must be of|needs RDKit"):
        experiment.check(config)


def test_a_sampler_that_there_is_not_is_refused_before_work_begins():
    experiment = EXPERIMENTS["lj55-sampling"]
    config = dataclasses.replace(experiment.presets["smoke"], samplers=("gibbs",))
    with pytest.raises(ValueError, match="`samplers` must be some of .*'gibbs'"):
        experiment.stages(config, 0)


def test_samplers_of_which_none_can_run_are_refused(monkeypatch):
    experiment = EXPERIMENTS["lj55-sampling"]
    config = dataclasses.replace(experiment.presets["smoke"], samplers=("hmc", "smc"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"equistein\[bayes\]"):
        experiment.check(config)


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.usefixtures("single_precision")
def test_every_figure_and_model_has_its_words(name):
    experiment = EXPERIMENTS[name]
    words = experiment.words(experiment.presets["smoke"], "smoke")
    sentences = [words.lead, words.floor_note, *words.notes.values()]
    sentences += words.captions.values()
    for sentence in sentences:
        assert re.match(r"[A-Z0-9`].*[.]$", sentence, re.DOTALL), sentence
        assert not re.search(r"\blaws?\b|\bshares?\b", sentence), sentence
    closes = [key for key, text in words.captions.items() if "divergence" in text]
    assert closes == (["training"] if name in ("dw4", "lj13") else [])


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.usefixtures("single_precision")
def test_every_experiment_begins_its_report_with_a_few_numbers_in_words(name):
    experiment = EXPERIMENTS[name]
    for config in experiment.presets.values():
        chosen = experiment.words(config, "smoke").headlines
        assert 3 <= len(set(chosen)) <= 5
        for metric in chosen:
            known = {metric, re.sub(r"_\d+$", "", metric)}
            assert known & set(METRIC_WORDS) or metric.startswith("auroc_"), metric


def test_the_paper_s_own_training_repels_and_stops_early():
    paper = EXPERIMENTS["ebm-circles"].presets["paper"]
    data = RotatedGaussians(Cyclic(4)).sample(jr.key(0), 64)
    energy = energy_for(jr.key(1), Cyclic(4), data, widths=(4,))
    model = contrastive_model(energy, data, None, paper.fit)
    changed = paper.algorithm.applied(model, paper.fit.learning_rate)
    assert isinstance(changed.objective, ContrastiveDivergence)
    negatives = changed.objective.negatives
    assert negatives.repel
    assert negatives.tolerance == 1e-4
    assert negatives.num_particles == paper.fit.num_particles
    batches = model.epoch_batches
    factors = [float(negatives.step_factor(e * batches)) for e in (0, 251, 401)]
    assert factors == pytest.approx([1.0, 0.5 / 0.9, 0.1 / 0.9])
    assert Algorithm1().applied(model, 1e-3) is model
    with pytest.raises(ValueError, match="`step_epochs` must rise"):
        Algorithm1(step_epochs=(2, 1), step_factors=(1.0, 1.0))
