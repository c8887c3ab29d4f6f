"""The gallery has a page for each experiment, with what a reader looks for in it."""

import pathlib
import re

import pytest

from experiments import MODULES

DOCS = pathlib.Path(__file__).parents[2] / "docs"
GALLERY = DOCS / "gallery"
_LARGEST = 150_000  # bytes of a picture
_LONGEST = 45  # lines of a page

_COMPLETE = """# toy

One sentence.

```bash
python -m experiments toy
```

Takes 12 s of processor time.

![What is seen](seen.png)

## Beside the paper

The same.
"""


def faults(name: str, page: str, folder: pathlib.Path) -> list[str]:
    """Return what the page of an experiment lacks."""
    commands = "".join(re.findall(r"```bash\n(.*?)```", page, re.DOTALL))
    times = re.findall(r"\d (?:s|min|minutes)\b", page)
    pictures = re.findall(r"!\[([^]]*)\]\(([^)]+)\)", page)
    files = [folder / file for _, file in pictures]
    lacks = {
        "its title": not page.startswith(f"# {name}\n"),
        "its command": not re.search(
            rf"^python -m experiments {name}\b", commands, re.M
        ),
        "a time": not times,
        "whose time it is": not re.search("processor time|beside other work", page),
        "a picture": not pictures,
        "a text for a picture": not all(alt.strip() for alt, _ in pictures),
        "a file of a picture": not all(file.exists() for file in files),
        "a small picture": any(
            file.stat().st_size > _LARGEST for file in files if file.exists()
        ),
        "the paper": not re.search("^## Beside the paper$", page, re.M),
        "brevity": len(page.splitlines()) > _LONGEST,
    }
    return [what for what, lacking in lacks.items() if lacking]


@pytest.mark.parametrize("name", MODULES)
def test_an_experiment_has_a_page(name):
    page = GALLERY / f"{name}.md"
    assert page.exists()
    assert faults(name, page.read_text(), GALLERY) == []


@pytest.mark.parametrize(
    ("change", "lack"),
    [
        (("# toy", "# tye"), "its title"),
        (("experiments toy", "experiments toys"), "its command"),
        (("12 s", "a while"), "a time"),
        (("processor time", "time"), "whose time it is"),
        (("![What is seen](seen.png)", ""), "a picture"),
        (("What is seen", " "), "a text for a picture"),
        (("seen.png", "unseen.png"), "a file of a picture"),
        (("seen.png", "large.png"), "a small picture"),
        (("## Beside the paper", "## Results"), "the paper"),
        (("The same.", "The same.\n" * _LONGEST), "brevity"),
    ],
)
def test_a_page_that_lacks_something_is_found(change, lack, tmp_path):
    (tmp_path / "seen.png").write_bytes(b"")
    (tmp_path / "large.png").write_bytes(bytes(_LARGEST + 1))
    assert faults("toy", _COMPLETE, tmp_path) == []
    assert faults("toy", _COMPLETE.replace(*change), tmp_path) == [lack]


def test_the_index_and_the_navigation_have_every_page():
    index = (DOCS / "gallery.md").read_text()
    navigation = (DOCS.parent / "mkdocs.yml").read_text()
    linked = set(re.findall(r"\]\(gallery/([\w-]+)\.md\)", index))
    listed = set(re.findall(r": gallery/([\w-]+)\.md$", navigation, re.MULTILINE))
    files = {page.stem for page in GALLERY.glob("*.md")}
    assert linked == listed == files == set(MODULES)
