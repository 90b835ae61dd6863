"""The flame graph in a real browser."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from whyhang.renderers.flamegraph import render_flamegraph
from whyhang.schemas.diagnosis import Diagnosis

CHROMIUM = Path("/usr/bin/chromium")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium here"),
]

# Appended to the picture: plays a user and leaves what it saw in the document.
_PLAY = """<script><![CDATA[
var seen = [], frames = document.getElementById("frames");
function press(key) { window.dispatchEvent(new KeyboardEvent("keydown", {key: key})); }
function count(selector) { return frames.querySelectorAll(selector).length; }
var inputs = document.querySelectorAll("input");
seen.push(inputs.length);
inputs[1].value = "3"; inputs[1].dispatchEvent(new Event("input"));
seen.push(count(".hit") > 0, count(".hit") < frames.children.length);
inputs[1].value = ""; inputs[0].value = "read_shard"; inputs[0].dispatchEvent(new Event("input"));
seen.push(count(".hit"));
var box = frames.querySelector(".hit rect"), before = +box.getAttribute("width");
box.parentNode.dispatchEvent(new MouseEvent("click", {bubbles: true}));
seen.push(+box.getAttribute("width") > before);
press("Escape");
seen.push(+box.getAttribute("width") === before, count(".hit"));
document.querySelector("desc").textContent = "SEEN " + seen.join(" ");
]]></script>"""


def chromium(tmp_path: Path, *arguments: str) -> str:
    """Run Chromium without a window; what it prints."""
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=1280,900",
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, timeout=100, check=True)
    return done.stdout.decode()


def test_the_script_zooms_searches_and_filters(local: Diagnosis, tmp_path: Path) -> None:
    """Rank filter, search, zoom and reset do what the header says."""
    assert local.tree is not None
    page = tmp_path / "flame.svg"
    text = render_flamegraph(local.tree, title=local.verdict.headline)
    page.write_text(text.replace("</svg>", _PLAY + "</svg>"), encoding="utf-8")
    document = chromium(tmp_path, "--dump-dom", page.as_uri())
    match = re.search(r"SEEN ([^<]*)<", document)
    assert match is not None
    assert match[1] == "2 true true 1 true true 0"


def test_it_can_be_shown(nasty: Diagnosis, tmp_path: Path) -> None:
    """Names that try to break out show as a picture, and no script of theirs runs."""
    assert nasty.tree is not None
    page, shot = tmp_path / "flame.svg", tmp_path / "flame.png"
    page.write_text(render_flamegraph(nasty.tree, title=nasty.verdict.headline), encoding="utf-8")
    chromium(tmp_path, f"--screenshot={shot}", page.as_uri())
    assert shot.stat().st_size > 10_000
