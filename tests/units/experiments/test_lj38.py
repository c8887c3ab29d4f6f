"""The cluster of 38 particles: its funnels, its heat capacity, and the verdict."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from scipy.spatial.transform import Rotation

from equistein.experiments import EXPERIMENTS
from equistein.experiments.engine._experiment import Trial
from equistein.experiments.systems import _funnels, _lj38
from equistein.experiments.systems._convergence import (
    Comparison,
    fcc_weight,
    heat_capacity,
    jackknifed,
    peak,
)
from equistein.runs import seed_outcome

RANDOM = np.random.default_rng(0)
COLD, WARM, HOT = TEMPERATURES = np.array([0.1, 0.15, 0.2])
QUICK = EXPERIMENTS["lj38"].presets["quick"]
ORDER = jax.jit(_funnels.bond_order)


def order_by_pairs(points):
    """Return Q4 as the mean of Legendre polynomials over all pairs of bonds."""
    gaps = points[:, None] - points
    lengths = np.linalg.norm(gaps, axis=-1)
    bonds = gaps[(lengths > 0) & (lengths < 1.391 / 2 ** (1 / 6))]
    units = bonds / np.linalg.norm(bonds, axis=1, keepdims=True)
    return np.sqrt(scipy.special.eval_legendre(4, units @ units.T).mean())


def test_bond_order_tells_the_octahedron_from_the_icosahedral_minimum():
    octahedron = _funnels._truncated_octahedron()
    icosahedral = _funnels._clipped_icosahedron()
    assert octahedron.shape == icosahedral.shape == (38, 3)
    # All bonds are along the edges of a cube's faces: sqrt(7/192) of the lattice.
    assert np.isclose(ORDER(octahedron), np.sqrt(7 / 192))
    assert ORDER(icosahedral) < 0.01
    assert ORDER(icosahedral) < _funnels.FCC_ORDER < ORDER(octahedron)


def test_bond_order_is_that_of_its_definition_and_invariant():
    points = _funnels._truncated_octahedron() + 0.1 * RANDOM.normal(size=(38, 3))
    expected = order_by_pairs(points)
    assert np.isclose(ORDER(points), expected)
    turned = RANDOM.permutation(points) @ Rotation.random(rng=RANDOM).as_matrix() + 3.0
    assert np.isclose(ORDER(turned), expected)


def outcome(energies, fcc, trips=20.0):
    """Return an outcome of one seed of 8 ladders with the given averages.

    The energies are `(draw, temperature, ladder)`; the fcc weights, a temperature each,
    or a ladder each as well.
    """
    fcc = np.broadcast_to(np.asarray(fcc, float).T, (8, 3)).T
    are_fcc = np.arange(100)[:, None, None] < np.round(100 * fcc)
    stacked = {
        "energy": energies.mean(axis=0)[None],
        "energy_square": (energies**2).mean(axis=0)[None],
        "bond_order": np.where(are_fcc, 0.19, 0.01),
        "round_trips": np.full(8, trips),
    }
    return seed_outcome({"seconds": 1.0}, np.zeros((8, 38, 3)), stacked=stacked)


def drawn(scale=1.0, mean=-165.0):
    """Return energies whose heat capacity is 57 + scale^2 / T^2."""
    return mean + scale * RANDOM.normal(size=(2_000, 3, 8))


def test_the_jackknife_of_a_mean_is_its_standard_error():
    values = RANDOM.normal(size=(7, 4))
    found = jackknifed(lambda mean: mean, values)
    assert np.allclose(found.values, values.mean(axis=0))
    assert np.allclose(found.errors, values.std(axis=0, ddof=1) / 7**0.5)
    assert np.all(np.isinf(jackknifed(lambda mean: mean, values[:1]).errors))


def test_heat_capacity_is_that_of_all_ladders_together():
    found = heat_capacity(outcome(drawn(), 0), TEMPERATURES)
    exact = 57 + 1 / TEMPERATURES**2
    assert np.all(np.abs(found.values - exact) < 4 * found.errors)
    assert np.all(found.errors < 0.05 * exact)
    # Ladders in different funnels: their distance belongs to the variance.
    apart = drawn() + np.where(np.arange(8) < 4, 2.0, -2.0)
    found = heat_capacity(outcome(apart, 0), TEMPERATURES)
    assert np.allclose(found.values, 57 + 5 / TEMPERATURES**2, rtol=0.05)


def test_a_peak_between_temperatures_is_found():
    squares = 100 * TEMPERATURES**2 * (1 - 40 * (TEMPERATURES - 0.16) ** 2)
    energies = np.zeros((2, 3, 8)) + squares[:, None] ** 0.5
    energies[0] *= -1
    assert np.allclose(peak(outcome(energies, 0), TEMPERATURES), [0.16, 157])


def verdict(first, second):
    found = Comparison(TEMPERATURES, {"one": first, "another": second})
    said = found.sentence()
    assert said.startswith("Has converged:" if found.has_converged else "Has NOT")
    return found.has_converged, said


def test_two_starts_that_agree_have_converged():
    converged, said = verdict(
        outcome(drawn(), [0.9, 0.5, 0]), outcome(drawn(), [0.9, 0.5, 0])
    )
    assert converged
    assert "at all temperatures" in said


@pytest.mark.parametrize(
    ("second", "because"),
    [
        (lambda: outcome(drawn(1.3), 1.0), "the heat capacities are at most"),
        (lambda: outcome(drawn(), [0.0, 1, 1]), "0.000 ± 0.000 from another"),
        (lambda: outcome(drawn(), 1.0, trips=3.0), "3.0 round trips from another"),
        (
            lambda: outcome(drawn(), np.tile(np.arange(8) < 6, (3, 1))),
            "no weight has an error above 0.1",
        ),
    ],
    ids=["heat capacity", "stuck in another funnel", "few trips", "not known"],
)
def test_what_has_not_converged_is_told(second, because):
    converged, said = verdict(outcome(drawn(), 1.0), second())
    assert not converged
    assert because in said


def test_where_two_starts_agree_is_told():
    cold = outcome(drawn(), [0.0, 0.5, 0])
    assert "from T = 0.15 up" in verdict(outcome(drawn(), [1.0, 0.5, 0]), cold)[1]
    hot = outcome(drawn(), [0.0, 0.5, 1])
    assert "up to the hottest" in verdict(outcome(drawn(), 0), hot)[1]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"temperatures": (0.2, 0.1)}, "`temperatures` must be two or more that rise"),
        ({"temperatures": (0.2,)}, "`temperatures` must be two or more that rise"),
        ({"num_seeds": 1, "num_ladders": 1}, "must be at least 2, for errors"),
        ({"num_rounds": 10**6}, "`num_rounds` must be at most `num_steps`"),
        ({"leapfrog_steps": 0}, "`leapfrog_steps` must be a whole number above 0"),
    ],
)
def test_wrong_settings_are_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        dataclasses.replace(QUICK, **wrong)


def test_without_blackjax_there_is_mala(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    experiment = EXPERIMENTS["lj38"]
    with pytest.raises(ValueError, match="lj38 needs BlackJAX.*`leapfrog_steps` to 1"):
        experiment.check(QUICK)
    experiment.check(dataclasses.replace(QUICK, leapfrog_steps=1))


def test_half_a_run_is_no_comparison():
    half = {"fcc": outcome(drawn(), 1.0)}
    assert _lj38.compared(QUICK, half) == {}
    assert "not both starts" in _lj38.conclusion(QUICK, half)


def sampled(start, **settings):
    config = dataclasses.replace(QUICK, **settings)
    (entry,) = (e for e in _lj38.entries(config) if e.name == start)
    return config, entry.stage(Trial(f"{start}@0", 0, 0))


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.usefixtures("single_precision")
def test_a_cold_solid_is_harmonic():
    pytest.importorskip("blackjax")
    config, cold = sampled(
        "fcc", temperatures=(0.01, 0.015, 0.02), num_ladders=16, leapfrog_steps=4,
        num_warm_up=500, num_steps=6_000, num_rounds=2,
    )  # fmt: skip
    temperatures = np.asarray(config.temperatures)
    # E = E_0 + (3N - 6) T / 2 + a T^2, of the vibrations, and C its slope with the
    # kinetic 3N/2. With 3N - 3 or 3N degrees of freedom it would begin at 55.5 or 57.
    energies = cold.arrays["energy"].mean(axis=(0, 1, 3))
    a, freedom = np.polyfit(temperatures, (energies + 173.928427) / temperatures, 1)
    assert abs(freedom - 54) < 0.75
    found = heat_capacity(cold, temperatures)
    assert np.all(np.abs(found.values - 111 - 2 * a * temperatures) < 2.5)
    assert np.all(found.errors < 1)
    assert np.all(fcc_weight(cold).values == 1)


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.usefixtures("single_precision")
def test_a_hot_cluster_forgets_its_start():
    pytest.importorskip("blackjax")
    found = {}
    for start in ("fcc", "liquid"):
        config, found[start] = sampled(
            start, temperatures=(0.26, 0.28, 0.3), num_ladders=6, num_warm_up=600,
            num_steps=800, num_rounds=10,
        )  # fmt: skip
        assert np.all(fcc_weight(found[start]).values < 0.1)
    gaps = Comparison(np.asarray(config.temperatures), found).capacity_gaps
    assert np.all(gaps < 4)


@pytest.mark.slow
def test_minima_have_the_energies_of_the_literature():
    _, energies, orders = _funnels.quenched(jnp.asarray(_funnels.minima()), 10)
    assert np.allclose(energies, [-173.928427, -173.252378], atol=1e-3)
    assert np.allclose(orders, [0.1909, 0.0031], atol=1e-3)
