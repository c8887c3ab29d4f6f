import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import equistein as es

CONTRACT = [
    "groups.Trivial", "groups.Cyclic", "groups.Dihedral", "groups.SpecialOrthogonal",
    "groups.Orthogonal", "groups.ImageRotations", "groups.PointCloud",
    "groups.Permutations", "groups.Signs", "groups.Product", "groups.Direct",
    "groups.TorusTranslations", "features.Periodic",
    "Parameters", "from_numpyro", "to_arviz", "relabel",
    "kernels.RBF", "kernels.IMQ", "kernels.Invariant", "kernels.Equivariant",
    "kernels.Pullback", "kernels.Gradient", "kernels.Median",
    "features.Radius", "features.SortedDistances", "features.PairHistogram",
    "targets.RotatedGaussians", "targets.Shells", "targets.DoubleWell",
    "targets.LennardJones", "targets.HardMixture", "score_against",
    "metrics.score_against", "SVGD", "Langevin", "MALA", "run", "Samples",
    "as_blackjax",
    "from_blackjax", "ParallelTempering", "AnnealedSMC",
    "objectives.ContrastiveDivergence", "negatives.Persistent",
    "fit", "Fitted", "load", "models.for_data", "Model",
    "check_invariance", "Parameters", "Posterior", "from_numpyro", "relabel",
    "to_arviz",
]  # fmt: skip
PACKAGES = ["equistein"] + [
    info.name for info in pkgutil.iter_modules(es.__path__, "equistein.") if info.ispkg
]


def look_up(dotted):
    found = es
    for part in dotted.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", CONTRACT)
def test_contract_name_exists_and_is_documented(name):
    assert inspect.getdoc(look_up(name))


@pytest.mark.parametrize("package", PACKAGES)
def test_package_and_its_exports_are_documented(package):
    module = importlib.import_module(package)
    assert module.__doc__
    undocumented = []
    for name, value in vars(module).items():
        is_code = inspect.isclass(value) or inspect.isfunction(value)
        if is_code and not name.startswith("_") and not value.__doc__:
            undocumented.append(name)
    assert undocumented == []


def test_import_adds_no_module_beyond_names():
    """Nothing that takes time: no JAX even, which whoever uses a part loads then."""
    program = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "import equistein\n"
        "added = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(added - set(sys.stdlib_module_names)))\n"
        "print(*sorted(m for m in sys.modules if m.startswith('equistein.')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "equistein lazy_loader\n\n", done.stderr


def test_import_is_light_and_creates_no_array():
    program = (
        "import sys, jax, equistein\n"
        "heavy = {'matplotlib', 'rdkit', 'tyro', 'scipy.stats'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert not jax.live_arrays(), jax.live_arrays()\n"
        "assert not jax.config.jax_enable_x64\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
