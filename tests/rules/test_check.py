"""Names and types in conditions."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from whyhang.rules.check import Checker
from whyhang.rules.findings import Finding
from whyhang.rules.names import Names, TypedVariable
from whyhang.rules.parse import parse_expr, parse_group

DEFS = {
    "waiting": "top in communication",
    "frozen": "stack unchanged for $still",
    "quiet": "log.phase in phases",
    "sick": "any rank is unreadable",
    "nonsense": "thread.name == node.name",
}
SETS = {
    "odd": "ranks that are not waiting",
    "bad_nodes": "nodes that are (all ranks are waiting)",
    "workers": 'children that are (proc.kind == "dataloader")',
}
VARIABLES = {
    "still": TypedVariable(type="duration", value=10.0),
    "quorum": TypedVariable(type="percent", value=0.9),
    "three": TypedVariable(type="int", value=3),
    "half": TypedVariable(type="num", value=0.5),
    "word": TypedVariable(type="str", value="D"),
}


def checker(defs: Mapping[str, str] = DEFS, sets: Mapping[str, str] = SETS) -> Checker:
    """A checker that knows a few names of each sort."""
    return Checker(
        Names(
            variables=VARIABLES,
            lists=("communication", "phases"),
            defs={name: parse_expr(text) for name, text in defs.items()},
            sets={name: parse_group(text) for name, text in sets.items()},
        )
    )


def findings(text: str) -> list[Finding]:
    """What is wrong with a condition about the whole job."""
    made = checker()
    made.check_condition(parse_expr(text))
    return made.findings


@pytest.mark.parametrize(
    "text",
    [
        "log.stalled and not log.slow",
        "log.stalled_for >= 5m and log.stalled_for < $still",
        "all ranks are waiting and some odd are frozen",
        "at least $quorum of (ranks except odd) are waiting",
        "at most 3 ranks are waiting and exactly $three of nodes are sick",
        "share(odd) <= 50% and count(bad_nodes) == 1",
        "all ranks agree on top.function",
        'any rank is (status in ["missing"] and proc.state == $word)',
        "any rank is (io.read_rate == 0 or io.read_rate > 0.5 or cpu.rate < 5%)",
        "any rank is (any workers are unreadable and any child is (proc.rank == 3))",
        "any rank is (any thread is (thread.name matches /main/))",
        'any rank is (stack has communication or native has "x*" or proc.kernel has /y/)',
        "all nodes except bad_nodes are (all ranks are waiting)",
        "any rank is (quiet and event.oom_kill and step_lag > $three and alike > $quorum)",
        "any rank is (native is unknown)",
        "(log.stalled) for $still and log.phase not in phases",
        "any process is (top in communication and proc.rank is known)",
        "event.traceback and job.ended",
    ],
)
def test_what_is_right_passes(text: str) -> None:
    """Sound conditions have no findings."""
    assert findings(text) == []


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("log.staled", "H201", "did you mean `log.stalled`?"),
        ("any rank is wating", "H201", "did you mean `waiting`?"),
        ("any rank is odd", "H201", "`odd` is one of sets, not a def"),
        ("any rank is (top in waiting)", "H201", "`waiting` is one of defs, not a list"),
        ("any ood is waiting", "H201", "did you mean `odd`?"),
        ("share(waiting) > 3%", "H201", "`waiting` is one of defs, not a set"),
        ("log.stalled_for > $stil", "H201", "unknown variable `$stil`"),
        ("log.stalled_for > still", "H201", "`still` is one of vars: write `$still`"),
        ("all ranks agree on top.funtion", "H201", "did you mean `top.function`?"),
        ("log.phase", "H202", "is text, not a yes/no question"),
        ("any rank is top", "H202", "write `top in LIST`"),
        ("log.stalled_for >= 5", "H202", "write a duration such as 5m"),
        ("5 < log.stalled_for", "H202", "write a duration such as 5m"),
        ("log.stalled_for > $three", "H202", "`$three` is a number"),
        ("share(odd) < 3", "H202", "write a percentage such as 90%"),
        ("count(odd) < 50%", "H202", "`50%` is a percentage"),
        ("log.phase > $word", "H202", "text has no order"),
        ('any rank is (top == "x")', "H202", "cannot be compared"),
        ("any rank is (top has communication)", "H202", "write `top in LIST`"),
        ("any rank is (stack in communication)", "H202", "write `stack has LIST`"),
        ("log.iteration in phases", "H202", "`in` is about a frame or text"),
        ("any rank is (top.line matches /3/)", "H202", "`matches` is about text"),
        ("any rank is (native unchanged for 3s)", "H202", "only `stack`"),
        ("any rank is (stack unchanged for $three)", "H202", "not a duration"),
        ("log.stalled for $quorum", "H202", "not a duration"),
        ("waiting", "H205", "say whose: `any rank is waiting`"),
        ('status == "missing"', "H205", "say whose: `any rank is (status …)`"),
        ("any node is (top in communication)", "H205", "asked of one node"),
        ("any rank is sick", "H205", "asked of one rank"),
        ("any child is unreadable", "H205", "`children` are those of one rank"),
        ("any rank is (count(odd) > 3)", "H205", "no meaning inside a condition about one rank"),
        ("any process is (step_lag > 1)", "H205", "is about one rank"),
        ("count(ranks except bad_nodes) > 1", "H206", "ranks except nodes"),
        ("at least $still of ranks are waiting", "H207", "not a count or percentage"),
        ("at least 120% of ranks are waiting", "H207", "more than all"),
        ('any rank is (status == "mising")', "H210", "did you mean `missing`?"),
        ('log.phase in ["evall"]', "H210", "did you mean `eval`?"),
        ("any rank is (proc.wchan matches /(/)", "H211", "not a regular expression"),
    ],
)
def test_what_is_wrong_is_found(text: str, code: str, words: str) -> None:
    """One fault makes one finding, with a remedy where there is one."""
    (finding,) = findings(text)
    assert finding.code == code
    assert words in f"{finding.message} {finding.help}"


def test_no_suggestion_is_better_than_a_far_one() -> None:
    """Names that are not alike are not suggested."""
    (finding,) = findings("qqqq")
    assert finding.help == ""


def test_the_kind_of_suspects_is_checked() -> None:
    """A group is refused where its members are of the wrong kind."""
    made = checker()
    made.check_group(parse_group("processes that are unreadable"), ("rank", "node"), "suspects")
    assert [finding.code for finding in made.findings] == ["H208"]


def test_a_definition_that_fits_nowhere_is_reported_once() -> None:
    """A thread has no node: no scope has both fields."""
    made = checker()
    made.check_definitions()
    made.check_condition(parse_expr("any rank is nonsense"))
    assert [finding.code for finding in made.findings] == ["H205"]


def test_circles_are_found() -> None:
    """Definitions and sets must not lead back to themselves, and checking them ends."""
    made = checker(
        {"a": "b", "b": "not a", "c": "any loop is a", "d": "log.slow"},
        {"loop": "ranks that are d", "x": "nodes that are (any x is d)"},
    )
    made.check_definitions()
    circles = [finding for finding in made.findings if finding.code == "H204"]
    assert [finding.message for finding in circles] == [
        "`a` is defined by itself: a -> b -> a",
        "`x` is defined by itself: x -> x",
    ]


def test_lists_of_frames_are_told_from_lists_of_texts() -> None:
    """A list counts as frames where a condition asks for frames in it."""
    made = checker()
    made.check_definitions()
    assert made.frame_lists == {"communication"}
    assert made.text_lists == {"phases"}
