"""Test files of rules: what they say, and what is wrong with them."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from whyhang.rules.findings import RuleErrors
from whyhang.rules.load import load_ruleset
from whyhang.rules.sources import Source
from whyhang.rules.test_cases import RuleTestFile, WorldFacts
from whyhang.rules.test_file import parse_test_file, read_test_file
from whyhang.rules.test_names import find_entry, unknown_names
from whyhang.schemas.rankset import RankSet

REPOSITORY = Path(__file__).parents[2]


def parse(text: str) -> RuleTestFile:
    """The tests of a file in /repo."""
    return parse_test_file(Source(name="t.yaml", text=text, directory=Path("/repo")))


def faults(text: str) -> list[str]:
    """All that is wrong with a file: place, code, message and help."""
    with pytest.raises(RuleErrors) as caught:
        parse(text)
    return [
        f"{f.span.line}:{f.span.column} {f.code} {f.message} {f.help}".strip()
        for f in caught.value.findings
    ]


def world_of(body: str) -> WorldFacts:
    """The world of a test with this body."""
    text = "rules: hang.yaml\nstacks: {base: [m.main], deep: [base, m.f]}\ntests:\n"
    text += f"  - name: one\n{body}    expect: [{{verdict: no_hang}}]\n"
    world = parse(text).tests[0].world
    assert isinstance(world, WorldFacts)
    return world


def test_the_schema_is_one_and_has_no_alternatives() -> None:
    """Editors understand it: draft-07 without oneOf and anyOf, every key described."""
    text = (files("whyhang.schemas") / "hang_test.v1.json").read_text()
    schema = json.loads(text)
    Draft7Validator.check_schema(schema)
    assert "oneOf" not in text
    assert "anyOf" not in text
    for name in ("test", "expectation"):
        for key, value in schema["definitions"][name]["properties"].items():
            assert value.get("description"), f"{name}.{key}"


def test_later_lines_override_key_by_key() -> None:
    """A line changes what it names; a new stack takes back what was said of the old one."""
    world = world_of(
        "    world: 4\n"
        "    ranks:\n"
        '      "*": {stack: deep, native: [poll], unchanged_for: 75s, io: 5}\n'
        "      1-2: {cpu: 50%}\n"
        "      2: base\n"
    )
    found = {str(one.ranks): one.facts for one in world.stages[0].classes}
    assert list(found) == ["0/3", "1", "2"]
    assert found["0/3"].stack == ("m.main", "m.f")
    assert (found["1"].cpu, found["1"].native, found["1"].read_rate) == (0.5, ("poll",), 5.0)
    assert (found["2"].stack, found["2"].native) == (("m.main",), None)
    assert found["2"].unchanged_for == 75.0


def test_short_forms() -> None:
    """A list or a name stands for a stack, a status and `unreadable` for themselves."""
    world = world_of(
        "    world: 6\n    ranks: {0: deep, 1: zombie, 2: unreadable, 3: 'unreadable: no rights',"
        " 4: [m.g], 5: {unreadable: true, state: D}}\n"
    )
    facts = [one.facts for one in world.stages[0].classes]
    assert facts[0].stack == ("m.main", "m.f")
    assert facts[1].status == "zombie"
    assert [f.unreadable for f in facts] == [
        *(None, None, "unreadable"),
        *("no rights", None, "unreadable"),
    ]
    assert facts[4].stack == ("m.g",)


def test_a_fact_can_be_taken_back() -> None:
    """An empty value makes a fact unknown again."""
    world = world_of(
        '    world: 1\n    ranks: {"*": {state: S, io: 5}, 0: {state: null, io: null}}\n'
    )
    facts = world.stages[0].classes[0].facts
    assert (facts.state, facts.read_rate, facts.write_rate) == (None, None, None)


def test_two_samples_that_span_what_is_unchanged() -> None:
    """The samples lie far enough apart for every stack that is the same for a while."""
    assert world_of("").moments == (0.0, 15.0)
    assert world_of("    ranks: {0: {stack: base, unchanged_for: 75s}}\n").moments == (0.0, 75.0)
    assert world_of("    samples: 3\n    interval: 7s\n").moments == (0.0, 7.0, 14.0)
    assert world_of("    samples: 0\n").moments == ()


def test_a_timeline_gives_one_sample_a_value() -> None:
    """The time since the last step grows as the clock does."""
    world = world_of("    timeline: {log.stalled_for: 0s+20sx2, log.phase: evalx2}\n")
    assert world.moments == (0.0, 20.0, 40.0)
    assert [log.stalled_for for log in world.log] == [0.0, 20.0, 40.0]
    assert {log.phase for log in world.log} == {"eval"}


def test_the_log_is_stalled_by_default() -> None:
    """A test of hangs need not say that there is one."""
    assert [log.state for log in world_of("").log] == ["stalled", "stalled"]
    assert world_of("    log: slow\n").log[0].state == "slow"
    derived = world_of("    log: {stalled_for: 1m, threshold: 2m}\n").log[0]
    assert (derived.state, derived.threshold) == (None, 120.0)


def test_expectations() -> None:
    """What is asserted is read; all else is not asserted."""
    text = (
        "rules: builtin:pytorch@1\n"
        "tests:\n"
        "  - name: one\n"
        "    timeline: {log.stalled_for: 0s+30sx9}\n"
        "    expect:\n"
        '      - {at: 2m, rule: a, result: inconclusive, because: x, suspects: ""}\n'
        "      - {at: 0s, none: true}\n"
    )
    file = parse(text)
    first, second = file.tests[0].expect
    assert file.rules == "builtin:pytorch@1"
    assert (first.at, first.rule, first.result) == (120.0, "a", "inconclusive")
    assert (first.because, first.suspects) == (("x",), RankSet())
    assert (second.none, second.suspects, second.because) == (True, None, ())
    assert (second.span.line, second.span.column) == (7, 9)


HEAD = "rules: hang.yaml\nstacks: {loop: [loop], base: [m.main]}\ntests:\n  - name: one\n"
GOOD = "    expect: [{verdict: no_hang}]\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("tests: []\n", "1:1 H014 missing key `rules` in the file"),
        ("rules: a\ntests: []\n", "2:8 H010 `[]` is not a list of at least one test"),
        ("rules: a\ntests:\n  - {name: b}\n", "3:5 H014 missing key `expect` in `tests`"),
        (HEAD + "    expct: []\n" + GOOD, "5:5 H011 unknown key `expct`; did you mean `expect`?"),
        (HEAD + "    expect: []\n", "5:13 H010 `[]` is not a list of at least one expectation"),
        (
            HEAD + "    expect: [{verdict: locl_hang}]\n",
            "5:24 H010 'locl_hang' is not one of [local_hang, global_hang, slow, no_hang,"
            " inconclusive]; did you mean `local_hang`?",
        ),
        (HEAD + "    ranks: {0: {sate: D}}\n" + GOOD, "5:17 H011 unknown key `sate`; did you mean"),
        (HEAD + "    ranks: {x: base}\n" + GOOD, "5:13 H502 not a rank or a run of ranks: 'x'"),
        (HEAD + "    ranks: {8-9: base}\n" + GOOD, "5:13 H502 this world has no rank 8-9"),
        (
            HEAD + "    ranks: {0: bse}\n" + GOOD,
            "5:16 H502 `bse` is neither a frame nor one of `stacks` did you mean `base`?",
        ),
        (HEAD + GOOD, "2:17 H502 stack `loop` holds itself"),
        (HEAD + "    nodes: {7: missing}\n" + GOOD, "5:13 H502 this world has no node `7`"),
        (
            HEAD + "    nodes: {0: mising}\n" + GOOD,
            "5:16 H502 `mising` is no status: did you mean `missing`?",
        ),
        (HEAD + "    world: 9999999\n" + GOOD, "5:12 H502 a world has at most 100000 ranks"),
        (HEAD + "    log: staled\n" + GOOD, "5:10 H502 `staled` is no state of the log: did you"),
        (
            HEAD + "    timeline: {log.stalled_for: 0s+30s}\n" + GOOD,
            "5:33 H502 `0s+30s` is no series: `0s+30s` does not say how often",
        ),
        (
            HEAD + "    timeline: {log.stalled_for: 0sx3, log.phase: evalx2}\n" + GOOD,
            "5:15 H502 the series differ in length",
        ),
        (
            HEAD + "    expect: [{at: 1h, none: true}]\n",
            "5:19 H502 `1h` is beyond the timeline: 15 s long",
        ),
        (
            HEAD + "    expect: [{result: fired}]\n",
            "5:23 H502 `result` needs a `rule` to be about",
        ),
        (HEAD + "    expect: [{at: 0s}]\n", "5:14 H502 this expects nothing"),
        (
            HEAD + "    incident: a/\n    log: slow\n" + GOOD,
            "6:10 H502 `log` has no effect beside `incident`",
        ),
        (
            HEAD + GOOD + "  - name: one\n" + GOOD,
            "6:11 H504 there is a test `one` already",
        ),
        ("rules: [\n", "2:1 H001 YAML: "),
        ("rules: a\nrules: b\ntests: []\n", "2:1 H012 duplicate key `rules`"),
    ],
)
def test_faults(text: str, fault: str) -> None:
    """Every fault is found where it stands."""
    assert any(found.startswith(fault) for found in faults(text)), faults(text)


def test_all_faults_at_once() -> None:
    """The second fault does not wait for the first to be mended."""
    text = HEAD.replace("loop: [loop], ", "")
    text += "    ranks: {0: bse, 1: {cpu: 5%}, 99: base}\n    expect: [{because: x}]\n"
    assert [fault.split()[1] for fault in faults(text)] == ["H502"] * 3


def test_names_of_rules() -> None:
    """An unknown rule is an error with a hint; a pack's rules need no prefix."""
    ruleset = load_ruleset()
    found = find_entry(ruleset, "local-hang")
    assert found is not None
    assert found.id == "pytorch/local-hang"
    assert find_entry(ruleset, "pytorch/local-hang") is found
    text = (
        "rules: builtin:pytorch@1\ntests:\n  - name: one\n    expect:\n"
        "      - {rule: locl-hang}\n"
        "      - {rule: progressing}\n"
        '      - {rule: progressing, result: not, suspects: "1"}\n'
        "      - {winner: progressing}\n"
        "      - {winner: local-hangs, rule: local-hang}\n"
    )
    findings = [(f.span.line, f.code, f.help) for f in unknown_names(parse(text), ruleset)]
    assert findings == [
        (5, "H501", "did you mean `local-hang`?"),
        (6, "H502", ""),
        (7, "H502", ""),
        (8, "H502", ""),
        (9, "H501", "did you mean `local-hang`?"),
    ]


