"""YAML with positions and with values as people mean them."""

from __future__ import annotations

import pytest

from whyhang.rules.document import read_document
from whyhang.schemas.evidence import Span


def test_values_are_what_they_look_like() -> None:
    """Only true and false are booleans; YAML 1.1's other words and base-60 numbers are text."""
    text = "a: no\nb: on\nc: true\nd: 1:30\ne: 12\nf: -1.5\ng: null\nh: '12'\ni: 0x1F\nj:\n"
    assert read_document(text, "f").data == {
        "a": "no",
        "b": "on",
        "c": True,
        "d": "1:30",
        "e": 12,
        "f": -1.5,
        "g": None,
        "h": "12",
        "i": "0x1F",
        "j": None,
    }


@pytest.mark.parametrize(
    ("text", "start", "line", "column"),
    [
        ("when: abc def\n", 4, 1, 11),
        ("when: 'abc def'\n", 4, 1, 12),
        ('when: "abc def"   # x\n', 4, 1, 12),
        ("when: |\n  abc\n  def\n", 4, 3, 3),
        ("when: |   # why\n\n    abc\n      def\n", 7, 4, 7),
        ("- x\n- when: |-\n    abc\n    def", 4, 4, 5),
        ("{id: 1, when: abc def, x: 2}\n", 4, 1, 19),
        ("when: |\r\n  abc\r\n  def\r\n", 4, 3, 3),
        ("\ufeffwhen: |2\n   abc\n  def\n", 5, 3, 3),
    ],
)
def test_places_inside_texts_are_exact(text: str, start: int, line: int, column: int) -> None:
    """Plain, quoted and literal texts map each character to its place in the file."""
    document = read_document(text, "f")
    path = next(path for path in document.texts if path[-1:] == ("when",))
    value = document.texts[path]
    assert value[start : start + 3].strip().startswith("d")
    place = document.places[path]
    assert place.exact
    span = place.span(value, start, start + 3)
    assert (span.file, span.line, span.column) == ("f", line, column)
    source = document.lines[line - 1]
    assert source[column - 1] == "d"


@pytest.mark.parametrize(
    "text", ["when: >\n  abc\n  def\n", "when: abc\n  def\n", 'when: "a\\tb"\n', "when: 'it''s'\n"]
)
def test_folded_and_escaped_texts_are_not_mapped(text: str) -> None:
    """Where characters cannot be mapped the place says so and stands for the whole."""
    document = read_document(text, "f")
    place = document.places[("when",)]
    assert not place.exact
    assert place.span(document.texts[("when",)], 3, 4) == place.whole


def test_keys_and_values_have_places() -> None:
    """Each key and each value of the tree is found by its path."""
    document = read_document("rules:\n  - id: one\n    labels: {a: b}\n", "f")
    assert document.key_span(("rules", 0, "id")) == Span(file="f", line=2, column=5, length=2)
    assert document.span(("rules", 0, "id")) == Span(file="f", line=2, column=9, length=3)
    assert document.span(("rules", 0, "labels", "a")) == Span(file="f", line=3, column=17)
    assert document.span(("rules", 0, "nothing")).line == 2


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("a: 1\nb: 2\na: 3\n", "H012", 3, 1),
        ("a: b: c\n", "H001", 1, 5),
        ("a: [1\nb: 2\n", "H001", 2, 2),
        ("a: 1\n---\nb: 2\n", "H001", 2, 1),
        ("a: &x [*x]\n", "H001", 1, 4),
        ("a: !tag 1\n", "H003", 1, 4),
        ("? [1]\n: 2\n", "H002", 1, 3),
        ("[" * 5000, "H001", 1, None),
        ("a: \x01\n", "H001", 1, 1),
    ],
)
def test_faults_of_yaml_have_a_place(text: str, code: str, line: int, column: int | None) -> None:
    """What YAML itself forbids, or what it lets pass but nobody means, is a finding."""
    finding = read_document(text, "f").findings[0]
    assert finding.code == code
    assert finding.span.line == line
    assert column is None or finding.span.column == column


def test_the_first_of_two_equal_keys_counts() -> None:
    """A duplicate is reported, never taken silently."""
    assert read_document("a: 1\na: 2\n", "f").data == {"a": 1}


def test_aliases_are_followed() -> None:
    """An anchor's value appears at each of its aliases."""
    assert read_document("a: &x [1]\nb: *x\n", "f").data == {"a": [1], "b": [1]}


def test_aliases_cannot_blow_up() -> None:
    """A document whose aliases multiply is cut off with a finding."""
    lines = ["a0: &a0 [1,1,1,1,1,1,1,1,1]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    document = read_document("\n".join(lines), "f")
    assert [finding.code for finding in document.findings] == ["H001"]
    assert document.data is None


@pytest.mark.parametrize("text", ["a:\n\tb: 1\n", "a:\n  - b: 1\n\tc: 1\n"])
def test_a_tab_is_called_by_its_name(text: str) -> None:
    """Where the parser stumbles over a tab the remedy says so."""
    (finding,) = read_document(text, "hang.yaml").findings
    assert finding.help == "indent with spaces"
