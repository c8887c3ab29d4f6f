"""Where randomness comes in, an integer is a key, and what is none is refused."""

import inspect

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import equistein as es
from equistein._arrays import as_keys


@pytest.mark.parametrize("given", [0, 7, np.int64(7)])
def test_an_integer_is_a_key(given):
    assert jnp.array_equal(jr.key_data(as_keys(given)), jr.key_data(jr.key(int(given))))


def test_keys_of_both_kinds_stay_what_they_are():
    for key in (jr.key(1), jr.PRNGKey(1)):
        assert as_keys(key) is key
    keys = jr.split(jr.key(1), 3)
    assert as_keys(keys) is keys


# What the trainer calls with keys of its own, and nobody else.
OF_TRAINING = (
    es.training.AbstractNegatives, es.training.AbstractObjective, es.training.Trainer,
    es.training.AbstractGenerator, es.training.AbstractSource,
)  # fmt: skip
PACKAGES = (
    "bridges", "data", "diffusion", "energies", "features", "groups",
    "kernels", "metrics", "models", "molecules", "networks", "posteriors", "samplers",
    "targets", "training",
)  # fmt: skip


def with_a_key():
    """Return each public function, class and method that takes a key, by its name."""
    found = {}
    for package in PACKAGES:
        for name, public in vars(getattr(es, package)).items():
            if name.startswith("_") or not callable(public):
                continue
            methods = vars(public) if inspect.isclass(public) else {}
            if inspect.isclass(public) and issubclass(public, OF_TRAINING):
                methods = {}
            parts = {name: public}
            parts |= {f"{name}.{k}": v for k, v in methods.items() if k[0] != "_"}
            for place, part in parts.items():
                if callable(part) and "key" in signature_of(part):
                    if not getattr(part, "__isabstractmethod__", False):
                        found[f"{package}.{place}"] = part
    return found


def signature_of(part):
    try:
        return inspect.signature(part).parameters
    except ValueError:  # of an exception
        return {}


KEYED = with_a_key()


def called(part, key):
    """Call with a key, and with what is nothing for all other arguments it needs."""
    needed = {
        name: object()
        for name, each in signature_of(part).items()
        if each.default is each.empty and each.kind not in (2, 4) and name != "self"
    }
    owner = [object()] if "self" in signature_of(part) else []
    return part(*owner, **needed | {"key": key})


@pytest.mark.parametrize("name", KEYED)
def test_an_integer_is_taken_and_what_is_no_key_refused_with_the_remedy(
    name, unchecked
):
    for wrong in (-1, "0"):
        with pytest.raises(ValueError, match="`key`"):
            called(KEYED[name], wrong)
    for integer in (0, np.int64(3)):
        told = ""
        try:
            called(KEYED[name], integer)
        except Exception as error:  # of the other arguments
            told = str(error)
        assert "key" not in told


def test_what_an_integer_draws_is_what_its_key_draws(unchecked):
    well, lj = es.targets.DoubleWell(), es.targets.LennardJones(num_particles=3)
    sampler, bowl = es.Langevin(0.1), lambda x: -jnp.sum(x**2) / 2
    state = sampler.init(jnp.ones((4, 2)), bowl)
    so3, rbf = es.groups.SpecialOrthogonal(3), es.kernels.RBF(1.0)
    haar = lambda key: es.kernels.Equivariant(rbf, so3, num_samples=4, key=key)
    for draw in (
        lambda key: es.groups.Cyclic(4).sample(key, 3),
        lambda key: so3.sample(key, num=3),
        lambda key: well.start(key=key, num=3),
        lambda key: lj.start(key, 3),
        lambda key: sampler.step(key, state, bowl)[0].particles,
        lambda key: jax.tree.leaves(es.networks.MLP(2, widths=(3,), key=key))[0],
        lambda key: haar(key).matrix(jnp.ones(3), jnp.arange(3.0)),
    ):
        assert jnp.array_equal(draw(5), draw(jr.key(5)))
