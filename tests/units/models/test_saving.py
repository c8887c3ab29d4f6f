"""Learned densities in files: what es.models makes, and what is one's own."""

import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import equistein as es
from equistein.diffusion import DenoisingScoreMatching
from equistein.energies import PlainEnergy
from equistein.groups import Cyclic, ImageRotations, Orthogonal, PointCloud, Trivial
from equistein.kernels import RBF
from equistein.models import (
    ContrastiveSettings,
    DenoisingSettings,
    for_data,
    ImageSettings,
)
from equistein.networks import AbstractNetwork, MLP
from equistein.samplers import Langevin, SVGD
from equistein.training import (
    Box,
    FileFormatError,
    SamplingGenerator,
)
from equistein.training._tree_file import save_tree
from short_fits import fit, same

SMALL = {"num_epochs": 1, "batch_size": 8, "sample_steps": 3, "sample_at_once": 4}
CONTRASTIVE = ContrastiveSettings(**SMALL, widths=(4,), num_particles=4, num_steps=1)
NORMALS = ContrastiveSettings(
    **SMALL, widths=(4,), num_particles=4, num_steps=1, initial="normals",
    temperature=2.0, buffer_size=9, kernel="independent",
)  # fmt: skip
DENOISING = DenoisingSettings(**SMALL, width=4, depth=1, epoch_batches=1)
IMAGES = ImageSettings(**SMALL, epoch_batches=1, fields=(2,), num_blocks=1)
MODELS = {  # a group, the shape of a point, labels, and how it is made
    "none": (Trivial(), (2,), None, {"settings": CONTRASTIVE}),
    "joint": (Cyclic(4), (2,), np.arange(16) % 2, {"settings": CONTRASTIVE}),
    "features": (Orthogonal(3), (3,), None, {"settings": NORMALS}),
    "cloud": (PointCloud("COO", 2), (3, 2), None, {"settings": CONTRASTIVE}),
    "images": (ImageRotations(), (4, 4, 1), np.arange(16) % 2, {"settings": IMAGES}),
    "graph": (
        PointCloud("COO", 3), (3, 3), None,
        {"settings": DENOISING, "atomic_numbers": (6, 8, 8)},
    ),
}  # fmt: skip


@pytest.mark.usefixtures("single_precision")
@pytest.mark.parametrize(
    ("group", "shape", "labels", "options"),
    [
        pytest.param(*row, id=name, marks=[] if name == "none" else pytest.mark.slow)
        for name, row in MODELS.items()
    ],
)
def test_what_the_library_makes_comes_back_bit_for_bit(
    group, shape, labels, options, tmp_path
):
    data, path = jr.normal(jr.key(0), (16, *shape)), tmp_path / "deep" / "model.eqx"
    model = for_data(jr.key(1), group, data, labels, **options)
    fitted = model.fit(jr.key(2), data, labels)
    fitted.save(path)
    loaded = es.load(str(path))
    assert jax.tree.structure(eqx.filter(loaded.energy, eqx.is_array)) == (
        jax.tree.structure(eqx.filter(fitted.energy, eqx.is_array))
    )
    assert same(loaded.energy, fitted.energy)
    assert same(loaded.reference, fitted.reference)
    assert same(loaded.history, fitted.history)
    assert (loaded.events, loaded.about) == (fitted.events, fitted.about)
    assert loaded.group == fitted.group
    for label in (None, 1) if labels is not None else (None,):
        samples = [f.sample(jr.key(3), 3, label=label) for f in (fitted, loaded)]
        assert np.array_equal(*samples)
        assert np.all(np.isfinite(samples[0]))
    assert np.array_equal(loaded.log_density(data[0]), fitted.log_density(data[0]))
    carried = pickle.loads(pickle.dumps(fitted))
    assert same(carried.energy, fitted.energy)
    assert np.array_equal(carried.sample(jr.key(3), 3), fitted.sample(jr.key(3), 3))
    # What was loaded is saved as the same bytes.
    loaded.save(tmp_path / "again.eqx")
    assert (tmp_path / "again.eqx").read_bytes() == path.read_bytes()
    assert [file.name for file in path.parent.iterdir()] == ["model.eqx"]


def wave(x):
    return jnp.sin(x)


class Mine(AbstractNetwork):
    """A network of one's own."""

    inner: MLP
    activation: object = wave

    def __call__(self, point):
        return self.activation(self.inner(point)) - jnp.sum(point**2)

    def group(self, shape):
        return Trivial()


def own_fit(key, network, **options):
    data = jr.normal(key, (8, 2))
    energy, objective = PlainEnergy(network), DenoisingScoreMatching(0.3)
    return fit(key, energy, data, objective, num_epochs=1, batch_size=8, **options)


def test_classes_and_functions_of_one_s_own_are_given(key, tmp_path):
    path, data = tmp_path / "model.eqx", jr.normal(key, (8, 2))
    generator = SamplingGenerator(
        Langevin(0.1), Box(data, Trivial()), num_steps=2, num_at_once=4
    )
    network = Mine(MLP(2, widths=(3,), key=key))
    fitted = own_fit(key, network, generator=generator)
    fitted.save(path)
    for classes, missing in (((), "Mine"), ((wave,), "Mine"), ((Mine,), "wave")):
        with pytest.raises(FileFormatError, match=rf"classes=\[{missing}\]"):
            es.load(path, classes)
    loaded = es.load(path, classes=[Mine, wave])
    assert isinstance(loaded.energy.network, Mine)
    assert np.array_equal(loaded.sample(key, 3), fitted.sample(key, 3))


def test_a_lambda_is_refused_by_its_place(key, tmp_path):
    network = Mine(MLP(2, widths=(3,), key=key), lambda x: jnp.sin(x))
    fitted = own_fit(key, network)
    with pytest.raises(ValueError, match=r"Fitted\.energy\.network\.activation"):
        fitted.save(tmp_path / "model.eqx")
    assert not list(tmp_path.iterdir())
    # Nor is an optimizer of closures taken.
    data = jr.normal(key, (8, 2))
    sampler = SVGD(RBF(1.0), optax.sgd(0.1))
    generator = SamplingGenerator(sampler, Box(data, Trivial()), num_steps=2)
    fitted = own_fit(key, Mine(MLP(2, widths=(3,), key=key)), generator=generator)
    with pytest.raises(ValueError, match="generator.sampler.optimizer"):
        fitted.save(tmp_path / "model.eqx")


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "model.eqx"
    for missing in (path, tmp_path):  # a run in which nothing was learned
        with pytest.raises(FileFormatError, match="There is no file"):
            es.load(missing)
    save_tree(path, RBF(1.0))
    with pytest.raises(FileFormatError, match="holds RBF, no fitted density"):
        es.load(path)
    path.write_bytes(b"no model")
    with pytest.raises(FileFormatError, match="model.eqx"):
        es.load(path)
