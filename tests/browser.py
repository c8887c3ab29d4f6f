"""What a page does in headless Chromium, where there is one."""

import json
import re
import shutil
import subprocess

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
_FLAGS = (
    "--headless --no-sandbox --use-gl=angle --use-angle=swiftshader --hide-scrollbars "
    "--enable-unsafe-swiftshader --virtual-time-budget=20000 --dump-dom"
).split()
_BEFORE = """<script>window.errors = [];
addEventListener("error", event => errors.push(String(event.message)));</script>"""
_AFTER = """<script>addEventListener("load", () => {
  const image = document.querySelector("figure img");
  if (image) image.click();
  const grown = Boolean(document.querySelector("img.large"));
  if (image) image.click();
  document.title = JSON.stringify({
    errors, grown, shrunk: !document.querySelector("img.large"),
    width: document.documentElement.scrollWidth, window: innerWidth,
    pictures: [...document.images].filter(each => each.naturalWidth > 0).length,
    alts: [...document.images].filter(each => each.alt).length,
  });
});</script>"""


def dom_of(path, width=1200):
    """Return the page as it stands once its scripts have run."""
    done = subprocess.run(
        [CHROMIUM, *_FLAGS, f"--window-size={width},900", path.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return done.stdout


def looked_at(page, folder, width):
    """Return what there is to see in a page at a width, its picture clicked twice."""
    copy = folder / f"{width}.html"
    html = page.read_text().replace("<head>", f"<head>{_BEFORE}", 1)
    copy.write_text(html.replace("</body>", f"{_AFTER}</body>", 1))
    found = re.search(r"<title>(\{.*?\})</title>", dom_of(copy, width))
    assert found, "the page's scripts did not run"
    return json.loads(found[1].replace("&lt;", "<").replace("&amp;", "&"))


def check_report(page, folder):
    """Assert that a report shows its pictures, without errors, at both widths."""
    for width in (1200, 500):  # a window is at least 500 wide
        seen = looked_at(page, folder, width)
        assert seen["errors"] == []
        assert seen["width"] <= seen["window"]
        assert seen["pictures"] == seen["alts"] > 0
        assert seen["grown"]
        assert seen["shrunk"]
