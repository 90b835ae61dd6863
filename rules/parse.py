"""Text of the expression language -> syntax tree."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias, cast

from lark import Token, Tree
from lark.exceptions import UnexpectedInput

from whyhang.rules import ast
from whyhang.rules.findings import Finding, RuleErrors
from whyhang.rules.grammar import KINDS, Start, parser
from whyhang.rules.place import Place, place_of_file
from whyhang.rules.quantities import parse_duration, parse_percent
from whyhang.rules.syntax import syntax_finding
from whyhang.schemas.evidence import Span

Syntax: TypeAlias = "Tree[Token]"
Amount: TypeAlias = "ast.Literal_ | ast.Variable"

# People nest three or four levels; what is deeper would only exhaust Python's stack.
MAX_DEPTH = 60
MAX_LENGTH = 20_000

_CUT = re.compile(
    r'("(?:\\.|[^"\\\n])*"|/(?:\\.|[^/\\\n])+/)'  # kept as it is
    r"|(?P<blank>(?:\s|#[^\n]*)+)"
)


def parse_expr(text: str, place: Place | None = None) -> ast.Expr:
    """Parse a condition. Raises RuleErrors with one H101 finding."""
    return _Builder(text, place or place_of_file("")).expr(_parse(text, place, "expr"), 0)


def parse_group(text: str, place: Place | None = None) -> ast.Group:
    """Parse a group such as ``ranks that are stuck``. Raises RuleErrors with one H101 finding."""
    return _Builder(text, place or place_of_file("")).group(_parse(text, place, "group"), 0)


def one_line(source: str) -> str:
    """The source of a clause on one line, without comments."""
    return _CUT.sub(lambda match: match[1] or " ", source).strip()


def has_comment(source: str) -> bool:
    """Whether a condition holds a comment."""
    return any("#" in (match["blank"] or "") for match in _CUT.finditer(source))


def _parse(text: str, place: Place | None, start: Start) -> Syntax:
    place = place or place_of_file("")
    if len(text) > MAX_LENGTH:
        raise RuleErrors(
            [Finding(code="H102", message="the condition is too long", span=place.whole)]
        )
    try:
        return parser().parse(text, start=start)
    except UnexpectedInput as error:
        raise RuleErrors([syntax_finding(error, text, place)]) from None


class _Builder:
    """Makes nodes of lark's trees; every method takes the depth it works at."""

    def __init__(self, text: str, place: Place) -> None:
        self.source = text
        self.place = place

    # --- where -----------------------------------------------------------------------------

    def span(self, tree: Syntax | Token) -> Span:
        start, end = _extent(tree)
        return self.place.span(self.source, start, end)

    def text(self, tree: Syntax | Token) -> str:
        start, end = _extent(tree)
        return one_line(self.source[start:end])

    def deeper(self, depth: int, tree: Syntax) -> int:
        if depth >= MAX_DEPTH:
            raise RuleErrors(
                [Finding(code="H102", message="nested too deeply", span=self.span(tree))]
            )
        return depth + 1

    # --- expressions -----------------------------------------------------------------------

    def expr(self, tree: Syntax, depth: int) -> ast.Expr:
        depth = self.deeper(depth, tree)
        if tree.data in ("and_", "or_"):
            return self.chain(tree, depth)
        make: Callable[[Syntax, int], ast.Expr] = getattr(self, f"expr_{tree.data}")
        return make(tree, depth)

    def chain(self, tree: Syntax, depth: int) -> ast.Expr:
        # The grammar nests chains to the left; a loop keeps long ones off Python's stack.
        parts: list[Syntax] = []
        rest = tree
        while rest.data == tree.data:
            left, right = _trees(rest)
            parts.append(right)
            rest = left
        parts.append(rest)
        made: list[ast.Expr] = []
        cls = ast.And if tree.data == "and_" else ast.Or
        for part in reversed(parts):
            node = self.expr(part, depth)
            made.extend(node.parts if isinstance(node, cls) else [node])
        return cls(span=self.span(tree), text=self.text(tree), parts=tuple(made))

    def expr_not_(self, tree: Syntax, depth: int) -> ast.Not:
        (part,) = _trees(tree)
        return ast.Not(span=self.span(tree), text=self.text(tree), part=self.expr(part, depth))

    def expr_held(self, tree: Syntax, depth: int) -> ast.Held:
        part, span = _trees(tree)
        return ast.Held(
            span=self.span(tree),
            text=self.text(tree),
            part=self.expr(part, depth),
            duration=self.amount(span),
        )

    def expr_quantified(self, tree: Syntax, depth: int) -> ast.Quantified:
        quantifier, group, predicate = _trees(tree)
        return ast.Quantified(
            span=self.span(tree),
            text=self.text(tree),
            quantifier=cast("ast.Quantifier", str(quantifier.data)),
            amount=self.quantity(quantifier),
            group=self.group(group, depth),
            predicate=self.expr(predicate, depth),
        )

    def expr_agree(self, tree: Syntax, depth: int) -> ast.Agree:
        quantifier, group, path = tree.children
        assert isinstance(quantifier, Tree) and isinstance(group, Tree)
        assert isinstance(path, Token)
        return ast.Agree(
            span=self.span(tree),
            text=self.text(tree),
            quantifier=cast("ast.Quantifier", str(quantifier.data)),
            amount=self.quantity(quantifier),
            group=self.group(group, depth),
            field=self.field(path),
        )

    def expr_compare(self, tree: Syntax, depth: int) -> ast.Compare:
        left, op, right = tree.children
        assert isinstance(left, Tree) and isinstance(right, Tree)
        return ast.Compare(
            span=self.span(tree),
            text=self.text(tree),
            left=self.value(left, depth),
            op=cast("ast.Comparison", str(op)),
            right=self.value(right, depth),
        )

    def expr_in_(self, tree: Syntax, depth: int) -> ast.In:
        return self.membership(tree, depth, negated=False)

    def expr_not_in(self, tree: Syntax, depth: int) -> ast.In:
        return self.membership(tree, depth, negated=True)

    def membership(self, tree: Syntax, depth: int, *, negated: bool) -> ast.In:
        value, names = _trees(tree)
        made: ast.ListRef | ast.Strings
        if names.data == "list_ref":
            made = self.list_ref(names)
        else:
            values = tuple(_string(token) for token in _tokens(names))
            made = ast.Strings(span=self.span(names), text=self.text(names), values=values)
        return ast.In(
            span=self.span(tree),
            text=self.text(tree),
            value=self.value(value, depth),
            names=made,
            negated=negated,
        )

    def expr_has(self, tree: Syntax, depth: int) -> ast.Has:
        path, pattern = tree.children
        assert isinstance(path, Token) and isinstance(pattern, Tree)
        made: ast.ListRef | ast.Glob | ast.Regex
        if pattern.data == "list_ref":
            made = self.list_ref(pattern)
        else:
            (token,) = _tokens(pattern)
            made = self.regex(token) if pattern.data == "regex" else self.glob(token)
        return ast.Has(
            span=self.span(tree), text=self.text(tree), field=self.field(path), pattern=made
        )

    def expr_matches(self, tree: Syntax, depth: int) -> ast.Matches:
        path, pattern = _tokens(tree)
        return ast.Matches(
            span=self.span(tree),
            text=self.text(tree),
            field=self.field(path),
            pattern=self.regex(pattern),
        )

    def expr_unchanged(self, tree: Syntax, depth: int) -> ast.Unchanged:
        path, span = tree.children
        assert isinstance(path, Token) and isinstance(span, Tree)
        return ast.Unchanged(
            span=self.span(tree),
            text=self.text(tree),
            field=self.field(path),
            duration=self.amount(span),
        )

    def expr_known(self, tree: Syntax, depth: int) -> ast.Known:
        return self.knowledge(tree, negated=False)

    def expr_unknown(self, tree: Syntax, depth: int) -> ast.Known:
        return self.knowledge(tree, negated=True)

    def knowledge(self, tree: Syntax, *, negated: bool) -> ast.Known:
        (path,) = _tokens(tree)
        return ast.Known(
            span=self.span(tree), text=self.text(tree), field=self.field(path), negated=negated
        )

    def expr_ref(self, tree: Syntax, depth: int) -> ast.Ref:
        return ast.Ref(span=self.span(tree), text=self.text(tree), name=_name(tree))

    # --- groups ----------------------------------------------------------------------------

    def group(self, tree: Syntax, depth: int) -> ast.Group:
        depth = self.deeper(depth, tree)
        span, text = self.span(tree), self.text(tree)
        if tree.data == "named":
            return ast.Named(span=span, text=text, name=_name(tree))
        parts = _trees(tree)
        if tree.data == "except_":
            return ast.Except(
                span=span,
                text=text,
                group=self.group(parts[0], depth),
                without=self.group(parts[1], depth),
            )
        kind = KINDS[_name(parts[0])]
        if tree.data == "everything":
            return ast.Everything(span=span, text=text, kind=kind)
        return ast.Filtered(span=span, text=text, kind=kind, predicate=self.expr(parts[1], depth))

    # --- values ----------------------------------------------------------------------------

    def value(self, tree: Syntax, depth: int) -> ast.Value:
        depth = self.deeper(depth, tree)
        if tree.data in ("count", "share"):
            (group,) = _trees(tree)
            cls = ast.Count if tree.data == "count" else ast.Share
            return cls(span=self.span(tree), text=self.text(tree), group=self.group(group, depth))
        (token,) = _tokens(tree)
        if tree.data == "field":
            return self.field(token)
        return self.constant(token)

    def quantity(self, quantifier: Syntax) -> Amount | None:
        amounts = _trees(quantifier)
        return self.amount(amounts[0]) if amounts else None

    def amount(self, tree: Syntax) -> Amount:
        (token,) = _tokens(tree)
        return self.constant(token)

    def constant(self, token: Token) -> Amount:
        span, text = self.span(token), str(token)
        if token.type == "VAR":
            return ast.Variable(span=span, text=text, name=text[1:])
        type_, value = _constant(token)
        return ast.Literal_(span=span, text=text, type=type_, value=value)

    def field(self, token: Token) -> ast.Field:
        return ast.Field(span=self.span(token), text=str(token), name=str(token))

    def list_ref(self, tree: Syntax) -> ast.ListRef:
        return ast.ListRef(span=self.span(tree), text=self.text(tree), name=_name(tree))

    def glob(self, token: Token) -> ast.Glob:
        return ast.Glob(span=self.span(token), text=str(token), pattern=_string(token))

    def regex(self, token: Token) -> ast.Regex:
        pattern = token[1:-1].replace("\\/", "/")
        return ast.Regex(span=self.span(token), text=str(token), pattern=pattern)


def _constant(token: Token) -> tuple[ast.LiteralType, float | int | str]:
    text = str(token)
    if token.type == "INT":
        return "int", int(text)
    if token.type == "FLOAT":
        return "float", float(text)
    if token.type == "PERCENT":
        return "percent", parse_percent(text)
    if token.type == "DURATION":
        return "duration", parse_duration(text)
    return "string", _string(token)


def _string(token: Token) -> str:
    r"""The text between the quotes; a backslash keeps the next character as it is."""
    return re.sub(r"\\(.)", r"\1", token[1:-1])


def _extent(tree: Syntax | Token) -> tuple[int, int]:
    if isinstance(tree, Token):
        return tree.start_pos or 0, tree.end_pos or 0
    return tree.meta.start_pos, tree.meta.end_pos


def _trees(tree: Syntax) -> list[Syntax]:
    return [child for child in tree.children if isinstance(child, Tree)]


def _tokens(tree: Syntax) -> list[Token]:
    return [child for child in tree.children if isinstance(child, Token)]


def _name(tree: Syntax) -> str:
    return str(_tokens(tree)[0])
