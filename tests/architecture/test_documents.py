import ast
import pathlib
import re
import subprocess
import sys

import pytest

import equistein as es

ROOT = pathlib.Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = sorted((ROOT / "docs").rglob("*.md"))
GUIDES = [
    page for page in PAGES
    if page.parent.name == "docs" and "```python" in page.read_text()
]  # fmt: skip


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


@pytest.mark.slow
@pytest.mark.parametrize("guide", GUIDES, ids=lambda page: page.stem)
@pytest.mark.usefixtures("single_precision", "unchecked")
def test_a_guide_runs(guide, tmp_path, monkeypatch):
    if guide.stem == "calculators":
        pytest.importorskip("ase")
    if guide.stem == "force-fields":
        pytest.importorskip("openmm", reason="needs OpenMM, pip install openmm")
    programs = re.findall(r"```python\n(.*?)```", guide.read_text(), flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    run("\n".join(programs))


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


def test_troubleshooting_has_each_exception_and_warning():
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    names = set()
    for path in (ROOT / "src").rglob("*.py"):
        names |= set(re.findall(
            r"^class ([A-Z]\w+)\(\w*(?:Error|Exception|Warning|Interrupt)\):",
            path.read_text(), flags=re.MULTILINE,
        ))  # fmt: skip
    assert "SamplingWarning" in names
    assert names == {name for name in names if f"`{name}" in page}


def texts_of_the_source():
    """All texts of the library, with what is put into them left out."""
    texts = []
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = [getattr(part, "value", "") for part in node.values]
                texts.append("".join(p if isinstance(p, str) else "\0" for p in parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\n".join(texts)


def test_troubleshooting_quotes_messages_of_the_source():
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    section = page.split("## The commonest `ValueError`s")[1].split("\n## ")[0]
    quoted = re.findall(r'^\| "([^"]+)"', section, flags=re.MULTILINE)
    assert len(quoted) >= 30
    known = texts_of_the_source()
    assert [text for text in quoted if text not in known] == []
