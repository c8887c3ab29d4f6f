"""Files of the repository's root are pages, too, and `llms.txt` lists all pages.

The change log, how to contribute and how to cite are written once, where GitHub shows
them. `llms.txt` has each page with its address, by the headings of the navigation.
"""

import pathlib
import re

from mkdocs.structure.files import File

_ROOT = pathlib.Path(__file__).parents[1]
_ORDINARY = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}


def _citation() -> str:
    text = (_ROOT / "CITATION.cff").read_text(encoding="utf-8")
    return (
        "# Cite\n\nPlease cite the software, and the paper that it starts from. "
        "`CITATION.cff` in the repository has both:\n\n"
        f"```yaml\n{text}```\n"
    )


def on_files(files, config, **_):
    """Add the pages."""
    made = {"citation.md": _citation()}
    for source, target in _ORDINARY.items():
        text = (_ROOT / source).read_text(encoding="utf-8")
        made[target] = re.sub(r"\]\(docs/", "](", text)
    for uri, content in made.items():
        files.append(File.generated(config, uri, content=content))
    return files


def _entries(items: list, depth: int = 2):
    for item in items:
        if item.is_section:
            yield f"\n{'#' * depth} {item.title}\n"
            yield from _entries(item.children, depth + 1)
        elif item.is_page:
            yield f"- [{item.title}]({item.file.url})"


def on_nav(nav, config, files, **_):
    """Add `llms.txt`."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    content = "\n".join([*lines, *_entries(nav.items), ""])
    files.append(File.generated(config, "llms.txt", content=content))
    return nav
