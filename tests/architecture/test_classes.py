import importlib
import pkgutil

import equinox as eqx

import equistein

DEFAULTS = {  # of abstract classes, which a class may replace
    "AbstractGroup.project", "AbstractGroup.check_shape",
    "AbstractGroup.push",
    "AbstractGroup.elements", "AbstractFiniteGroup.sample",
    "AbstractSampler.check_shape", "AbstractSampler.check",
    "AbstractSampler.scale_steps",
    "AbstractSampler.summary", "AbstractSampler.shard",
    "AbstractSampler.log_densities",
    "AbstractMarkovChains.noise",
    "AbstractKernel.with_bandwidth", "AbstractKernel.project", "AbstractKernel.check",
    "AbstractKernel._squared_distances", "AbstractConstraint.allows",
    "AbstractConstraint.is_at_end",
    "AbstractKernel.prepare",
    "AbstractScalarKernel.force", "AbstractScalarKernel.matrix",
    "AbstractRadialKernel._block_sum", "AbstractRadialKernel.embed",
    "AbstractGroup.without_reflections", "AbstractGroup.contains",
    "AbstractInternalCoordinates.sum_alike",
    "AbstractRadialKernel.pull_back",
    "AbstractRadialKernel._force_about",
    "AbstractEnergy.evaluate", "AbstractEnergy.logits",
    "AbstractEnergy.condition", "AbstractEnergy.num_classes",
    "AbstractNoiseEnergy.start",
    "AbstractFeatures.jacobian",
    "AbstractFeatures.laplacian", "AbstractFeatures.derivatives",
    "AbstractFeatures.dot", "AbstractFeatures.unbounded", "AbstractFeatures.penalties",
    "AbstractFeatures.row_size", "AbstractFeatures.held_coefficients",
    "AbstractGenerator.scale_steps", "AbstractSampler.for_steps",
    "AbstractMarkovChains.varied",
    "AbstractParticleSystem.start", "AbstractReference.project",
    "AbstractAverage.project", "AbstractDiffusionSteps.scale_steps",
}  # fmt: skip


def is_abstract(cls):
    return bool(cls.__abstractmethods__ or cls.__abstractvars__)


def violations(cls):
    """Return how a class is neither abstract nor final, by the style's habit 2."""
    found = []
    if is_abstract(cls) != cls.__name__.startswith("Abstract"):
        found.append(f"{cls} must be named Abstract... if and only if it is abstract")
    package = lambda cls: cls.__module__.partition(".")[0]
    # Broken ones that tests make of it do not count.
    own = [sub for sub in cls.__subclasses__() if package(sub) == package(cls)]
    if not is_abstract(cls) and own:
        found.append(f"{cls} is final but has subclasses {own}")
    return found


def modules_of_the_library():
    for info in pkgutil.walk_packages(equistein.__path__, "equistein."):
        importlib.import_module(info.name)
    classes = [eqx.Module]
    for cls in classes:  # grows as we walk
        classes += cls.__subclasses__()
    ours = {cls for cls in classes if cls.__module__.startswith("equistein.")}
    return sorted(ours, key=lambda cls: cls.__qualname__)


def test_every_module_is_abstract_or_final():
    classes = modules_of_the_library()
    assert len(classes) > 30
    assert [problem for cls in classes for problem in violations(cls)] == []


def test_no_method_is_overridden_but_the_defaults():
    overridden = []
    for cls in modules_of_the_library():
        for base in cls.__mro__[1:]:
            if not base.__module__.startswith("equistein."):
                continue
            for name in vars(cls).keys() & vars(base).keys():
                inherited = vars(base)[name]
                if name.startswith("__") or not callable(inherited):
                    continue
                if name not in base.__abstractmethods__:
                    overridden.append((cls.__name__, f"{base.__name__}.{name}"))
    assert [pair for pair in overridden if pair[1] not in DEFAULTS] == []
    assert {default for _, default in overridden} == DEFAULTS


def test_a_misnamed_class_and_a_subclass_of_a_final_one_are_found():
    class Base(eqx.Module):
        x: int

    class AbstractHeir(Base):
        pass

    assert violations(Base)
    assert violations(AbstractHeir)
