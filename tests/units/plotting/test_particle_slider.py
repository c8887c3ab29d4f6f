"""Particles on their way: the page by itself, and what happens as its slider moves."""

import json
import re

import numpy as np
import pytest

from browser import needs_browser, opened
from equistein.plotting import particle_slider

STEPS = np.array([0, 1, 5, 20])
# Two particles that go from the left to the right, the second one out of the panel.
ONE = np.stack([np.linspace([-1.0, y], [1.0 + y, y], 4) for y in (0.0, 5.0)], axis=1)
SPACE = np.concatenate([ONE, 7 * np.ones((4, 2, 1))], axis=-1)
DENSITY = np.eye(3)
LISTENS = 'slider.addEventListener("input", draw);'
LOOK = """<script>addEventListener("load", () => {
  const canvas = document.querySelector("canvas");
  const slider = document.querySelector("input");
  const look = () => ({
    step: document.querySelector("output").textContent,
    label: canvas.getAttribute("aria-label"),
    button: document.querySelector("button").textContent,
  });
  const last = canvas.toDataURL(), seen = [look()];
  slider.value = 0;
  slider.dispatchEvent(new Event("input"));
  const moved = canvas.toDataURL() !== last;
  seen.push(look());
  document.querySelector("button").click();
  seen.push(look());
  setTimeout(() => {
    seen.push(look());
    const back = canvas.toDataURL() === last;
    document.title = JSON.stringify({moved, back, seen});
  }, 3000);
});</script>"""


def page():
    return particle_slider(STEPS, {"a < b": ONE, "space": SPACE}, 2.0, DENSITY).html


def data_of(shown):
    return json.loads(re.search(r"shades} = (\{.*\});", shown)[1])


def looked_at(shown, folder):
    path = folder / "page.html"
    path.write_text(f"<!doctype html><title></title><body>{shown}{LOOK}")
    with opened(path, 1_200) as seen:
        told = "document.title.startsWith('{') ? document.title : null"
        return json.loads(seen.value(told))


def test_a_page_holds_the_places_of_all_particles_at_all_steps():
    data = data_of(page())
    assert data["steps"] == STEPS.tolist()
    frames = np.array(data["panels"]["a < b"]).reshape(4, 2, 2)
    assert np.allclose(frames[:, 0] / 999 * 4 - 2, ONE[:, 0], atol=4 / 999)
    assert np.all(frames[:, 1, 1] > 999)  # still outside, not on the edge
    assert data["panels"]["space"] == data["panels"]["a < b"]
    assert data["density"] == ["900", "090", "009"]
    assert data_of(particle_slider(STEPS, {"a": ONE}, 2.0).html)["density"] == []


def test_a_page_is_small_and_can_be_used_without_a_mouse_or_in_the_dark():
    shown = page()
    script = shown.replace(json.dumps(data_of(shown), separators=(",", ":")), "")
    assert len(script) < 6_000
    for part in ('type="range"', "<button", "aria-label", "prefers-color-scheme:dark"):
        assert part in shown
    assert not re.search(r"https?://", shown)
    assert "<" not in re.search(r"shades} = (.*)", shown)[1]  # of a name, no element


@pytest.mark.slow
@needs_browser
def test_the_picture_follows_the_slider(tmp_path):
    seen = looked_at(page(), tmp_path)
    assert seen["moved"]
    steps = [each["step"] for each in seen["seen"]]
    assert steps == ["step 20", "step 0", "step 0", "step 20"]
    assert seen["seen"][1]["label"] == "Particles of a < b, space at step 0"
    # Played to the end it is the picture that it began with.
    buttons = [each["button"] for each in seen["seen"]]
    assert buttons == ["Play", "Play", "Pause", "Play"]
    assert seen["back"]
    assert LISTENS in page()
    deaf = looked_at(page().replace(LISTENS, ""), tmp_path)
    assert not deaf["moved"]
