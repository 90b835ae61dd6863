"""The formatter."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whyhang.rules.constructs import CONSTRUCTS
from whyhang.rules.findings import RuleErrors
from whyhang.rules.fmt import format_source, format_text, meaning
from whyhang.rules.fmt_expression import format_condition
from whyhang.rules.fmt_tree import RULE_KEYS, TOP_KEYS
from whyhang.rules.sources import Source
from whyhang.rules.validate import schema

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

# One condition a line: written like this already.
SAME = """\
log.stalled
not log.slow
any rank is (top in communication)
at least $quorum of (ranks except odd) are waiting
share(odd) <= 50%
count(ranks that are (status in ["exited", "zombie"])) >= 1
any rank is (proc.wchan matches /nfs|rpc  [(]x/)
log.phase == "a  , (b"
all ranks agree on top.function
(log.slow or log.stalled) for 1h30m
"""
# What is written, and how it should be.
CHANGED = [
    ("log.slow  and\tlog.stalled", ["log.slow", "and log.stalled"]),
    ("a and b or c and d", ["a and b", "or c and d"]),
    ("(a and b)or c", ["(a and b)", "or c"]),
    ("any rank is ( a or b )", ["any rank is (a or b)"]),
    ('x in ["a","b" ]', ['x in ["a", "b"]']),
    ("count (odd)>=1", ["count(odd) >= 1"]),
    ("a # why\nand b", ["a  # why", "and b"]),
    ("a\n# why\nand b", ["a", "# why", "and b"]),
    ("# first\na and # second\nb\n# last", ["# first", "a", "# second", "and b", "# last"]),
    ("any rank is ( # why\n a)", ["# why", "any rank is (a)"]),
]


@pytest.mark.parametrize("line", SAME.splitlines())
def test_what_is_right_stays(line: str) -> None:
    """A condition in its usual spacing is not touched."""
    assert format_condition(line, chain=True) == (line,)


@pytest.mark.parametrize("example", [each.example for each in CONSTRUCTS])
def test_every_construct_of_the_reference_has_its_usual_spacing(example: str) -> None:
    """The reference is written as the formatter writes."""
    assert " ".join(format_condition(example, chain=True)) == example


@pytest.mark.parametrize(("source", "lines"), CHANGED)
def test_conditions(source: str, lines: list[str]) -> None:
    """One clause a line, in usual spacing, comments kept; what was formatted stays."""
    assert list(format_condition(source, chain=True)) == lines
    assert list(format_condition("\n".join(lines), chain=True)) == lines


def test_groups_are_not_parted() -> None:
    """A group has no clauses, whatever stands in its parentheses."""
    text = "ranks that are (a\n  and b) except odd"
    assert format_condition(text, chain=False) == ("ranks that are (a and b) except odd",)


BEFORE = """\
# yaml-language-server: $schema=hang.v1.json
# What this file is.

# The rules.
rules:
  # about the first
  - verdict: slow   # one
    # about the id
    id: first
    when: log.slow and log.stalled_for > 5m # two
    message: |
      # no comment
      said

    # about the labels
    labels: {b: c}
  - {id: second, verdict: slow, when: 'log.phase in ["eval", "init"]', keep: 5m}  # three
  - {verdict: slow, when: log.slow, id: third}
  - id: pytorch/local-hang
    override: {for: 5m, when: log.stalled and log.slow}
version: 1
# Names.
defs: {a: "log.slow", b: 'log.slow or log.stalled'} # four
sets:
  odd:
    ranks that are
      (top is known)
ignore: ["processes that are (proc.kind  ==  \\"other\\")"]
# The end.
"""
AFTER = """\
# yaml-language-server: $schema=hang.v1.json
# What this file is.

version: 1
# Names.
defs:  # four
  a: log.slow
  b: |
    log.slow
    or log.stalled
sets:
  odd: ranks that are (top is known)
ignore: [processes that are (proc.kind == "other")]
# The rules.
rules:
  # about the first
    # about the id
  - id: first
    when: |  # two
      log.slow
      and log.stalled_for > 5m
    verdict: slow   # one
    message: |
      # no comment
      said

    # about the labels
    labels: {b: c}
  - id: second  # three
    when: log.phase in ["eval", "init"]
    keep: 5m
    verdict: slow
  - {id: third, when: log.slow, verdict: slow}
  - id: pytorch/local-hang
    override:
      when: |
        log.stalled
        and log.slow
      for: 5m
# The end.
"""


def test_a_whole_file() -> None:
    """Keys in order, flow mappings opened where a condition does not fit, comments kept."""
    assert format_text(BEFORE) == AFTER
    assert format_text(AFTER) == AFTER
    assert meaning(BEFORE) == meaning(AFTER)


@pytest.mark.parametrize("path", [ROOT / "hang.yaml", ROOT / "rules/packs/pytorch.yaml"])
def test_what_ships_is_formatted(path: Path) -> None:
    """The starter and the pack are written as the formatter writes."""
    text = path.read_text()
    assert format_text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{version: 1, include: []}\n",
        "version: 1\r\njob: {name: a}\n",
        "- a\n",
        "--- # head\nversion: 1\n...\n",
        "version: 1\nmessage: |+\n  a\n\n",
    ],
)
def test_what_is_left_alone(text: str) -> None:
    """Files that are no block mapping, or have odd line ends, stay as they are."""
    assert format_text(text) == text


def test_anchors_keep_their_order() -> None:
    """A file that names nodes is not reordered: a name must stand before it is used."""
    text = "rules:\n  - {id: &name a, when: log.slow and log.stalled, verdict: slow}\nversion: 1\n"
    formatted = format_text(text)
    assert formatted.endswith("version: 1\n") and "&name a" in formatted
    assert meaning(formatted) == meaning(text)


def test_a_file_with_errors_is_refused() -> None:
    """Nothing is formatted that could not be read; all findings are told."""
    with pytest.raises(RuleErrors) as caught:
        format_source(Source(name="f", text="version: 1\nrules:\n  - {id: a, when: log.staled}\n"))
    assert {finding.code for finding in caught.value.findings} >= {"H201", "H014"}


def test_the_order_of_keys_is_complete() -> None:
    """Every key of the schema has its place."""
    properties = schema()["properties"]
    assert set(TOP_KEYS) == set(properties)
    assert set(RULE_KEYS) == set(properties["rules"]["items"]["properties"])


# --- whatever people write --------------------------------------------------------------------

ATOMS = ["log.stalled", "log.stalled_for > 5m", 'log.phase == "eval"', "any rank is (top is known)",
         "at least 90% of ranks are unreadable", 'log.phase in ["eval", "init"]',
         "no rank is (proc.wchan matches /nfs|rpc/)", "count(ranks) >= 1"]  # fmt: skip
BLANKS = ["", " ", "  ", "\n", " \n  ", "  # why\n", "\n# own line\n"]


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """A condition with odd spacing, line breaks and comments."""
    parts = draw(st.lists(st.sampled_from(ATOMS), min_size=1, max_size=4))
    text = draw(st.sampled_from(["", "not "])) + parts[0]
    for part in parts[1:]:
        word = draw(st.sampled_from(["and", "or"]))
        before, after = draw(st.sampled_from(BLANKS)), draw(st.sampled_from(BLANKS))
        if draw(st.booleans()):
            text = f"({text}{before})"
        text = f"{text} {before}{word} {after}{part}"
    return text + draw(st.sampled_from(["", "  # at the end", "\n# below"]))


@st.composite
def scalars(draw: st.DrawFn, indent: int) -> str:
    """A condition as YAML: a block, plain or in quotes."""
    text = draw(expressions())
    comment = draw(st.sampled_from(["", "  # of yaml"]))
    if "\n" in text or "#" in text or draw(st.booleans()):
        deeper = " " * (indent + draw(st.integers(1, 4)))
        lines = [deeper + line.strip() if line.strip() else "" for line in text.split("\n")]
        return f"|{comment}\n" + "\n".join(lines)
    if draw(st.booleans()):
        return "'" + text.replace("'", "''") + "'" + comment
    return text + comment


@st.composite
def files(draw: st.DrawFn) -> str:
    """A file whose keys stand in any order, with comments between them."""
    sections = {"version": "version: 1", "include": "include: []"}
    sections["job"] = draw(st.sampled_from(["job: {name: a}", "job:\n  name: a  # b"]))
    names = draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=3))
    if names:
        defs = [f"  {name}: {draw(scalars(2))}" for name in names]
        sections["defs"] = "\n".join(["defs:", *defs])
    rules = ["rules:"]
    for number in range(draw(st.integers(1, 3))):
        keys = {
            "id": f"id: r{number}",
            "when": f"when: {draw(scalars(4))}",
            "verdict": "verdict: slow",
            "summary": draw(
                st.sampled_from(["summary: x", "summary: >\n      folded\n      text"])
            ),
            "message": "message: |\n      # no comment\n      text",
        }
        order = draw(st.permutations(list(keys)))
        comment = draw(st.sampled_from(["", "\n    # in a rule"]))
        rules.append("  - " + f"{comment}\n    ".join(keys[key] for key in order).lstrip())
    sections["rules"] = "\n".join(rules)
    gap = draw(st.sampled_from(["\n", "\n\n", "\n# between\n", "\n\n# between\n\n"]))
    order = draw(st.permutations(list(sections)))
    return gap.join(sections[name] for name in order) + "\n"


def comments(text: str) -> Counter[str]:
    """The comments that the strategies write, counted."""
    return Counter(
        re.findall(r"# (?:why|own line|at the end|below|of yaml|in a rule|between)", text)
    )


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(files())
def test_formatting_twice_is_formatting_once(text: str) -> None:
    """The formatter is idempotent, keeps the meaning and every comment."""
    once = format_text(text)
    assert format_text(once) == once
    assert meaning(once) == meaning(text)
    assert comments(once) == comments(text)
