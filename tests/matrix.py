"""Run the quick tests with each Python at hand, and with the oldest packages.

Arguments are pytest's, such as a folder of tests; by default all quick tests.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
PYTHONS = ("python3.11", "python3.12", "python3.13")
QUICK = ("-q", "-n", "2", "--dist", "worksteal", "-m", "not slow and not gpu")


def oldest() -> list[str]:
    """Return the lower bounds of JAX and what is built on it, as exact versions."""
    text = (ROOT / "pyproject.toml").read_text()
    bounds = re.findall(r'"(jax|equinox|optax|jaxtyping)>=([0-9.]+)"', text)
    return [f"{name}=={version}.*" for name, version in bounds] + ["jaxlib==0.10.*"]


def passes(python: str, pins: list[str], arguments: list[str]) -> bool:
    """Return whether the tests pass in a new environment."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        binary = str(pathlib.Path(folder) / "bin" / "python")
        pip = [binary, "-m", "pip", "install", "--quiet"]
        installed = subprocess.run([*pip, "--editable", f"{ROOT}[dev]", *pins])
        if installed.returncode:
            return False
        flags = [binary, str(ROOT / "tests" / "xla_flags.py")]
        told = subprocess.run(flags, capture_output=True, text=True, check=True)
        environment = {
            "XLA_FLAGS": told.stdout.strip(),
            "JAX_COMPILATION_CACHE_DIR": str(pathlib.Path(folder) / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        } | os.environ
        tests = [binary, "-m", "pytest", *QUICK, *arguments]
        return subprocess.run(tests, cwd=ROOT, env=environment).returncode == 0


def found(name: str) -> str | None:
    """Return a Python of this name that runs and can make environments.

    The first of that name may be a shim, which fails where its version is not chosen:
    so all folders of commands are looked into, and the versions that pyenv keeps.
    """
    folders = [pathlib.Path(each) for each in os.get_exec_path()]
    root = os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv"
    kept = pathlib.Path(root).glob(f"versions/{name.removeprefix('python')}*/bin")
    places = [*folders, *sorted(kept, reverse=True)]
    return next((str(each / name) for each in places if works(each / name)), None)


def works(python: pathlib.Path) -> bool:
    """Whether a Python is there, of the version that its name says."""
    asked = "import ensurepip, sys, venv; print('python%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", asked], capture_output=True, text=True)
    except OSError:  # there is none, or it cannot be run
        return False
    return done.returncode == 0 and done.stdout.strip() == python.name


def main(arguments: list[str]) -> int:
    """Run all, and tell what passed."""
    cases = [(name, name, []) for name in PYTHONS]
    cases.insert(1, (PYTHONS[0], f"{PYTHONS[0]}, oldest JAX", oldest()))
    pythons = {name: found(name) for name in PYTHONS}
    results = {
        label: passes(python, pins, arguments) if (python := pythons[name]) else None
        for name, label, pins in cases
    }
    told = {True: "passed", False: "FAILED", None: "not at hand"}
    print("\n".join(f"{label}: {told[passed]}" for label, passed in results.items()))
    return int(False in results.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
