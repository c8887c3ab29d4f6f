import equinox as eqx
import jax.random as jr
import numpy as np
import pytest

from equistein.metrics import score_molecules
from equistein.models import pretrained
from equistein.molecules import formula, symbols_of


def test_a_model_comes_with_the_package(single_precision):
    fitted = pretrained("c5h8o")
    assert formula(symbols_of(fitted.about["atomic_numbers"])) == "C5H8O"
    steps = fitted.generator.steps
    hurried = eqx.tree_at(lambda f: f.generator.steps.num_steps, fitted, 100)
    assert steps.num_steps > 100
    samples = np.asarray(hurried.sample(jr.key(0), 2))
    assert samples.shape == (2, 14, 3)
    lengths = np.linalg.norm(samples[:, :1] - samples[:, 1:], axis=-1)
    assert np.all((0.9 < lengths.min(axis=1)) & (lengths.min(axis=1) < 1.3))


def test_a_model_that_does_not_come_with_the_package_is_refused():
    with pytest.raises(ValueError, match="benzene.*c5h8o"):
        pretrained("benzene")


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.usefixtures("single_precision")
def test_its_molecules_are_as_good_as_ever(chem):
    fitted = pretrained("c5h8o")
    symbols = symbols_of(fitted.about["atomic_numbers"])
    samples = np.asarray(fitted.sample(jr.key(0), 128))
    scores = score_molecules(symbols, samples)
    assert scores["atom_stability"] > 0.96
    assert scores["molecule_stability"] > 0.86
    assert scores["validity"] > 0.90
