import pathlib
import re

import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

import equistein as es

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "posteriors.md"


# It stands here since it must be compiled as users compile it: PyTensor's derivative of
# a maximum compares it with its entries, which the tests' quick flags may round apart.
@pytest.mark.slow
def test_the_recipe_for_pymc_runs():
    pytest.importorskip("pymc")
    recipes = re.findall(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (recipe,) = [text for text in recipes if "import pymc" in text]
    data = 20 + 3 * jr.normal(jr.key(0), (30,))
    names = {"es": es, "jnp": jnp, "jr": jr, "data": data}
    recipe = recipe.replace("run(jr.key(3))", "run(jr.key(3), num_steps=400)")
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        exec(compile(recipe, "recipe", "exec"), names)
    assert names["samples"].log_evidence_error < 1
