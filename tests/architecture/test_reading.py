"""Pages are easy to read: short sentences, few long ones, and not too many lines."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
GUIDES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
GUIDES += sorted((DOCS / "tutorials").glob("*.md"))
MEAN, LONG, FRACTION, LINES = 18, 35, 0.03, 6_500


def sentences(page):
    """The numbers of words of the sentences of a page, without code and tables."""
    text = re.sub(r"^```.*?^```", "\n", page, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\$\$.*?\$\$", " formula. ", text, flags=re.DOTALL)
    text = re.sub(r"\$[^$]+\$", "formula", text)
    text = re.sub(r"`[^`]+`", "code", text)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^(\||#|:::|    ).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*([-*]|\d+\.) ", "\n\n", text, flags=re.MULTILINE)
    lengths = []
    for paragraph in re.split(r"\n\s*\n", re.sub(r"[*_]", " ", text)):
        for sentence in re.split(r"(?<=[.!?])\)?\s+(?=[A-Z(\d]|code)", paragraph):
            words = re.findall(r"[A-Za-z][\w'’-]*", sentence)
            lengths += [len(words)] if len(words) > 2 else []
    return lengths


def fraction_of_long(lengths):
    return sum(length > LONG for length in lengths) / len(lengths)


def test_guides_and_tutorials_have_short_sentences():
    by_page = {page.name: sentences(page.read_text()) for page in GUIDES}
    lengths = sum(by_page.values(), [])
    longest = {name: max(each) for name, each in by_page.items() if each}
    assert sum(lengths) / len(lengths) <= MEAN
    assert fraction_of_long(lengths) <= FRACTION, longest


def test_sentences_are_counted():
    page = (
        "# Title\n\nOne two three. Four five\nsix seven!\n\n```\nno\n```\n| a | b |\n"
    )
    assert sentences(page) == [3, 4]
    assert fraction_of_long(sentences("word " * 36 + ".")) == 1


def test_the_documents_are_not_too_long():
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    assert sum(len(page.read_text().splitlines()) for page in pages) <= LINES
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


@pytest.mark.parametrize("heading", ["Get started", "Tutorials", "How to"])
def test_the_site_has_its_headings(heading):
    assert f"\n  - {heading}:\n" in (ROOT / "mkdocs.yml").read_text()
