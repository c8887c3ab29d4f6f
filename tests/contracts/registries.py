"""What the tests of registries share."""


def classes_of(base, package=None):
    """Return the classes of a package, the interface's own, that are built from it."""
    package = package or base.__module__.rsplit(".", 1)[0]
    known = [base]
    for cls in known:  # grows as we walk
        known += cls.__subclasses__()
    ours = {cls for cls in known if cls.__module__.startswith(package)}
    return {cls for cls in ours if not cls.__name__.startswith("Abstract")}
