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
    "negatives.ReplayBuffer", "fit", "Fitted", "load", "models.for_data", "Model",
    "check_invariance", "Parameters", "Posterior", "from_numpyro", "relabel",
    "to_arviz",
]  # fmt: skip
METHODS = {
    "groups.Cyclic": ["act", "sample", "canonicalize", "elements", "orbit", "order"],
    "groups.Dihedral": ["act", "sample", "canonicalize", "elements", "orbit", "order"],
    "groups.Trivial": ["act", "sample", "canonicalize", "elements", "orbit", "order"],
    "groups.SpecialOrthogonal": ["act", "sample", "canonicalize"],
    "groups.Orthogonal": ["act", "sample", "canonicalize"],
    "groups.PointCloud": ["act", "sample", "canonicalize"],
    "targets.RotatedGaussians": ["log_density", "sample"],
    "targets.Shells": ["log_density", "sample"],
    "targets.DoubleWell": ["log_density", "sample"],
    "SVGD": ["init", "step"],
    "Langevin": ["init", "step"],
    "MALA": ["init", "step"],
    "Fitted": ["sample", "save"],
}
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


@pytest.mark.parametrize("name", METHODS)
def test_contract_class_has_its_methods(name):
    assert [m for m in METHODS[name] if not hasattr(look_up(name), m)] == []


def test_results_have_the_fields_of_the_contract():
    samples = {"particles", "history", "num_steps", "converged"}
    assert samples <= set(es.Samples.__dataclass_fields__)
    fitted = {"energy", "generator", "history"}
    assert fitted <= set(es.Fitted.__dataclass_fields__)
    model = {"energy", "objective", "generator"}
    assert model <= set(es.Model.__dataclass_fields__)


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


@pytest.mark.parametrize("package", PACKAGES)
def test_public_methods_of_abstract_classes_are_documented(package):
    module = importlib.import_module(package)
    for name, cls in vars(module).items():
        if not inspect.isclass(cls) or not name.startswith("Abstract"):
            continue
        for method in getattr(cls, "__abstractmethods__", ()):
            assert method == "__call__" or inspect.getdoc(getattr(cls, method)), (
                f"{name}.{method}"
            )


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
