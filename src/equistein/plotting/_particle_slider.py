"""Particles on their way, with a slider over the steps, which need no network."""

import json
from collections.abc import Mapping

import numpy as np

from equistein.plotting._page import Page

_LEVELS = 999  # coordinates are whole numbers up to this
_SHADES = 9  # those of the density, a digit each
_PAGE = """<style>
:root{color-scheme:light dark;--text:#222;--ground:#fff;--dot:#1f5fa8}
@media(prefers-color-scheme:dark){:root{--text:#e6e6e6;--ground:#161719;--dot:#8fc1ff}}
body{margin:0;font:14px/1.4 system-ui,sans-serif;color:var(--text);background:var(--ground)}
canvas{display:block;width:100%}
.bar{display:flex;gap:.6rem;align-items:center;padding:.3rem .4rem}
.bar input{flex:1;min-width:0}.bar button{font:inherit;min-width:4.5rem}
output{min-width:6.5rem;font-variant-numeric:tabular-nums}
</style>
<div class="bar"><button type="button">Play</button><input type="range" min="0" step="1" aria-label="Step of the run"><output></output></div>
<canvas role="img"></canvas>
<script>
const {steps, panels, density, levels, shades} = DATA;
const canvas = document.querySelector("canvas"), slider = document.querySelector("input");
const button = document.querySelector("button"), text = document.querySelector("output");
const names = Object.keys(panels), last = steps.length - 1, title = 22;
let timer = null;
slider.max = slider.value = last;
function layout(width) {
  const height = Math.min(innerHeight, 560) - slider.parentNode.offsetHeight;
  let best = {side: 0, columns: 1};
  for (let columns = 1; columns <= names.length; columns++) {
    const rows = Math.ceil(names.length / columns);
    const side = Math.max(40, Math.min(width / columns, height / rows - title));
    if (side > best.side) best = {side, columns, rows};
  }
  return best;
}
function shade(pen, left, top, side, color) {
  const rows = density.length, size = side / rows;
  pen.fillStyle = color;
  density.forEach((row, i) => [...row].forEach((digit, j) => {
    pen.globalAlpha = 0.4 * digit / shades;
    if (digit > 0) pen.fillRect(left + j * size, top + side - (i + 1) * size, size, size);
  }));
  pen.globalAlpha = 1;
}
function draw() {
  const frame = Number(slider.value), scale = devicePixelRatio || 1;
  const width = document.documentElement.clientWidth;
  const {side, columns, rows} = layout(width);
  const height = rows * (side + title);
  canvas.style.height = height + "px";
  canvas.width = width * scale;
  canvas.height = height * scale;
  const look = getComputedStyle(document.documentElement);
  const [text, dot] = ["--text", "--dot"].map(name => look.getPropertyValue(name).trim());
  const pen = canvas.getContext("2d"), margin = (width - columns * side) / 2;
  pen.scale(scale, scale);
  pen.font = "13px system-ui,sans-serif";
  pen.textAlign = "center";
  names.forEach((name, index) => {
    const left = margin + (index % columns) * side + 3, area = side - 6;
    const top = Math.floor(index / columns) * (side + title) + title;
    pen.fillStyle = text;
    pen.fillText(name, left + area / 2, top - 6, area);
    shade(pen, left, top, area, text);
    pen.strokeStyle = text;
    pen.globalAlpha = 0.35;
    pen.strokeRect(left, top, area, area);
    pen.globalAlpha = 0.85;
    pen.save();
    pen.beginPath();
    pen.rect(left, top, area, area);
    pen.clip();
    pen.fillStyle = dot;
    const places = panels[name][frame], radius = Math.max(1.6, side / 90);
    for (let i = 0; i < places.length; i += 2) {
      pen.beginPath();
      pen.arc(left + area * places[i] / levels, top + area * (1 - places[i + 1] / levels), radius, 0, 7);
      pen.fill();
    }
    pen.restore();
    pen.globalAlpha = 1;
  });
  text.textContent = "step " + steps[frame];
  slider.setAttribute("aria-valuetext", text.textContent);
  canvas.setAttribute("aria-label", "Particles of " + names.join(", ") + " at " + text.textContent);
}
function stop() {
  clearInterval(timer);
  timer = null;
  button.textContent = "Play";
}
function advance() {
  slider.value = Number(slider.value) + 1;
  draw();
  if (Number(slider.value) >= last) stop();
}
button.addEventListener("click", () => {
  if (timer) return stop();
  if (Number(slider.value) >= last) slider.value = 0;
  draw();
  button.textContent = "Pause";
  timer = setInterval(advance, 150);
});
slider.addEventListener("input", draw);
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
draw();
</script>"""  # noqa: E501


def particle_slider(
    steps: np.ndarray,
    particles: Mapping[str, np.ndarray],
    reach: float,
    density: np.ndarray | None = None,
) -> Page:
    """Return particles at several steps, a panel a sampler, with a slider and a button.

    Of points with more than two coordinates the first two are shown.

    Args:
        steps: The step of each frame.
        particles: For each sampler `(frame, particle, dim)`, with two coordinates or
            more.
        reach: Half the side of a panel.
        density: A density on a square grid over [-reach, reach)^2, as shades, or None.
    """
    data = {
        "steps": [int(step) for step in steps],
        "panels": {name: _places(points, reach) for name, points in particles.items()},
        "density": [] if density is None else _digits(density),
        "levels": _LEVELS,
        "shades": _SHADES,
    }
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return Page(_PAGE.replace("DATA", text, 1))


def _places(points: np.ndarray, reach: float) -> list[list[int]]:
    """Return x, y, x, y, ... of each frame, in whole numbers; outside is outside."""
    shares = np.clip((points[..., :2] + reach) / (2 * reach), -0.1, 1.1)
    return np.rint(_LEVELS * shares).astype(int).reshape(len(points), -1).tolist()


def _digits(density: np.ndarray) -> list[str]:
    """Return the density in shades, a row of the grid a string."""
    shares = np.rint(_SHADES * density / density.max()).astype(int)
    return ["".join(map(str, row)) for row in shares]
