"""``docs/rules.md``: its tables are generated, its examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from whyhang.engine.cli.main import main
from whyhang.engine.headline import message_values
from whyhang.rules.codes import CODES
from whyhang.rules.constructs import CONSTRUCTS
from whyhang.rules.grammar import grammar_text
from whyhang.rules.load import load_source
from whyhang.rules.message_names import MESSAGE_NAMES
from whyhang.rules.parse import parse_expr, parse_group
from whyhang.rules.reference import fill
from whyhang.rules.sources import Source

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "rules.md"
BLOCK = re.compile(r"(?:<!-- (?P<note>[^>]*) -->\n)?```yaml\n(?P<text>.*?)```", re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    """The YAML examples of the page with the note before each."""
    return [(match["note"] or "", match["text"]) for match in BLOCK.finditer(PAGE.read_text())]


def test_the_tables_are_up_to_date(pytestconfig: pytest.Config) -> None:
    """What stands between the markers is what the generator makes; --snapshot-update writes it."""
    text = PAGE.read_text(encoding="utf-8")
    filled = fill(text)
    if pytestconfig.getoption("update_snapshots"):
        PAGE.write_text(filled, encoding="utf-8")
        text = filled
    assert text == filled


@pytest.mark.parametrize(
    "text",
    [text for note, text in blocks() if not note.startswith(("no rules", "file hang_test"))],
)
def test_every_example_has_no_errors(text: str) -> None:
    """What a reader copies loads; lints may be shown."""
    findings = load_source(Source(name="hang.yaml", text=text), {}, lints=True)[1]
    assert [one for one in findings if one.severity != "info" and one.code != "H301"] == []


def test_the_worked_example_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rule and tests of the tutorial, as they stand: clean, formatted, passing, without a hole."""
    files = {note.split()[1]: text for note, text in blocks() if note.startswith("file ")}
    assert set(files) == {"hang.yaml", "hang_test.yaml"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["check", "--fail-on", "warning"]) == 0
    assert main(["fmt", "--check"]) == 0
    assert main(["test", "--mutate"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("each", CONSTRUCTS, ids=lambda each: each.example)
def test_every_construct_parses(each: object) -> None:
    """The examples of the reference are of the language."""
    from whyhang.rules.constructs import Construct

    assert isinstance(each, Construct)
    assert (parse_group if each.is_group else parse_expr)(each.example)


def test_every_word_of_the_grammar_is_explained() -> None:
    """No construct is left out: each keyword stands in an example or its meaning."""
    words = set(re.findall(r'"([a-z]+)"', grammar_text()))
    shown = " ".join(f"{each.example} {each.meaning}" for each in CONSTRUCTS)
    assert words - set(re.findall(r"[a-z]+", shown)) <= {
        "node",
        "process",
        "thread",
        "child",
        "are",
    }


def test_every_code_that_can_be_found_is_listed() -> None:
    """The table of codes is that of the sources, in order, each once."""
    sources = [*ROOT.glob("rules/*.py"), *ROOT.glob("engine/rule_*.py")]
    skipped = ("codes.py", "explanations.py")
    found = {
        code
        for path in sources
        if path.name not in skipped
        for code in re.findall(r'"(H\d{3})"', path.read_text())
    }
    listed = [each.code for each in CODES]
    assert listed == sorted(set(listed))
    assert found == set(listed)


def test_messages_may_name_what_they_get() -> None:
    """The names that the check knows are those that a report fills in."""
    from whyhang.schemas.verdict import Verdict

    verdict = Verdict(verdict="slow", category="other", confidence="low", headline="")
    assert list(message_values(verdict)) == list(MESSAGE_NAMES)
