"""Names from outside never become markup, escape sequences or pages without end."""

from __future__ import annotations

import re
import xml.dom.minidom
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from whyhang.engine.diagnose import diagnose
from whyhang.engine.reports import render_reports
from whyhang.renderers.terminal import render_terminal
from whyhang.rules.load import load_ruleset
from whyhang.schemas.diagnosis import Diagnosis
from whyhang.schemas.frame import Frame
from whyhang.schemas.incident import Incident, Node, Source
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stack import Stack, Thread

Build = Callable[[Mapping[str, Any]], Incident]
EVIL = (
    '"></title><script>alert(1)</script>\x1b[31m\n# pwn | `x` **b** [a](javascript:x);@|1-2\u202e'
)
ESCAPED = re.compile(r"\\.")
CODE_SPAN = re.compile(r"(`+)(?:(?!\1).)+?\1(?!`)")


def spoil(line: Process) -> Process:
    """The process with hostile names everywhere."""
    threads = line.threads
    if not isinstance(threads, Missing):
        bad = Frame(EVIL, "/home/" + EVIL, EVIL, 3)
        more = Thread(name=EVIL, stack=Stack((bad, *threads[0].stack.frames)))
        main = replace(threads[0], stack=Stack((bad, *threads[0].stack.frames)))
        threads = (main if line.rank == 2 else threads[0], more)
    return replace(line, node=EVIL, name=EVIL, cmdline=(EVIL,), wchan=EVIL, threads=threads)


@pytest.fixture
def hostile(build_incident: Build) -> Diagnosis:
    """A diagnosis that names rank 2, all of whose texts are hostile."""
    incident = build_incident({"ranks": 16, "trainers": {"*": "backward", 2: "user_sleep"}})
    return diagnose(
        replace(
            incident,
            job_id=EVIL,
            job_name=EVIL,
            print_id=EVIL,
            taken_at=EVIL,
            finished_at=EVIL,
            nodes=tuple(replace(node, name=EVIL, reason=EVIL) for node in incident.nodes),
            samples=tuple(
                replace(sample, at=EVIL, processes=tuple(map(spoil, sample.processes)))
                for sample in incident.samples
            ),
            progress=replace(incident.progress, last_line=EVIL),
            sources={EVIL: Source(ok=False, reason=EVIL)},
        ),
        load_ruleset(),
    )


def test_reports_hold_no_foreign_markup(hostile: Diagnosis) -> None:
    """No report has an escape sequence, a foreign line or tag; the pictures stay XML."""
    assert hostile.verdict.suspects.ranks == RankSet([2])
    for name, text in render_reports(hostile).items():
        assert "\x1b" not in text, name
        assert not re.search(r"^# pwn", text, re.MULTILINE), name
        if name.endswith(".svg"):
            xml.dom.minidom.parseString(text.encode())
            assert "<script>alert" not in text
        if name.endswith(".md"):
            outside = CODE_SPAN.sub("", ESCAPED.sub("", text))
            assert "<script" not in outside
            assert "[a]" not in outside


def test_the_terminal_gets_no_foreign_sequences(hostile: Diagnosis) -> None:
    """Neither names nor paths nor the command can move the cursor or change colours."""
    text = "\n".join(render_terminal(hostile, files=(EVIL,), command=EVIL))
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_pages_of_large_jobs_stay_short(build_incident: Build) -> None:
    """Hundreds of places, reasons and silent nodes do not make hundreds of lines."""
    trainers: dict[Any, Any] = {"*": "backward"}
    trainers |= {rank: f"@part{rank}.py:7 work" for rank in range(300)}
    trainers |= {
        rank: {"state": "D", "wchan": "nfs_wait", "unread": f"timed out, pid {rank}"}
        for rank in range(300, 400)
    }
    incident = build_incident({"ranks": 1024, "trainers": trainers})
    silent = tuple(
        Node(name=f"gpu{n}", ranks=RankSet([2000 + n]), status="not_collected", reason="not asked")
        for n in range(300)
    )
    diagnosis = diagnose(replace(incident, nodes=(*incident.nodes, *silent)), load_ruleset())
    page = render_reports(diagnosis)["diagnosis.md"]
    assert len(page.splitlines()) < 220
    assert len(page) < 40_000
    assert "more such lines" in page


def test_long_texts_are_cut(build_incident: Build) -> None:
    """A line of megabytes or a path of thousands of characters leaves the page readable."""
    incident = build_incident(
        {
            "ranks": 16,
            "trainers": {"*": "backward", 2: f"@{'long/' * 2000}x.py:7 work"},
            "log": {"last_line": "x" * 5_000_000},
        }
    )
    reports = render_reports(diagnose(incident, load_ruleset()))
    assert len(reports["diagnosis.md"]) < 12_000
