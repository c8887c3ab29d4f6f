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
    ("name", "field", "value"),
    [
        ("c4-gaussians", "num_steps", 0),
        ("cluster", "container", 0.0),
        ("cluster", "elements", ("Fe",)),
        ("cluster", "elements", ()),
        ("cluster", "ladder", (0.9, 0.5)),
        ("cluster", "ladder", (1.0, 1.0)),
        ("cluster", "num_chains", 1),
        ("two-circles", "radii", (4.0, -8.0)),
        ("particle-sampling", "start_inverse_temperature", 1.5),
        ("particle-sampling", "num_particles", 1),
        ("particle-sampling", "pair_budget", 1),
        ("particle-sampling", "budgets", ()),
        ("particle-sampling", "samplers", ("gibbs",)),
        ("hard-mixture", "num_smc_particles", 17),
        ("hard-mixture", "num_steps", 399),
        ("mixture", "every", 2_000),
        ("images", "models", ("convolutional",)),
        ("images", "fields", (2, 2)),
        ("images", "models", ()),
        ("objectives", "objectives", ("guess",)),
    ],
)
def test_settings_are_refused_where_they_are_built(name, field, value):
    quick = configurations(name)[1]
    said = {"every": "num_steps", "num_chains": "at least 2"}.get(field, field)
    with pytest.raises(ValueError, match=said):
        dataclasses.replace(quick, **{field: value})


def test_what_cannot_run_is_refused(monkeypatch):
    molecules = experiment("molecules")
    other = dataclasses.replace(molecules.presets["smoke"], formula="CH4O")
    with pytest.raises(ValueError, match="`formula` must be of|needs RDKit"):
        molecules.check(other)
    sampling = experiment("particle-sampling")
    config = dataclasses.replace(
        sampling.presets["smoke"]["lj55"], samplers=("hmc", "smc")
    )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"equistein\[bayes\]"):
        sampling.check(config)
    cluster = experiment("cluster")
    with pytest.raises(ValueError, match=r"pip install 'equistein\[ase\]'"):
        cluster.stages(cluster.presets["smoke"], 0)


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
