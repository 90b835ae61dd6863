"""``config --resolved``: the merged file and where each item is from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from whyhang.engine.cli.main import main
from whyhang.rules.load import check_files, load_source
from whyhang.rules.resolve import resolve, resolved_json, resolved_lines
from whyhang.rules.ruleset import Ruleset
from whyhang.rules.shapes import shape
from whyhang.rules.sources import DEFAULT, Source, included, read_source

HERE = Path(__file__).parent
CHANGES = """\
version: 1
vars: {still: {replace: 30s}}
lists:
  communication: {append: ["mylib.wait"], remove: ["horovod.*.synchronize"]}
rules:
  - {id: pytorch/local-hang, override: {confidence: low}}
  - {id: pytorch/slow-compile, disabled: true}
  - id: mine
    refines: pytorch/local-hang
    when: log.stalled
    verdict: slow
    message: "{{ ranks }}: # no comment"
detect: {stall: 10m}
"""


def sources() -> list[Source]:
    """The pack, a file that changes it, and one that uses every section."""
    changes = Source(name="hang.yaml", text=CHANGES)
    return [included(DEFAULT, None), changes, read_source(HERE / "example.yaml")]


def essence(rules: Ruleset) -> object:
    """All that rules say, without positions."""
    return (
        rules.config,
        rules.variables,
        {name: (entry.patterns, entry.why, entry.frames) for name, entry in rules.lists.items()},
        {name: shape(body) for name, body in rules.defs.items()},
        {name: shape(body) for name, body in rules.sets.items()},
        [shape(group) for group in rules.ignore],
        [(each.id, shape(each.when), each.category, each.summary) for each in rules.suppress],
        [
            (
                each.id,
                shape(each.when),
                None if each.suspects is None else shape(each.suspects),
                each.refines,
                (each.verdict, each.category, each.confidence, each.priority),
                (each.summary, each.message.strip(), each.keep, each.labels),
            )
            for each in rules.rules
        ],
    )


@pytest.mark.parametrize("source", sources(), ids=lambda source: Path(source.name).stem)
def test_the_merged_file_says_the_same(source: Source) -> None:
    """What is printed is a hang.yaml by itself that loads to the same rules."""
    text = "\n".join(resolved_lines(resolve(source, {}))) + "\n"
    rules, findings = load_source(Source(name="merged", text=text), {})
    assert [one for one in findings if one.severity == "error"] == []
    assert essence(rules) == essence(load_source(source, {})[0])


def test_every_item_tells_where_it_is_from() -> None:
    """Items of the file, of the pack, of --set and defaults are told apart."""
    found = json.loads(json.dumps(resolved_json(resolve(sources()[1], {"quorum": "80%"}))))
    assert found["vars"]["still"] == {"value": "30s", "origin": "hang.yaml:2"}
    assert found["vars"]["quorum"] == {"value": "80%", "origin": "--set"}
    assert found["vars"]["minority"]["origin"].startswith("builtin:pytorch@1:")
    patterns = found["lists"]["communication"]["patterns"]
    assert patterns[-1] == {"value": "mylib.wait", "origin": "hang.yaml:4"}
    rules = {rule["id"]["value"]: rule for rule in found["rules"]}
    assert rules["pytorch/local-hang"]["confidence"] == {"value": "low", "origin": "hang.yaml:6"}
    assert rules["pytorch/local-hang"]["when"]["origin"].startswith("builtin:")
    assert rules["pytorch/slow-compile"]["disabled"]["value"] == "true"
    assert found["detect"]["stall"] == {"value": "10m", "origin": "hang.yaml:13"}
    assert found["detect"]["floor"] == {"value": "120s", "origin": "default"}


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a file the pack is shown; errors are told; an unknown variable is a wrong use."""
    monkeypatch.chdir(tmp_path)
    assert main(["config", "--resolved", "--set", "still=45s"]) == 0
    out = capsys.readouterr().out
    assert "  still: 45s  # --set\n" in out
    (tmp_path / "merged.yaml").write_text(out)
    assert all(one.severity != "error" for one in check_files([tmp_path / "merged.yaml"]))
    assert main(["config", "--resolved", "--set", "stil=45s"]) == 2
    assert "did you mean `still`?" in capsys.readouterr().err
    assert main(["config", "--resolved", "--set", "still"]) == 2
    (tmp_path / "hang.yaml").write_text("version: 1\nruls: []\n")
    assert main(["config", "--resolved", "--format", "json"]) == 2
    assert "H011" in capsys.readouterr().err
