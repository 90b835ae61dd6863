"""The Markdown page."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.renderers.markdown import cell, code, plain, prose, render_markdown
from whyhang.renderers.terminal import render_terminal
from whyhang.schemas.diagnosis import Diagnosis
from whyhang.schemas.missing import Missing
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.topology import Topology
from whyhang.schemas.verdict import Suspects, Undecided


def test_golden(diagnosis: Diagnosis, md_file: object) -> None:
    """The pages of the hand-built diagnoses."""
    assert render_markdown(diagnosis, files=("report.txt", "flame.svg")) == md_file


def test_it_says_who_and_why_and_what_is_missing(disk: Diagnosis) -> None:
    """Headline, suspects with node and kernel state, the deciding clause, the silent node."""
    page = render_markdown(disk)
    assert page.startswith("# Local hang: ranks 40-47 (gpu05)")
    assert "| 40-47 | gpu05 | trainer | `read_shard /workspace/data.py:88` | D (unin" in page
    assert '- ✓ yes: `some ranks: state == "D"`; yes: ranks 40-47' in page
    assert "(`hang.yaml:12`)" in page
    assert "- Ranks 56-63 on gpu07: " in page or "- Ranks 56-63: gpu07 gave no answer" in page
    assert "NCCL RAS: NCCL 2.21.5 has no RAS" in page
    assert "8 of 64 ranks were not read" in page


def test_tables_keep_their_columns(diagnosis: Diagnosis) -> None:
    """No name opens or closes a cell."""
    columns = None
    for line in render_markdown(diagnosis).splitlines():
        if not line.startswith("|"):
            columns = None
            continue
        bars = len(re.findall(r"(?<!\\)\|", line))
        assert columns in (None, bars), line
        columns = bars


def test_nothing_from_outside_becomes_html(nasty: Diagnosis) -> None:
    """Angle brackets show as such, outside of code spans as entities."""
    page = render_markdown(nasty)
    outside = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", page.replace("\\`", ""))
    assert "<script>" not in outside
    assert "&lt;script&gt;" in page
    assert set(re.findall(r"<[^>]*>", outside)) == {"<sub>", "</sub>"}
    assert "\x1b" not in page and "\u202e" not in page
    page.encode()


@given(st.text(min_size=1, max_size=40))
def test_a_code_span_holds_any_text(text: str) -> None:
    """The fence is longer than any run of backticks within."""
    span = code(text)
    fence = re.match("`+", span)
    assert fence is not None and span.endswith(fence[0])
    inner = span[len(fence[0]) : -len(fence[0])]
    assert fence[0] not in re.findall("`+", inner)


@given(st.text(max_size=40))
def test_escaped_text_has_no_markup_left(text: str) -> None:
    """No bar, star, backtick or bracket stands without its backslash."""
    shown = plain(text)
    assert not re.search(r"(?<!\\)(?:\\\\)*[*`|\[\]]", shown.replace("\\\\", ""))
    assert "<" not in shown and "\n" not in shown
    assert "|" not in cell(text).replace("\\|", "")


def test_wide_rank_lists_are_bounded(local: Diagnosis) -> None:
    """A scattered set of a thousand ranks does not fill the page."""
    suspects = Suspects(ranks=RankSet(range(0, 4000, 2)))
    page = render_markdown(replace(local, verdict=replace(local.verdict, suspects=suspects)))
    assert "/+1988" in page
    assert max(map(len, page.splitlines())) < 400


def test_there_is_no_run_of_blank_lines(diagnosis: Diagnosis) -> None:
    """Sections that have nothing to say leave no hole."""
    page = render_markdown(diagnosis)
    assert "\n\n\n" not in page
    assert page.endswith("\n") and not page.endswith("\n\n")


def test_nothing_missing_is_said_too(local: Diagnosis) -> None:
    """A reader must see that the list of gaps is empty, not left out."""
    whole = replace(local, incident=replace(local.incident, sources={}))
    assert "Nothing is missing" in render_markdown(whole)


def test_commands_in_our_own_sentences_stay_commands() -> None:
    """Backticks in pairs make code, a lone one is only a sign."""
    assert (
        prose("look: `dmesg | grep *`; then <wait>") == "Look: `dmesg | grep *`; then &lt;wait&gt;"
    )
    assert prose("a lone ` sign") == "A lone \\` sign"
    assert prose("`ls` first") == "`ls` first"


def test_undecided_rules_are_told_by_what_they_lack(local: Diagnosis) -> None:
    """A source that is missing is named once, with all the rules that needed it."""
    lacking = tuple(Undecided(rule=f"r/{n}", because=("no sample",)) for n in range(3))
    page = render_markdown(replace(local, verdict=replace(local.verdict, undecided=lacking)))
    assert "- undecided: `r/0`, `r/1`, `r/2`; missing: no sample" in page


@pytest.mark.parametrize("render", [render_markdown, lambda seen: "\n".join(render_terminal(seen))])
def test_the_source_of_the_topology_is_named(
    local: Diagnosis, render: Callable[[Diagnosis], str]
) -> None:
    """The report says which groups there are and who told, or why there are none."""
    groups = Topology(world_size=8, tensor=4, source="hang.yaml:7")
    assert "tp 4 x dp 2 (from hang.yaml:7)" in render(replace(local, topology=groups))
    text = render(replace(local, topology=Missing("tensor 3 does not divide the world")))
    assert "arallel groups: tensor 3 does not divide the world" in text
    assert "arallel groups" not in render(local)
