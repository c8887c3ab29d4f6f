"""What a page does in headless Chromium, where there is one.

A window of it is at least 500 pixels wide, so that pages are looked at in a frame.
"""

import html
import json
import re
import shutil
import subprocess

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(
    CHROMIUM is None,
    reason="Chromium is not installed: apt-get install chromium, to look at pages",
)
WIDTHS = (1200, 400)
_HEIGHT = 900
_FLAGS = (
    "--headless --no-sandbox --use-gl=angle --use-angle=swiftshader --hide-scrollbars "
    "--enable-unsafe-swiftshader --virtual-time-budget=20000 --window-size=1300,950"
).split()
_ERRORS = """<script>window.errors = [];
addEventListener("error", event => errors.push(String(event.message)));
addEventListener("unhandledrejection", event => errors.push(String(event.reason)));
</script>"""
# What a plot in a frame of a report says of itself, once it is drawn.
_PLOT = (
    _ERRORS
    + """<script>addEventListener("load", () => {
  let tries = 0;
  const look = () => {
    const plot = document.querySelector(".js-plotly-plot");
    const scenes = plot && plot._fullLayout && plot._fullLayout._subplots.gl3d || [];
    if ((!scenes.length || tries < 5) && tries++ < 100) return setTimeout(look, 100);
    const domains = scenes.map(name => plot._fullLayout[name].domain);
    parent.postMessage({errors, scenes: scenes.length,
      columns: new Set(domains.map(domain => domain.x[0])).size,
      filled: plot ? plot.offsetHeight / innerHeight : 0,
      wide: document.documentElement.scrollWidth > innerWidth}, "*");
  };
  look();
});</script>"""
)
_REPORT = """<script>
const plots = [];
const frames = [...document.querySelectorAll("iframe")];
addEventListener("message", event => plots.push(event.data));
addEventListener("load", () => {
  const image = document.querySelector("figure img");
  if (image) image.click();
  const grown = Boolean(document.querySelector("img.large"));
  if (image) image.click();
  let tries = 0;
  const tell = () => {
    if (plots.length < frames.length && tries++ < 150) return setTimeout(tell, 100);
    parent.postMessage(JSON.stringify({
      errors, grown, shrunk: !document.querySelector("img.large"),
      width: document.documentElement.scrollWidth, window: innerWidth,
      pictures: [...document.images].filter(each => each.naturalWidth > 0).length,
      images: document.images.length,
      alts: [...document.images].filter(each => each.alt).length,
      titles: frames.filter(each => each.title).length,
      frames: frames.length, plots,
    }), "*");
  };
  tell();
});</script>"""
_HOST = """<!doctype html><body style="margin:0">
<script>addEventListener("message", event => {{ document.title = event.data; }});
</script>
<iframe src="{src}" style="border:0;width:{width}px;height:{height}px"></iframe></body>
"""


def dom_of(path):
    """Return the page as it stands once its scripts have run."""
    done = subprocess.run(
        [CHROMIUM, *_FLAGS, "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    return done.stdout


def picture_of(page, width, image, height=_HEIGHT):
    """Write a screenshot of a page at a width, to be looked at."""
    host = image.with_suffix(".html")
    host.write_text(_HOST.format(src=page.as_uri(), width=width, height=height))
    size = f"--window-size={max(width, 500)},{height}"
    subprocess.run(
        [CHROMIUM, *_FLAGS, size, f"--screenshot={image}", host.as_uri()],
        capture_output=True, timeout=180, check=True,
    )  # fmt: skip


def looked_at(page, folder, width):
    """Return what there is to see in a page at a width, its picture clicked twice."""
    copy, host = (folder / f"{name}-{width}.html" for name in ("copy", "host"))
    text = page.read_text().replace("<head>", f"<head>{_ERRORS}", 1)
    text = text.replace('srcdoc="', f'srcdoc="{html.escape(_PLOT)}')
    copy.write_text(text.replace("</body>", f"{_REPORT}</body>", 1))
    host.write_text(_HOST.format(src=copy.as_uri(), width=width, height=_HEIGHT))
    found = re.search(r"<title>(\{.*?\})</title>", dom_of(host))
    assert found, "the page's scripts did not run"
    return json.loads(html.unescape(found[1]))


def check_report(page, folder):
    """Assert that a report shows pictures and plots, without errors, at both widths."""
    for width in WIDTHS:
        seen = looked_at(page, folder, width)
        assert seen["errors"] == []
        assert seen["window"] == width
        assert seen["width"] <= width
        assert seen["pictures"] == seen["images"] == seen["alts"] > 0
        assert seen["grown"]
        assert seen["shrunk"]
        assert len(seen["plots"]) == seen["frames"] == seen["titles"]
        for plot in seen["plots"]:
            check_plot(plot, width)


def check_plot(plot, width):
    """Assert that molecules fill their frame, in two columns where it is narrow."""
    assert plot["errors"] == []
    assert plot["scenes"] > 0
    assert plot["columns"] == min(plot["scenes"], 2 if width < 600 else 4)
    assert 0.95 < plot["filled"] <= 1.01
    assert not plot["wide"]
