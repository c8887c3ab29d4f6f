import importlib
import pathlib
import re
import subprocess
import sys

import pytest

import equistein as es

ROOT = pathlib.Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def run(program):
    """Run a program as a user does, but for the process, which is slow to begin."""
    exec(compile(program, "program", "exec"), {"__name__": "program"})


def test_the_readme_s_first_program_runs_on_its_own(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", blocks("python")[0]],
        capture_output=True, text=True, timeout=300, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize(
    ("guide", "num", "picture"),
    [
        pytest.param("extending", 5, None, marks=pytest.mark.slow),
        pytest.param("index", 1, "samples.png", marks=pytest.mark.slow),
        pytest.param("sampling", 2, None, marks=pytest.mark.slow),
        pytest.param("particles", 2, None, marks=pytest.mark.slow),
        pytest.param("fitting", 4, None, marks=pytest.mark.slow),
        pytest.param("running", 2, None, marks=pytest.mark.slow),
        pytest.param("calculators", 2, None, marks=pytest.mark.slow),
        pytest.param("scaling", 3, None, marks=pytest.mark.slow),
        pytest.param("energies", 4, None, marks=pytest.mark.slow),
        pytest.param("posteriors", 5, "mixture.png", marks=pytest.mark.slow),
    ],
)
@pytest.mark.usefixtures("single_precision", "unchecked")
def test_a_guide_runs_and_its_programs_are_short(
    guide, num, picture, tmp_path, monkeypatch
):
    if guide == "calculators":
        pytest.importorskip("ase")
    page = (ROOT / "docs" / f"{guide}.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(programs) >= num
    assert [p for p in programs if len(p.splitlines()) > 25] == []
    monkeypatch.chdir(tmp_path)
    run("\n".join(programs))
    assert picture is None or (tmp_path / picture).exists()


def test_the_readme_names_commands_that_exist(capsys):
    from equistein.cli import main

    assert main(["--help"]) == 0
    explained = capsys.readouterr().out
    named = set(re.findall(r"^equistein (\w+)", "".join(blocks("bash")), re.MULTILINE))
    named |= set(re.findall(r"`equistein (\w+)", README))
    assert {"fit", "sample", "resume"} <= named
    for command in named:
        assert f"  {command} " in explained


def test_the_readme_names_targets_of_the_makefile():
    targets = set(
        re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    )
    named = set(re.findall(r"(?:^|`)make ([\w-]+)", README, re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


def test_the_readme_names_what_the_library_has():
    for dotted in set(re.findall(r"\bes\.([\w.]*\w)", README)):
        found = es
        for part in dotted.split("."):
            assert hasattr(found, part), f"es.{dotted}"
            found = getattr(found, part)


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda p: p.name)
def test_files_that_a_page_links_to_exist(page):
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
        assert (page.parent / link).exists(), link


def test_every_reference_page_names_a_package():
    pages = [page for page in PAGES if page.parent.name == "reference"]
    named = {
        name for page in pages for name in re.findall(r"^::: (\S+)", page.read_text(),
                                                      re.MULTILINE)
    }  # fmt: skip
    for name in named:
        importlib.import_module(name)
    packages = ("groups", "features", "kernels", "targets", "energies", "samplers")
    packages += ("metrics", "training", "diffusion", "models", "posteriors", "bridges")
    assert {f"equistein.{package}" for package in packages} <= named


def test_every_code_block_of_a_guide_is_run():
    """Those in the list above, and those that a package's own example is."""
    guides = {path.stem for path in (ROOT / "docs").glob("*.md")}
    with_code = {
        stem for stem in guides if "```python" in (ROOT / f"docs/{stem}.md").read_text()
    }
    listed = re.findall(r'^        (?:pytest.param)?\("(\w+)", \d', pathlib.Path(
        __file__).read_text(), re.MULTILINE)  # fmt: skip
    assert with_code == set(listed)
