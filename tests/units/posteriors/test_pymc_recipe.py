import pathlib
import re

import jax.numpy as jnp
import jax.random as jr
import pytest

import equistein as es

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "posteriors.md"


def test_the_recipe_for_pymc_runs(single_precision):
    pytest.importorskip("pymc")
    recipe = re.findall(r"```text\n(import pymc.*?)```", PAGE.read_text(), re.DOTALL)[0]
    data = 20 + 3 * jr.normal(jr.key(0), (30,))
    names = {"es": es, "jnp": jnp, "jr": jr, "data": data}
    recipe = recipe.replace("run(jr.key(3))", "run(jr.key(3), num_steps=400)")
    exec(compile(recipe, "recipe", "exec"), names)
    assert names["samples"].log_evidence_error < 1
