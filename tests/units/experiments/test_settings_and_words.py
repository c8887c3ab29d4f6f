"""What experiments refuse, and what their reports say."""

import dataclasses
import re

import jax.random as jr
import pytest

from equistein.groups import Cyclic
from equistein.models import contrastive_model, energy_for
from equistein.targets import RotatedGaussians
from equistein.training import ContrastiveDivergence
from experiments import experiment, MODULES
from experiments.ebm_circles import rings


def configurations(name):
    """Return the presets of an experiment; where they depend on a choice, its first."""
    chosen = experiment(name)
    first = lambda found: next(iter(found.values())) if chosen.choice else found
    return [first(found) for found in chosen.presets.values()]


@pytest.mark.parametrize("name", ["particle-sampling", "molecules"])
def test_no_stein_force_is_a_setting(name):
    for config in configurations(name):
        assert dataclasses.replace(config, stein_step=0.0).stein_step == 0


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("c4-gaussians", {"num_steps": 0}, "`num_steps`"),
        ("two-circles", {"radii": (4.0, -8.0)}, "`radii`"),
        ("particle-sampling", {"start_inverse_temperature": 1.5}, "at most 1"),
        ("particle-sampling", {"num_particles": 1}, "`num_particles`"),
        ("particle-sampling", {"pair_budget": 1}, "`pair_budget`"),
        ("particle-sampling", {"budgets": ()}, "`budgets`"),
        ("particle-sampling", {"samplers": ("gibbs",)}, "`samplers`"),
        ("hard-mixture", {"num_smc_particles": 17}, "a multiple of it, but got 17 for"),
        ("hard-mixture", {"num_steps": 399}, "`num_records`"),
        ("mixture", {"every": 2_000}, "`num_steps`"),
        ("images", {"models": ("convolutional",)}, "`models`"),
        ("images", {"fields": (2, 2)}, "`fields`"),
        ("images", {"models": ()}, "`models`"),
        ("objectives", {"objectives": ("guess",)}, "`objectives`"),
    ],
)
def test_settings_are_refused_where_they_are_built(name, wrong, said):
    quick = configurations(name)[1]
    with pytest.raises(ValueError, match=said):
        dataclasses.replace(quick, **wrong)


def test_a_formula_that_cannot_be_compared_is_refused():
    molecules = experiment("molecules")
    config = dataclasses.replace(molecules.presets["smoke"], formula="CH4O")
    with pytest.raises(ValueError, match="`formula` must be of|needs RDKit"):
        molecules.check(config)


def test_samplers_of_which_none_can_run_are_refused(monkeypatch):
    sampling = experiment("particle-sampling")
    config = dataclasses.replace(
        sampling.presets["smoke"]["lj55"], samplers=("hmc", "smc")
    )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"equistein\[bayes\]"):
        sampling.check(config)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.usefixtures("single_precision")
def test_every_report_has_sentences_metrics_and_a_few_headlines(name):
    chosen = experiment(name)
    config = configurations(name)[0]
    text = chosen.text(config, "smoke")
    sentences = [text.lead, text.floor_note, *text.notes.values()]
    for sentence in (*sentences, *text.captions.values()):
        assert re.match(r"[A-Z0-9`].*[.]$", sentence, re.DOTALL), sentence
    assert 3 <= len(set(text.headlines)) <= 5
    assert set(text.headlines) <= set(chosen.metrics)
    assert all(metric.label for metric in chosen.metrics.values())


def test_the_paper_s_own_training_repels_and_stops_early():
    paper = experiment("ebm-circles").presets["paper"]
    data = RotatedGaussians(Cyclic(4)).sample(jr.key(0), 64)
    energy = energy_for(jr.key(1), Cyclic(4), data, widths=(4,))
    model = contrastive_model(energy, data, None, paper.fit)
    algorithm = rings(paper.radii).algorithm
    changed = algorithm.applied(model, paper.fit.learning_rate)
    assert isinstance(changed.objective, ContrastiveDivergence)
    negatives = changed.objective.negatives
    assert negatives.repel
    assert negatives.tolerance == 1e-4
    assert negatives.num_particles == paper.fit.num_particles
    batches = model.epoch_batches
    factors = [float(negatives.step_factor(e * batches)) for e in (0, 251, 401)]
    assert factors == pytest.approx([1.0, 0.5 / 0.9, 0.1 / 0.9])
