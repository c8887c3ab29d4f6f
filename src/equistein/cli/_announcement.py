"""What is said before a fit begins."""

from equistein.models import Dataset, Problem
from equistein.molecules import formula


def announcement(problem: Problem, dataset: Dataset) -> str:
    """Return what is fitted to what, in a sentence, and what of the file is not."""
    train, about = dataset.train(), ""
    if dataset.num_classes:
        about = f", {dataset.num_classes} classes"
    if dataset.species:
        about = f", molecules of {formula(dataset.species)}"
    if dataset.formulas:
        names = ", ".join(map(formula, dataset.formulas))
        about = f", molecules of {len(dataset.formulas)} formulas ({names})"
    return (
        f"Fitting {len(train.points)} points of shape "
        f"{tuple(train.points.shape[1:])}{about}, symmetry {problem.group}; "
        f"{dataset.num_held_out} are held out ...{_energies_and_forces(dataset)}"
    )


def _energies_and_forces(dataset: Dataset) -> str:
    """Return what becomes of the energies and forces of the file, if it has some."""
    known = {"energies": dataset.energies, "forces": dataset.forces}
    names = [name for name, values in known.items() if values is not None]
    if not names:
        return ""
    both = " and ".join(names)
    if dataset.kelvin is None:
        return (
            f"\nThe {both} in the file are not used: to learn from them give --kelvin, "
            "the temperature."
        )
    learned = [name for name in names if name == "forces" or dataset.labels is not None]
    told = f"\nLearning from {' and '.join(learned)} at {dataset.kelvin:g} K"
    return f"{told}; energies are compared only." if learned != names else f"{told}."
