"""Run the quick tests with each installed Python, and with the oldest packages.

Arguments are pytest's, such as a folder of tests; by default all quick tests.
"""

import os
import pathlib
import re
import shutil
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
        if subprocess.run([*pip, "--editable", f"{ROOT}[dev]", *pins]).returncode:
            return False
        flags = subprocess.check_output(
            [binary, ROOT / "tests/xla_flags.py"], text=True
        )
        environment = {
            "XLA_FLAGS": flags.strip(),
            "JAX_COMPILATION_CACHE_DIR": str(pathlib.Path(folder) / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        } | os.environ
        tests = [binary, "-m", "pytest", *QUICK, *arguments]
        return subprocess.run(tests, cwd=ROOT, env=environment).returncode == 0


def works(python: str) -> bool:
    """Return whether a Python runs and can make environments; a shim may fail."""
    asked = [python, "-c", "import ensurepip, venv"]
    found = shutil.which(python) is not None
    return found and subprocess.run(asked, capture_output=True).returncode == 0


def main(arguments: list[str]) -> int:
    """Run all, and print what passed."""
    cases = [(name, name, []) for name in PYTHONS]
    cases.insert(1, (PYTHONS[0], f"{PYTHONS[0]}, oldest JAX", oldest()))
    results = {
        label: passes(name, pins, arguments) if works(name) else None
        for name, label, pins in cases
    }
    words = {True: "passed", False: "FAILED", None: "not installed"}
    print("\n".join(f"{label}: {words[passed]}" for label, passed in results.items()))
    return int(False in results.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
