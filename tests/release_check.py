"""Install the wheel and the sdist in clean environments, and each extra alone."""

import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

NEEDED = ("__init__.pyi", "py.typed", "pretrained/c5h8o.eqx", "cli/_main.py")
LEFT_OUT = ("dev", "docs", "bench")  # which are for a checkout
SMOKE = "run two-circles --preset smoke --num-seeds 1 --num-steps 20 --quiet"


def check(right: bool, said: str) -> None:
    """Exit with what is wrong unless something is right."""
    if not right:
        sys.exit(f"release-check: {said}")


def call(*command: str, cwd: pathlib.Path) -> str:
    """Run a command and return what it printed; exit with its errors if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    said = f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}"
    check(done.returncode == 0, said)
    return done.stdout


def install(what: str, folder: pathlib.Path) -> pathlib.Path:
    """Install something in a new environment and return its folder of commands."""
    call(sys.executable, "-m", "venv", str(folder / "env"), cwd=folder)
    binaries = folder / "env" / "bin"
    call(str(binaries / "pip"), "install", "--quiet", what, cwd=folder)
    return binaries


def main(dist: pathlib.Path) -> None:
    """Check what is in the files, then what they do where nothing else is."""
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    names = zipfile.ZipFile(wheel).namelist()
    for name in NEEDED:
        check(f"equistein/{name}" in names, f"{wheel.name} lacks {name}")
    check(not any(name.startswith("tests/") for name in names), "tests in the wheel")
    with tarfile.open(sdist) as archive:
        held = [name.partition("/")[2] for name in archive.getnames()]
    for name in ("README.md", "LICENSE", "CITATION.cff", "src/equistein/py.typed"):
        check(name in held, f"{sdist.name} lacks {name}")
    metadata = zipfile.ZipFile(wheel).read(
        next(name for name in names if name.endswith(".dist-info/METADATA"))
    ).decode()  # fmt: skip
    extras = re.findall(r"^Provides-Extra: (\S+)", metadata, re.MULTILINE)
    for what in (wheel, sdist):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            command = str(install(str(what), place) / "equistein")
            call(command, *SMOKE.split(), "--out", "run", cwd=place)
            check((place / "run" / "report.html").is_file(), f"{what.name}: no report")
            print(f"{what.name}: installed, and a run has its report", flush=True)
    for extra in [name for name in extras if name not in LEFT_OUT]:
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            command = str(install(f"{wheel}[{extra}]", place) / "equistein")
            told = json.loads(call(command, "doctor", "--json", cwd=place))
            missing = [k for k, v in told["extras"].get(extra, {}).items() if v is None]
            check(not missing, f"[{extra}] leaves out {', '.join(missing)}")
            print(f"{wheel.name}[{extra}]: installed", flush=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