INLINE = """\
version: 1
include: []
rules:
  - id: first
    when: log.stalled
    verdict: slow
  - id: readers
    when: any rank is (top.function == "read")
    verdict: local_hang
    tests:
      - name: one reads
        ranks: {3: a.read}
        expect: [{result: fired}, {verdict: local_hang, suspects: ""}, {rule: first, result: not}]
"""


def test_tests_beside_a_rule() -> None:
    """They are about their rule unless they name another or the verdict."""
    file = parse(INLINE)
    assert file.rules == Path("/repo/t.yaml")
    assert [e.rule for e in file.tests[0].expect] == ["readers", None, "first"]
    assert (file.tests[0].span.line, file.tests[0].span.column) == (11, 15)


def test_faults_beside_a_rule_stand_where_they_are() -> None:
    """A fault in an inline test is shown in the rule file."""
    assert faults(INLINE.replace("ranks:", "rnks:"))[0].startswith("12:9 H011 unknown key `rnks`")
    without = INLINE[: INLINE.index("    tests:")]
    assert "H010 `[]` is not a list of at least one test" in faults(without)[0]


def test_the_shipped_tests_are_read() -> None:
    """The tests of the pack and of the starter are without fault."""
    for name in ("tests/packs/pytorch_test.yaml", "hang_test.yaml"):
        assert read_test_file(REPOSITORY / name).tests
