"""The gallery has a page for each experiment, with its command and a picture."""

import pathlib
import re

import pytest

from experiments import experiment, MODULES

DOCS = pathlib.Path(__file__).parents[2] / "docs"
GALLERY = DOCS / "gallery"
LARGEST = 150_000  # bytes of a picture


@pytest.mark.parametrize("name", MODULES)
def test_an_experiment_has_a_page(name):
    page = (GALLERY / f"{name}.md").read_text()
    assert page.startswith(f"# {name}\n")
    assert re.search(rf"^python -m experiments {name}\b", page, re.MULTILINE)
    if experiment(name).figure.startswith(("figure", "section")):
        assert "\n## Beside the paper\n" in page
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", page)
    assert pictures
    assert all((GALLERY / file).stat().st_size <= LARGEST for file in pictures)


def test_the_index_and_the_navigation_have_every_page():
    index = (DOCS / "gallery.md").read_text()
    navigation = (DOCS.parent / "mkdocs.yml").read_text()
    linked = set(re.findall(r"\]\(gallery/([\w-]+)\.md\)", index))
    listed = set(re.findall(r": gallery/([\w-]+)\.md$", navigation, re.MULTILINE))
    files = {page.stem for page in GALLERY.glob("*.md")}
    assert linked == listed == files == set(MODULES)
