"""What a page does in headless Chromium, where there is one, by its DevTools."""

import contextlib
import html
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(
    CHROMIUM is None,
    reason="Chromium is not installed: apt-get install chromium, to look at pages",
)
WIDTHS = (1200, 400)
_HEIGHT = 900
_PATIENCE = 60  # seconds in which all plots are drawn, on a busy machine
_FLAGS = (
    "--headless --no-sandbox --use-gl=angle --use-angle=swiftshader --hide-scrollbars "
    "--enable-unsafe-swiftshader --no-first-run --remote-debugging-pipe"
).split()
_ERRORS = """<script>window.errors = [];
addEventListener("error", event => errors.push(String(event.message)));
addEventListener("unhandledrejection", event => errors.push(String(event.reason)));
</script>"""
# What a plot in a frame of a report says of itself, once it is drawn.
_PLOT = (
    _ERRORS
    + """<script>addEventListener("load", () => {
  const began = Date.now();
  const look = () => {
    const plot = document.querySelector(".js-plotly-plot");
    const scenes = plot && plot._fullLayout && plot._fullLayout._subplots.gl3d || [];
    const domains = scenes.map(name => plot._fullLayout[name].domain);
    const columns = new Set(domains.map(domain => domain.x[0])).size;
    const drawn = scenes.length && innerWidth && Date.now() > began + 1000;
    if (!drawn && Date.now() < began + 40000) return setTimeout(look, 200);
    parent.postMessage({errors, scenes: scenes.length, columns,
      filled: plot ? plot.offsetHeight / innerHeight : 0,
      wide: document.documentElement.scrollWidth > innerWidth}, "*");
  };
  look();
});</script>"""
)
_REPORT = """<script>
const plots = [];
addEventListener("message", event => plots.push(event.data));
</script>"""
_SEEN = """(() => {
  const frames = [...document.querySelectorAll("iframe")];
  if (document.readyState !== "complete" || plots.length < frames.length) return null;
  const image = document.querySelector("figure img");
  if (image) image.click();
  const grown = Boolean(document.querySelector("img.large"));
  if (image) image.click();
  return JSON.stringify({
    errors, grown, shrunk: !document.querySelector("img.large"),
    width: document.documentElement.scrollWidth, window: innerWidth,
    pictures: [...document.images].filter(each => each.naturalWidth > 0).length,
    images: document.images.length,
    alts: [...document.images].filter(each => each.alt).length,
    titles: frames.filter(each => each.title).length,
    frames: frames.length, plots,
  });
})()"""


class Page:
    """A page of a width in pixels, in a browser of its own, which uses a folder."""

    def __init__(self, path, width, folder):
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # The pipe's ends are the files 3 and 4, as DevTools have it.
        shell = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, CHROMIUM, *_FLAGS, f"--user-data-dir={folder}"],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._numbers, self._rest, self._session = itertools.count(1), b"", None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        found = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=_HEIGHT,
            deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        self.call("Page.navigate", url=path.as_uri())

    def call(self, method, **parameters):
        """Return what a method of DevTools answers."""
        number = next(self._numbers)
        told = {"id": number, "method": method, "params": parameters}
        if self._session:
            told["sessionId"] = self._session
        os.write(self._write, json.dumps(told).encode() + b"\0")
        while True:
            message, end, rest = self._rest.partition(b"\0")
            if not end:
                more = os.read(self._read, 2**16)
                assert more, "Chromium ended"
                self._rest += more
                continue
            self._rest = rest
            answer = json.loads(message)
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def value(self, expression):
        """Return the value of an expression once it is not null."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            found = self.call("Runtime.evaluate", expression=expression)["result"]
            if found.get("value") is not None:
                return found["value"]
            time.sleep(0.2)
        raise AssertionError("the page's scripts did not run")

    def close(self):
        """End the browser."""
        self._process.kill()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)


@contextlib.contextmanager
def opened(path, width):
    """Give a page that is closed at the end."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page = Page(path, width, folder)
        try:
            yield page
        finally:
            page.close()


def looked_at(page, folder, width):
    """Return what there is to see in a page at a width, its picture clicked twice."""
    copy = folder / f"copy-{width}.html"
    text = page.read_text().replace("<head>", f"<head>{_ERRORS}{_REPORT}", 1)
    copy.write_text(text.replace('srcdoc="', f'srcdoc="{html.escape(_PLOT)}'))
    with opened(copy, width) as seen:
        return json.loads(seen.value(_SEEN))


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
            check_frame(plot)


def check_frame(plot):
    """Assert that molecules fill their frame, in four columns."""
    assert plot["errors"] == []
    assert plot["scenes"] > 0
    assert plot["columns"] == min(plot["scenes"], 4)
    assert 0.95 < plot["filled"] <= 1.01
    assert not plot["wide"]
