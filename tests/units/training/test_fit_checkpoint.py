"""A fit goes on from its checkpoint, and only from its own."""

import shutil

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from by_hand import batch_of, bowl, divergence_of, generator_of, svgd

from equistein.energies import TemperedEnergy
from equistein.groups import Cyclic, Trivial
from equistein.kernels import Equivariant, RBF
from equistein.models import energy_for
from equistein.samplers import Langevin, SVGD
from equistein.training import (
    adam,
    Blurred,
    Box,
    CheckpointError,
    ContrastiveDivergence,
    CrossEntropy,
    Monitor,
    Normals,
    Persistent,
)
from equistein.training._checkpoint import identify, load_checkpoint, save_checkpoint
from short_fits import fit, same, stop_after

ADAM = optax.adam(0.01)


@pytest.fixture(scope="module")
def data():
    return jr.normal(jr.key(0), (20, 2))


def run(data, key=7, energy=None, objective=None, **options):
    objective = objective or divergence_of(data, reset_probability=0.2)
    options = {
        "num_epochs": 3, "batch_size": 8, "generator": generator_of(data),
        "optimizer": ADAM,
    } | options  # fmt: skip
    return fit(jr.key(key), energy or bowl(), data, objective, **options)


@pytest.mark.parametrize(
    "kind", [pytest.param("persistent", marks=pytest.mark.slow), "buffer"]
)
def test_a_fit_repeats_itself_and_goes_on_from_a_checkpoint(kind, data, tmp_path):
    chains = (svgd(), Box(data, Trivial()))
    negatives = {
        "persistent": lambda: Persistent(*chains, num_particles=6, num_steps=2),
        "buffer": lambda: Persistent(
            *chains, buffer_size=9, num_particles=6, num_steps=2
        ),
    }
    energy = energy_for(jr.key(1), Trivial(), data, widths=(4,))
    parts = {
        "energy": energy, "objective": ContrastiveDivergence(negatives[kind]()),
        "optimizer": ADAM,
    }  # fmt: skip
    straight = run(data, **parts)
    path = tmp_path / "deep" / "fit.npz"
    with pytest.raises(KeyboardInterrupt):
        run(data, **parts, checkpoint=path, callbacks=[stop_after(2)])
    # All parts are made anew, as in another process.
    parts["objective"] = ContrastiveDivergence(negatives[kind]())
    parts["energy"] = energy_for(jr.key(1), Trivial(), data, widths=(4,))
    resumed = run(data, **parts, checkpoint=path)
    assert same(resumed.energy, straight.energy)
    assert same(resumed.history, straight.history)
    samples = [fitted.sample(jr.key(3), 4) for fitted in (straight, resumed)]
    assert np.array_equal(*samples)
    assert [file.name for file in path.parent.iterdir()] == ["fit.npz"]


def test_a_finished_fit_is_read_from_its_checkpoint(data, tmp_path):
    path, told = tmp_path / "fit.npz", []
    first = run(data, checkpoint=path)
    again = run(data, checkpoint=path, callbacks=[told.append])
    assert told == []
    assert same(again.energy, first.energy)
    assert same(again.history, first.history)


def slow(count):
    return 0.5


CHANGES = {
    "more epochs": ({"num_epochs": 4}, "num_epochs"),
    "another key": ({"key": 8}, "key"),
    "other data": ({"data": lambda x: x[:15]}, "data"),
    "one other value": ({"data": lambda x: x.at[3, 0].add(1e-6)}, "data"),
    "another batch": ({"batch_size": 7}, "batch_size"),
    "more batches": ({"epoch_batches": 3}, "num_batches"),
    "another mean": ({"ema": 0.5}, "ema"),
    "another optimizer": ({"optimizer": optax.sgd(0.01)}, "optimizer"),
    "another learning rate": ({"optimizer": optax.adam(0.02)}, "optimizer"),
    "other roll-backs": ({"rollback": {"energy_limit": 1e5}}, "energy_limit"),
    "another energy": ({"energy": bowl(2.0)}, "energy"),
    "another temperature": ({"energy": TemperedEnergy(bowl(), 2.0)}, "energy"),
    "a monitor": (
        {"callbacks": [Monitor(lambda e: {"precision": e.precision})]},
        "columns",
    ),
}
NEGATIVES = {
    "another step size": {"sampler": svgd(0.2)},
    "another bandwidth": {"sampler": svgd(bandwidth=2.0)},
    "more noise": {"sampler": svgd(langevin=0.2)},
    "another sampler": {"sampler": Langevin(0.1)},
    "another kernel": {
        "sampler": SVGD(Equivariant(RBF(1.0), Cyclic(4)), optax.sgd(0.1), langevin=0.1)
    },
    "more particles": {"num_particles": 6},
    "more steps": {"num_steps": 2},
    "more resets": {"reset_probability": 0.3},
    "a schedule": {"step_factor": slow},
}
CHANGES |= {
    name: ({"negatives": each}, "objective") for name, each in NEGATIVES.items()
}


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("fit") / "fit.npz"
    run(data, checkpoint=path)
    return path


