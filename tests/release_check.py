"""Install the wheel and the sdist in clean environments, and each extra alone."""

import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).parents[1]
NEEDED = ("__init__.pyi", "py.typed", "pretrained/c5h8o.eqx", "cli/_main.py")
LEFT_OUT = ("dev", "lint", "docs", "bench")  # which are for a checkout
URLS = ("Homepage", "Repository", "Documentation", "Changelog", "Issues")
POINTS = "import numpy; numpy.save('x.npy', numpy.random.normal(size=(40, 2)))"
SMOKE = (
    "fit x.npy --group cyclic:4 --num-epochs 2 --batch-size 8 --num-particles 6 "
    "--num-steps 2 --widths 4 --sample-steps 10 --num-samples 6 --quiet"
)

# What an extra is for, in small: each stops where a package is missing or too old.
USES = {
    "ase": """
import numpy as np
from ase.calculators.emt import EMT
from ase.cluster import Icosahedron
import equistein as es
atoms = Icosahedron("Cu", 1)
atoms.calc = EMT()
density = es.bridges.from_ase(atoms, temperature=600.0, container=5.0)
assert np.isfinite(density.energies(atoms.positions[None])).all()
assert len(es.bridges.to_ase(["Cu"], np.zeros((2, 1, 3)))) == 2
""",
    "bayes": """
import arviz_stats, blackjax, numpyro
import jax.numpy as jnp
import numpyro.distributions as dist
import equistein as es
model = lambda: numpyro.sample("x", dist.Normal(0.0, 1.0))
options = {"step_size": 0.5, "num_integration_steps": 3}
posterior = es.from_numpyro(model)
hmc = es.from_blackjax(blackjax.hmc, **options)
samples = posterior.run(0, hmc, num_chains=4, num_steps=20, num_draws=5)
assert "x" in es.to_arviz(samples).posterior
""",
    "pymc": """
import jax
import pymc as pm
from pymc.sampling.jax import get_jaxified_logp
import equistein as es
jax.config.update("jax_enable_x64", True)
with pm.Model() as model:
    pm.Normal("x", 0, 1, shape=2)
log_density = get_jaxified_logp(model)
parameters = es.Parameters({"x": jax.numpy.zeros(2)}, exchangeable={"x": 0})
posterior = es.Posterior(lambda tree: log_density([tree["x"]]), parameters)
assert jax.numpy.isfinite(posterior.log_density(jax.numpy.ones(2)))
""",
    "images": """
import pathlib
import numpy as np
from PIL import Image
import equistein as es
for name in ("a.png", "b.png"):
    Image.fromarray(np.full((4, 4), 9, np.uint8)).save(name)
assert es.data.read_image_folder(pathlib.Path("."))[0].shape == (2, 4, 4, 1)
""",
    "molecules": """
import numpy as np
import equistein as es
from equistein.plotting import molecule_viewer
far, orders = np.array([[[0, 0, 0], [0.92, 0, 0.0]]]), np.ones((1, 2, 2), int)
assert "need plotly" not in molecule_viewer(["H", "F"], far, orders).html
from rdkit import Chem
assert es.molecules.graph_smiles(Chem.MolFromSmiles("CO")) == "CO"
""",
    "sklearn": """
import sklearn.base
import equistein as es
model = sklearn.base.clone(es.EnergyModel("cyclic:4", ais_steps=0))
assert model.get_params()["group"] == "cyclic:4"
""",
    "sweep": f"""
{POINTS}
from equistein.cli import main
assert main("sweep {SMOKE} --over seed=0..1 --workers 1 --out jobs".split()) == 0
""",
    "tables": """
import numpy as np
from equistein.data import read_table, Table, write_table
for name in ("a.csv", "a.parquet"):
    write_table(name, Table(np.ones((2, 2), np.float32), ("x", "y")))
    assert read_table(name).columns == ("x", "y")
""",
}


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


def check_metadata(metadata: str) -> None:
    """Check what the package index shows: addresses, and links that lead somewhere."""
    urls = dict(re.findall(r"^Project-URL: (\w+), (https://\S+)$", metadata, re.M))
    check(set(urls) == set(URLS), f"the URLs are {', '.join(urls)}")
    cited = (ROOT / "CITATION.cff").read_text()
    told = f"CITATION.cff does not name {urls['Repository']}"
    check(f"repository-code: {urls['Repository']}\n" in cited, told)
    _, _, shown = metadata.partition("\n\n")
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", shown)
    check(len(links) > 10, "the long description has no links")
    for image, link in links:
        host = "https://raw.githubusercontent.com/" if image else "https://"
        check(link.startswith(host), f"a link of the description is relative: {link}")


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
    check_metadata(metadata)
    extras = re.findall(r"^Provides-Extra: (\S+)", metadata, re.MULTILINE)
    for what in (wheel, sdist):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            binaries = install(str(what), place)
            call(str(binaries / "python"), "-c", POINTS, cwd=place)
            call(str(binaries / "equistein"), *SMOKE.split(), "--out", "run", cwd=place)
            check((place / "run" / "report.html").is_file(), f"{what.name}: no report")
            print(f"{what.name}: installed, and a fit has its report", flush=True)
    used = {name for name in extras if name not in LEFT_OUT}
    check(used == set(USES), f"no use of {', '.join(used ^ set(USES))}")
    for extra, program in USES.items():
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            binaries = install(f"{wheel}[{extra}]", place)
            command = str(binaries / "equistein")
            told = json.loads(call(command, "doctor", "--json", cwd=place))
            missing = [k for k, v in told["extras"].get(extra, {}).items() if v is None]
            check(not missing, f"[{extra}] leaves out {', '.join(missing)}")
            call(str(binaries / "python"), "-c", program, cwd=place)
            print(f"{wheel.name}[{extra}]: installed and used", flush=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
