"""What would need too much memory or time is refused before it begins."""

import jax.numpy as jnp
import jax.random as jr
import pytest

import equistein as es
from equistein._limits import check_memory, LimitError, max_bytes

HUGE = 10**9


def normal(x):
    return -0.5 * jnp.sum(x**2)


def run(**options):
    start = jnp.ones((10_000, 2))
    es.run(0, es.Langevin(0.1), normal, start, num_steps=10**5, **options)


@pytest.mark.parametrize(
    ("begin", "said"),
    [
        (lambda: es.groups.Dihedral(HUGE).elements(), "smaller order"),
        (lambda: es.groups.Permutations(20).elements(), "All orders of 20 labels"),
        (lambda: es.groups.Signs(40).elements(), "All signs of 40 labels"),
        (
            lambda: es.groups.Product(
                es.groups.Permutations(6), es.groups.Signs(16)
            ).elements(),
            "elements of the product",
        ),
        (
            lambda: es.metrics.total_variation(
                jnp.ones(3), jnp.ones(3), (0.0, 1.0), num_bins=HUGE
            ),
            "`num_bins`",
        ),
        (lambda: es.metrics.proportions(jnp.zeros(300, int), HUGE), "`num`"),
        (
            lambda: es.networks.MLP(2, widths=(10**5, 10**5), key=jr.key(0)),
            "`widths`",
        ),
        (lambda: run(keep=10_000, record_every=1), "`record_every`"),
    ],
)  # fmt: skip
def test_what_would_need_too_much_memory_is_refused(begin, said, monkeypatch):
    """Before it begins, with an estimate and how to raise the bound."""
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", str(10**9))
    with pytest.raises(LimitError, match="set EQUISTEIN_MAX_BYTES to") as caught:
        begin()
    assert said in str(caught.value)


def test_samples_of_a_fit_that_would_not_fit_into_memory_are_not_drawn():
    fitted = es.models.pretrained("c5h8o")
    with pytest.raises(LimitError, match="Drawing 1000000000 samples would need"):
        fitted.sample(0, HUGE)


def test_what_is_made_may_need_more_than_what_is_read(monkeypatch):
    """But for a bound that was set, which is of both."""
    monkeypatch.setattr("equistein._limits._machine", lambda: 2**34)
    check_memory("This", 2**32)
    with pytest.raises(LimitError, match="at most 4 GiB"):
        check_memory("This", 2**32 + 1)
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", "1000")
    assert max_bytes() == 1000
    check_memory("This", 1000)
    with pytest.raises(LimitError, match="take less, or set EQUISTEIN_MAX_BYTES"):
        check_memory("This", 1001, "take less")
