"""``whyhang explain``: why each rule decided as it did, or what a finding's code means."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from whyhang.engine.cli.overrides import add_set_option, read_overrides
from whyhang.engine.cli.rules_option import add_rules_option, read_rules
from whyhang.schemas.errors import UsageError

if TYPE_CHECKING:
    from whyhang.schemas.explanation import Explanation

_CODE = re.compile(r"[Hh]\d{3}\Z")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``explain``."""
    parser.add_argument("path", metavar="INCIDENT", help="incident directory, or a code (H201)")
    add_rules_option(parser)
    parser.add_argument(
        "--rule", metavar="ID", help="this rule or suppression only, whatever its result"
    )
    parser.add_argument(
        "--why-not", action="store_true", help="also what keeps the other rules from firing"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    add_set_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the deciding clauses."""
    if _CODE.match(options.path) and not Path(options.path).exists():
        return _explain_code(options.path.upper())
    from whyhang.engine.cli.main import VERSION
    from whyhang.engine.explanation import explain_all
    from whyhang.engine.incidents import read_evidence
    from whyhang.engine.judge import open_court

    ruleset = read_rules(options, overrides=read_overrides(options))
    court = open_court(ruleset, read_evidence(Path(options.path)))
    explanation = explain_all(court, version=VERSION)
    if options.rule is not None:
        explanation = only(explanation, options.rule)
    if options.format == "json":
        from whyhang.renderers.evidence_json import render_explanation_json

        sys.stdout.write(render_explanation_json(explanation))
    else:
        from whyhang.renderers.evidence_text import render_explanation

        everything = options.why_not or options.rule is not None
        for line in render_explanation(explanation, why_not=everything):
            print(line)
    return 0


def only(explanation: Explanation, name: str) -> Explanation:
    """The explanation of one rule; its id may go without the pack's name. Raises UsageError."""
    found = replace(
        explanation,
        suppressions=tuple(e for e in explanation.suppressions if is_called(e.id, name)),
        rules=tuple(e for e in explanation.rules if is_called(e.id, name)),
    )
    if not found.rules and not found.suppressions:
        raise UsageError(
            f"no rule or suppression `{name}`",
            hint=_suggestion(name, (e.id for e in (*explanation.rules, *explanation.suppressions))),
        )
    return found


def is_called(id: str, name: str) -> bool:
    """Whether a rule goes by that name."""
    return name in (id, id.rpartition("/")[2])


def _suggestion(name: str, known: Iterable[str]) -> str:
    from whyhang.rules.suggest import did_you_mean

    names = list(known)
    bare = [id.rpartition("/")[2] for id in names]
    return did_you_mean(name, [*names, *bare]) or f"there are {', '.join(names)}"


def _explain_code(code: str) -> int:
    from whyhang.rules.explanations import EXPLANATIONS
    from whyhang.rules.suggest import did_you_mean

    if code not in EXPLANATIONS:
        raise UsageError(f"no finding has the code {code}", hint=did_you_mean(code, EXPLANATIONS))
    import textwrap

    paragraphs = EXPLANATIONS[code].split("\n\n")
    print("\n\n".join(textwrap.fill(paragraph, 90) for paragraph in paragraphs))
    return 0
