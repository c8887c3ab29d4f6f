"""The hand of molecules, and samples of one hand."""

import dataclasses

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import equistein as es
from equistein.molecules import hands, main_hand, stereo_smiles

pytest.importorskip("rdkit")
pytestmark = pytest.mark.filterwarnings("ignore:The standard error")
SPECIES = ("C", "F", "Cl", "Br", "H")
CENTER = np.array(
    [[0, 0, 0], [0.8, 0.8, 0.8], [1, -1, -1], [-1.1, 1.1, -1.1], [-0.6, -0.6, 0.6]]
)


def frames(num, seed=0, mirrored=0.0):
    rng = np.random.default_rng(seed)
    points = CENTER + 0.03 * rng.normal(size=(num, 5, 3))
    turns, _ = np.linalg.qr(rng.normal(size=(num, 3, 3)))
    turns *= np.linalg.det(turns)[:, None, None]
    points = points @ turns
    points[: round(mirrored * num)] *= -1
    return points


def triple_product(points):
    """The sign of the triple product of the bonds to F, Cl and Br."""
    return np.sign(np.linalg.det(points[:, 1:4] - points[:, :1]))


def test_the_hand_is_that_of_the_triple_product_in_any_order_of_the_atoms():
    points = frames(40, mirrored=0.4)
    pair, fraction = main_hand(SPECIES, points)
    assert fraction == pytest.approx(0.6)
    signs = hands(SPECIES, points, pair)
    assert np.array_equal(signs, triple_product(points) * triple_product(points)[-1])
    order = [3, 0, 4, 2, 1]
    again = hands([SPECIES[i] for i in order], points[:, order], pair)
    assert np.array_equal(again, signs)
    assert stereo_smiles(SPECIES, -points[0]) == stereo_smiles(SPECIES, points[0])[::-1]


def test_achiral_molecules_and_other_molecules_have_no_hand():
    points = frames(20)
    species = ("C", "F", "Cl", "H", "H")
    assert main_hand(species, points) is None
    assert main_hand(SPECIES, points[:3]) is None  # too few to tell
    pair, _ = main_hand(SPECIES, points)
    assert not hands(species, points, pair).any()


def test_a_sulfoxide_has_a_hand():
    species = ("S", "O", "C", "H", "H", "H", "F")
    points = [[0, 0, 0.5], [1.5, 0, 0], [-0.9, 1.5, 0], [-0.5, 2.1, 0.8]]
    points += [[-0.5, 2.0, -0.9], [-2.0, 1.5, 0], [-0.8, -1.4, 0]]
    one, other = stereo_smiles(species, np.array(points, float))
    assert "@" in one != other


def dataset(points):
    group = es.groups.PointCloud(SPECIES, 3)
    return es.data.Dataset(jnp.asarray(points), None, group, species=SPECIES)


class Mirrored(es.training.AbstractGenerator):
    """Draws data, half of them mirrored, as an energy without hands does."""

    num_at_once: int = 64

    def draw(self, key, energy, num, condition):
        return jnp.asarray(frames(num, 1, 0.5))


@pytest.mark.parametrize("mirrored", [0.0, 0.5])
def test_samples_have_one_hand_if_the_data_have(mirrored, tmp_path, single_precision):
    data = dataset(frames(60, mirrored=mirrored))
    settings = es.models.LinearSettings(moment_samples=0)
    model = es.models.for_dataset(jr.key(0), data, settings)
    fitted = model.fit(0, data.points, progress=False)
    fitted.save(tmp_path / "model.eqx")
    fitted = es.load(tmp_path / "model.eqx")
    assert ("stereo_smiles" in fitted.about) == (not mirrored)
    made = fitted.generator
    if mirrored:
        assert isinstance(made, es.training.SamplingGenerator)
        return
    drawn = dataclasses.replace(made, inner=Mirrored()).sample(
        jr.key(0), fitted.energy, 64
    )
    assert np.all(triple_product(np.asarray(drawn)) == triple_product(frames(1)))


def test_a_linear_energy_is_of_the_bonds_that_all_molecules_have():
    settings, points = es.models.LinearSettings(), frames(230)
    assert es.metrics.shared_bonds(dataset(points)) == [(0, i) for i in range(1, 5)]

    def group_of(points):
        model = es.models.for_dataset(jr.key(0), dataset(points), settings)
        return model.energy.group((5, 3))

    bonded = group_of(points)
    assert isinstance(bonded, es.groups.Molecule)
    assert bonded.reflections
    points[203, 4] *= 3  # a bond is broken
    assert es.metrics.shared_bonds(dataset(points)) == []
    assert isinstance(group_of(points), es.groups.PointCloud)


def test_metals_and_straight_molecules_are_by_their_elements():
    rng = np.random.default_rng(0)
    row = np.array([[0, 0, 0], [1.16, 0, 0], [-1.16, 0, 0]])
    row = row + 0.03 * rng.normal(size=(50, 3, 3))
    for species, points in ((("C", "O", "O"), row), (("Na", "Na", "Na"), 2.6 * row)):
        cloud = es.groups.PointCloud(species, 3)
        known = {"group": cloud, "species": species}
        data = es.data.Dataset(jnp.asarray(points), None, **known)
        assert es.metrics.shared_bonds(data) == []


def test_atoms_are_put_into_the_order_of_the_bonds():
    water = np.array([[0, 0, 0], [0.96, 0, 0], [-0.24, 0.93, 0]])
    two, symbols = np.concatenate([water, water + [3, 0, 0.5]]), ("O", "H", "H") * 2
    bonds = [(0, 1), (0, 2), (3, 4), (3, 5)]
    for order in ([3, 1, 2, 0, 5, 4], [1, 2, 4, 5, 0, 3]):
        names = tuple(np.array(symbols)[order])
        molecule = es.molecules.Molecule(names, two[order], forces=two[order])
        points, _, forces = es.data.stack_molecules([molecule], symbols, bonds)
        lengths = [np.linalg.norm(points[0][i] - points[0][j]) for i, j in bonds]
        assert np.max(lengths) < 1
        assert np.array_equal(points, forces)
    assert es.molecules.order_by_bonds(molecule, symbols, [(0, 3)]) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "mirrored"), [("linear", 0.0), ("linear", 0.5), ("graph", 0.0)]
)
def test_learned_molecules_have_the_hands_of_the_data(
    network, mirrored, single_precision
):
    data = dataset(frames(200, mirrored=mirrored).astype(np.float32))
    settings = es.models.LinearSettings(sample_steps=400)
    if network == "graph":
        settings = es.models.DenoisingSettings(
            num_epochs=20, width=32, sample_steps=200
        )
    model = es.models.for_dataset(jr.key(0), data, settings)
    samples = np.asarray(model.fit(0, data.points).sample(1, 256))
    right = np.mean(triple_product(samples) == triple_product(frames(1)))
    assert right >= 0.99 if not mirrored else abs(right - 0.5) < 0.1
