"""``whyhang render PATH --as FORM``: one output of an incident again."""

from __future__ import annotations

import argparse
from pathlib import Path

from whyhang.engine.cli.rules_option import add_rules_option, read_rules
from whyhang.schemas.errors import UsageError
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.words import PROCESS_KINDS

FORMS = ("folded", "svg", "report", "markdown", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``render``."""
    parser.add_argument("path", type=Path, help="incident directory, or a directory of dumps")
    parser.add_argument("--as", dest="form", choices=FORMS, required=True)
    add_rules_option(parser)
    parser.add_argument("--kind", choices=PROCESS_KINDS, help="processes of this kind only")
    parser.add_argument("--ranks", help="these ranks only, such as 0-7/60")
    parser.add_argument("--thread", help="threads of this name only")
    parser.add_argument("--sample", type=int, help="this sample instead of the last")
    parser.add_argument("--weight", choices=("distinct", "threads", "ranks"), default="distinct")
    parser.add_argument(
        "--full-rank-labels", action="store_true", help="exact rank sets, however large the file"
    )
    parser.add_argument("-o", "--output", type=Path, help="write here instead of to stdout")


def run(options: argparse.Namespace) -> int:
    """Render and print or write."""
    from whyhang.engine.cli.terminal import write_file, write_out

    text = _render(options)
    if options.output is not None:
        write_file(options.output, text)
    else:
        write_out(text)
    return 0


def _render(options: argparse.Namespace) -> str:
    from whyhang.engine.cli.main import VERSION
    from whyhang.engine.diagnose import diagnose
    from whyhang.engine.incidents import read_evidence
    from whyhang.engine.merge import build_tree
    from whyhang.renderers.prefix import select

    incident = read_evidence(options.path)
    diagnosis = diagnose(incident, read_rules(options, lenient=True), version=VERSION)
    if options.form == "markdown":
        from whyhang.renderers.markdown import render_markdown

        return render_markdown(diagnosis)
    if options.form == "json":
        from whyhang.schemas.verdict_codec import encode_verdict

        return encode_verdict(diagnosis.verdict).decode()
    tree = diagnosis.tree if options.sample is None else build_tree(incident, options.sample)
    if tree is None:
        raise UsageError(
            f"{options.path} holds no stacks of that sample",
            hint=f"samples: {', '.join(str(s.index) for s in incident.samples) or 'none'}",
        )
    tree = select(tree, kind=options.kind, ranks=_ranks(options.ranks), thread=options.thread)
    if options.form == "svg":
        from whyhang.renderers.flamegraph import render_flamegraph

        return render_flamegraph(
            tree,
            title=diagnosis.verdict.headline,
            weight=options.weight,
            suspects=diagnosis.verdict.suspects.ranks,
            full_labels=options.full_rank_labels,
        )
    if options.form == "folded":
        from whyhang.renderers.folded import render_folded

        lines = render_folded(tree, full_labels=options.full_rank_labels)
    else:
        from whyhang.renderers.function_report import render_function_report

        lines = render_function_report(tree, incident)
    return "".join(line + "\n" for line in lines)


def _ranks(text: str | None) -> RankSet | None:
    if text is None:
        return None
    try:
        return RankSet.parse(text)
    except ValueError as error:
        raise UsageError(f"--ranks: {error}", hint="write runs such as 0-7/60-62") from error
