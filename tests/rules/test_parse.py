"""Conditions and groups become trees that know their text and place."""

from __future__ import annotations

import pytest

from whyhang.rules import ast
from whyhang.rules.cycles import walk
from whyhang.rules.findings import RuleErrors
from whyhang.rules.parse import has_comment, one_line, parse_expr, parse_group
from whyhang.rules.place import Place
from whyhang.schemas.evidence import Span

EXPRESSIONS = {
    "a or b": ast.Or,
    "a and b": ast.And,
    "not a": ast.Not,
    "a for 2m": ast.Held,
    "(a and b) for $still": ast.Held,
    "any rank is a": ast.Quantified,
    "some odd are (x == 1)": ast.Quantified,
    "every child is not a": ast.Quantified,
    "no rank is a": ast.Quantified,
    "none of ranks are a": ast.Quantified,
    "most nodes are a": ast.Quantified,
    "at least 3 ranks are a": ast.Quantified,
    "at most 10% of ranks are a": ast.Quantified,
    "exactly $n of (ranks except odd) are a": ast.Quantified,
    "all ranks agree on top.function": ast.Agree,
    'proc.state == "D"': ast.Compare,
    "count(ranks that are a) >= 1": ast.Compare,
    "share(odd) <= $minority": ast.Compare,
    "log.stalled_for > 1h30m": ast.Compare,
    "io.read_rate < 0.5": ast.Compare,
    "top in communication": ast.In,
    'status not in ["exited", "zombie"]': ast.In,
    "stack has checkpointing": ast.Has,
    'native has "poll*"': ast.Has,
    "native has /nccl|poll/": ast.Has,
    "proc.wchan matches /nfs|rpc/": ast.Matches,
    "stack unchanged for 10s": ast.Unchanged,
    "native is known": ast.Known,
    "native is unknown": ast.Known,
    "log.stalled": ast.Ref,
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_every_construct_parses_to_its_node(text: str) -> None:
    """Each form of the language has its own node, which spans the text."""
    node = parse_expr(text)
    assert type(node) is EXPRESSIONS[text]
    assert node.text == text
    assert node.span == Span(file="", line=1, column=1, length=len(text))


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_the_text_of_each_part_stands_at_its_span(text: str) -> None:
    """What a span covers in the source is the text of the node."""
    for part in walk(parse_expr(text)):
        start = part.span.column - 1
        assert text[start : start + part.span.length] == part.text


def test_or_binds_weaker_than_and_and_and_weaker_than_not() -> None:
    """Precedence is or, and, not, from weak to strong."""
    node = parse_expr("a or not b and c")
    assert isinstance(node, ast.Or)
    conjunction = node.parts[1]
    assert isinstance(conjunction, ast.And)
    assert isinstance(conjunction.parts[0], ast.Not)


def test_a_quantified_predicate_is_tight() -> None:
    """``any rank is a and b`` is a conjunction, not a predicate of two parts."""
    node = parse_expr("any rank is stuck and b")
    assert isinstance(node, ast.And)
    assert [part.text for part in node.parts] == ["any rank is stuck", "b"]


def test_for_binds_tightest() -> None:
    """``a and b for 2m`` holds only b."""
    node = parse_expr("a and b for 2m")
    assert isinstance(node, ast.And)
    assert isinstance(node.parts[1], ast.Held)


def test_chains_are_flat() -> None:
    """A chain is one node, however long and however its parts are grouped."""
    node = parse_expr("a and (b and c) and d")
    assert isinstance(node, ast.And)
    assert [part.text for part in node.parts] == ["a", "b", "c", "d"]
    long = parse_expr(" or ".join(["a"] * 2000))
    assert isinstance(long, ast.Or)
    assert len(long.parts) == 2000


def test_parentheses_vanish_but_stay_readable_in_the_whole() -> None:
    """The tree has no node for parentheses; the text of the whole shows them."""
    node = parse_expr("(a or b) and c")
    assert isinstance(node, ast.And)
    assert node.text == "(a or b) and c"
    assert node.parts[0].text == "a or b"


def test_literals_have_types_and_units() -> None:
    """Durations are seconds, percentages fractions, texts unescaped."""
    values = {
        "1h30m": ("duration", 5400.0),
        "500ms": ("duration", 0.5),
        "90%": ("percent", 0.9),
        "12": ("int", 12),
        "0.5": ("float", 0.5),
        r'"a\"b\\"': ("string", 'a"b\\'),
    }
    for text, (type_, value) in values.items():
        node = parse_expr(f"x == {text}")
        assert isinstance(node, ast.Compare)
        assert isinstance(node.right, ast.Literal_)
        assert (node.right.type, node.right.value) == (type_, value)
        assert type(node.right.value) is type(value)


def test_quantifiers_carry_their_amount() -> None:
    """Only the counting quantifiers have an amount."""
    node = parse_expr("at least 90% of ranks are a")
    assert isinstance(node, ast.Quantified)
    assert node.quantifier == "at_least"
    assert isinstance(node.amount, ast.Literal_)
    assert node.amount.value == 0.9
    other = parse_expr("none of ranks are a")
    assert isinstance(other, ast.Quantified)
    assert (other.quantifier, other.amount) == ("none", None)


def test_a_regex_may_hold_an_escaped_slash() -> None:
    """The slash that ends a pattern can be written inside it."""
    node = parse_expr(r"top.file matches /\/data\/x/")
    assert isinstance(node, ast.Matches)
    assert node.pattern.pattern == "/data/x"


@pytest.mark.parametrize(
    ("text", "kind"),
    [("ranks", "rank"), ("node", "node"), ("processes", "process"), ("child", "child")],
)
def test_groups_have_a_kind(text: str, kind: str) -> None:
    """Singular and plural name the same kind."""
    group = parse_group(text)
    assert isinstance(group, ast.Everything)
    assert group.kind == kind


def test_except_groups_to_the_left() -> None:
    """``a except b except c`` takes c out of what is left of a."""
    group = parse_group("odd except (ranks that are busy) except gone")
    assert isinstance(group, ast.Except)
    assert isinstance(group.group, ast.Except)
    assert isinstance(group.without, ast.Named)
    assert group.group.text == "odd except (ranks that are busy)"


def test_a_clause_is_printed_on_one_line_without_comments() -> None:
    """Line breaks and comments leave the text; what is quoted stays as it is."""
    text = 'a   # why "this"\n  and stack has "x  # y" # end'
    assert one_line(text) == 'a and stack has "x  # y"'
    assert has_comment(text)
    assert not has_comment('stack has "x # y" or proc.wchan matches /a#b/')


def test_positions_are_those_of_the_file() -> None:
    """A block's lines begin at its indentation, and lines count from its first."""
    place = Place(whole=Span(file="f", line=4, column=3), line=5, column=7, indent=6)
    node = parse_expr("a\nand bb", place)
    assert isinstance(node, ast.And)
    assert node.parts[0].span == Span(file="f", line=5, column=7, length=1)
    assert node.parts[1].span == Span(file="f", line=6, column=11, length=2)


@pytest.mark.parametrize("text", ["not " * 100 + "a", "a " * 20000])
def test_what_is_too_deep_or_too_long_is_refused(text: str) -> None:
    """No text can exhaust the parser."""
    with pytest.raises(RuleErrors) as caught:
        parse_expr(text)
    assert caught.value.findings[0].code in ("H101", "H102")
