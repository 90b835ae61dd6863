"""The text for the terminal."""

from __future__ import annotations

import re

from whyhang.renderers.markdown import render_markdown
from whyhang.renderers.terminal import render_terminal
from whyhang.schemas.diagnosis import Diagnosis


def test_golden(diagnosis: Diagnosis, txt_file: object) -> None:
    """The texts of the hand-built diagnoses."""
    lines = render_terminal(diagnosis, files=(".whyhang/1/report.txt", ".whyhang/1/flame.svg"))
    assert "\n".join(lines) + "\n" == txt_file


def test_colour_adds_nothing_but_colour(diagnosis: Diagnosis) -> None:
    """Plain by default; with colour the same words."""
    plain = list(render_terminal(diagnosis, width=200))
    assert not any("\x1b" in line for line in plain)
    coloured = list(render_terminal(diagnosis, width=200, color=True))
    assert any("\x1b[" in line for line in coloured)
    words = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", line) for line in coloured).split()
    assert words == " ".join(plain).split()


def test_lines_fit_the_terminal(local: Diagnosis) -> None:
    """Sentences wrap; only what has no blank may stick out."""
    for line in render_terminal(local, width=60):
        assert len(line) <= 60 or " " not in line.strip()


def test_it_names_the_same_suspects_as_the_page(disk: Diagnosis) -> None:
    """Two outputs, one story."""
    text = " ".join(" ".join(render_terminal(disk)).split())
    page = render_markdown(disk)
    for fact in ("40-47", "gpu05", "read_shard /workspace/data.py:88", "folio_wait_bit_common"):
        assert fact in text and fact in page