@pytest.mark.parametrize(("change", "word"), CHANGES.values(), ids=CHANGES.keys())
def test_another_fit_s_checkpoint_is_refused(change, word, data, finished):
    options = dict(change)
    points = options.pop("data", lambda x: x)(data)
    negatives = {"reset_probability": 0.2} | options.pop("negatives", {})
    options["objective"] = divergence_of(data, **negatives)
    with pytest.raises(CheckpointError, match=f"other settings .*{word}"):
        run(points, checkpoint=finished, **options)


def test_a_damaged_checkpoint_is_refused_with_the_remedy(data, finished, tmp_path):
    content, path = finished.read_bytes(), tmp_path / "fit.npz"
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 4
    for wrong in (b"", b"no json\n", content[:-100], bytes(flipped)):
        path.write_bytes(wrong)
        with pytest.raises(CheckpointError, match="delete it"):
            run(data, checkpoint=path)
        assert path.read_bytes() == wrong


def test_a_state_of_other_shapes_or_types_is_refused(tmp_path):
    path, header = tmp_path / "c.npz", {"seed": 1}
    save_checkpoint(path, {"x": jnp.ones(3)}, header, {}, [])
    for like in (jnp.ones(4), jnp.ones(3, jnp.float32), jnp.ones(3, int)):
        with pytest.raises(CheckpointError, match="shapes or types"):
            load_checkpoint(path, {"x": like}, header)


def test_a_fit_whose_checkpoint_cannot_be_written_says_so(data, tmp_path):
    path = tmp_path / "deep" / "c.npz"
    gone = lambda row: path.parent.exists() and shutil.rmtree(path.parent)
    with pytest.raises(OSError, match="c.npz"):
        run(data, checkpoint=path, callbacks=[gone])


def test_a_checkpoint_of_other_labels_is_refused(data, tmp_path):
    energy = energy_for(jr.key(1), Trivial(), data, num_classes=2, widths=(4,))
    labels, path = np.arange(20) % 2, tmp_path / "fit.npz"
    options = {"energy": energy, "objective": CrossEntropy(), "checkpoint": path}
    run(data, labels=labels, **options)
    with pytest.raises(CheckpointError, match="data"):
        run(data, labels=1 - labels, **options)


POINTS = jnp.arange(20.0).reshape(10, 2)


def nested(step=0.1, noise=0.1, weight=1.0):
    """Return an objective with its step size as deep as one can be."""
    sampler = SVGD(
        Equivariant(RBF(1.0), Cyclic(4)),
        None,
        factor=jnp.asarray(step),
        langevin=noise,
    )
    negatives = Persistent(sampler, Box(POINTS, Cyclic(4)), buffer_size=300)
    return Blurred(ContrastiveDivergence(negatives) + weight * CrossEntropy(), 0.1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda n: 0.5, lambda n: 0.7),
        (lambda n, a=1: a, lambda n, a=2: a),
        (optax.cosine_decay_schedule(1.0, 10), optax.cosine_decay_schedule(1.0, 20)),
        (adam(0.01, 10), adam(0.01, 10, gradient_clip=2.0)),
        (adam(0.01, 10), adam(0.01, 10, factors={3: 0.1})),
        (jnp.arange(3), jnp.arange(3.0)),
        (np.zeros(3), np.zeros((3, 1))),
        (float("nan"), 0.0),
        ({"a": 1}, {"a": 2}),
        ((1, 2), (1, 3)),
        (nested(), nested(step=0.2)),
        (nested(), nested(noise=0.2)),
        (nested(), nested(weight=2.0)),
        (Box(POINTS, Trivial()), Box(2 * POINTS, Trivial())),
        (Box(POINTS, Trivial()), Normals(POINTS, Trivial())),
    ],
)
def test_parts_that_differ_have_other_descriptions(first, second):
    assert identify(first) != identify(second)
    assert identify([first]) == identify([first])


def test_functions_that_hold_themselves_are_described():
    def one(n):
        return two(n - 1) if n else one

    def two(n):
        return one(n - 1) if n else two

    assert identify(one) != identify(two)
    assert identify(batch_of) == identify(batch_of)
