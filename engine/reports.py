"""The files that stand beside the evidence: which there are and what each is called."""

from __future__ import annotations

from collections.abc import Iterable

from whyhang.renderers.flamegraph import render_flamegraph
from whyhang.renderers.folded import render_folded
from whyhang.renderers.function_report import render_function_report
from whyhang.renderers.labels import folded_runs, ranksets_json
from whyhang.renderers.markdown import render_markdown
from whyhang.renderers.prefix import kinds_of
from whyhang.schemas.diagnosis import Diagnosis
from whyhang.schemas.verdict_codec import encode_verdict

VERDICT = "verdict.json"
MARKDOWN = "diagnosis.md"


def render_reports(diagnosis: Diagnosis) -> dict[str, str]:
    """All reports by file name: verdict, page, functions, folded stacks, flame graphs.

    The flame graph of everything is ``flame.svg``; each process kind has one of its own
    (``flame-dataloader.svg``).
    """
    tree = diagnosis.tree
    reports = {
        VERDICT: encode_verdict(diagnosis.verdict).decode(),
        "report.txt": _text(render_function_report(tree, diagnosis.incident)),
    }
    if tree is not None and tree.stacks:
        title, suspects = diagnosis.verdict.headline, diagnosis.verdict.suspects.ranks
        reports["stacks.folded"] = _text(render_folded(tree))
        reports["flame.svg"] = render_flamegraph(tree, title=title, suspects=suspects)
        kinds = kinds_of(tree)
        for kind in kinds if len(kinds) > 1 else ():
            reports[f"flame-{kind}.svg"] = render_flamegraph(
                tree, kind=kind, title=title, suspects=suspects
            )
        if folded_runs(tree) is not None:
            reports["ranksets.json"] = ranksets_json(tree)
    names = (MARKDOWN, *reports)
    return {MARKDOWN: render_markdown(diagnosis, files=names), **reports}


def _text(lines: Iterable[str]) -> str:
    return "".join(line + "\n" for line in lines)
