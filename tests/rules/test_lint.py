"""Lints: what they find stands in ``bad/lint_*``; here is what they must leave alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from whyhang.engine.threshold import confirm_seconds
from whyhang.rules.catalogue import catalogue, claims_to_be_known
from whyhang.rules.contradiction import why_impossible
from whyhang.rules.document import read_document
from whyhang.rules.findings import Finding
from whyhang.rules.lint_time import ends, longest_span, shortest_interval
from whyhang.rules.load import check_files, load_ruleset, load_source
from whyhang.rules.parse import parse_expr
from whyhang.rules.regexes import as_globs, is_explosive
from whyhang.rules.ruleset import FrameList, Ruleset
from whyhang.rules.sources import DEFAULT, Source, directory, included
from whyhang.rules.validate import validate
from whyhang.schemas.config import Config, DetectConfig

ROOT = Path(__file__).parents[2]
SETS = "sets: {odd: ranks that are unreadable, read: ranks that are (top is known)}\n"


def lints(text: str, codes: tuple[str, ...]) -> list[Finding]:
    """The findings of some codes in a file without the pack."""
    source = Source(name="hang.yaml", text=f"version: 1\ninclude: []\n{text}")
    return [one for one in load_source(source, {}, lints=True)[1] if one.code in codes]


def condition(when: str, verdict: str = "slow") -> str:
    """A file with one rule."""
    return f"{SETS}rules:\n  - id: a\n    when: |\n      {when}\n    verdict: {verdict}\n"


def test_what_ships_is_clean() -> None:
    """Neither the starter nor the pack, checked by itself, has anything to complain about."""
    assert check_files([ROOT / "hang.yaml"]) == ()
    assert check_files([directory() / "pytorch.yaml"]) == ()


def test_the_pack_fits_the_schema() -> None:
    """Loading takes this for granted, so that jsonschema is not needed for it."""
    document = read_document(included(DEFAULT, None).text, DEFAULT)
    assert list(validate(document)) == []


def test_a_pack_is_not_blamed_for_what_a_file_changes(tmp_path: Path) -> None:
    """Switching off all that uses a definition of the pack makes no finding in the pack."""
    path = tmp_path / "hang.yaml"
    path.write_text(
        "version: 1\ncollect: {native: never}\nrules:\n"
        "  - {id: pytorch/local-logging, disabled: true}\n"
    )
    assert check_files([path]) == ()


def test_lints_cost_nothing_at_the_start_of_a_job(tmp_path: Path) -> None:
    """Loading rules looks for no lint, except for packs whose suppressions never end."""
    path = tmp_path / "hang.yaml"
    path.write_text("version: 1\ninclude: []\nrules: [{id: a, when: log.slow, verdict: slow}]\n")
    source = Source(name=str(path), text=path.read_text() + "defs: {unused: log.slow}\n")
    assert load_source(source, {})[1] == ()
    assert [one.code for one in load_source(source, {}, lints=True)[1]] == ["H301"]
    assert load_ruleset(path).rules


@pytest.mark.parametrize(
    "when",
    [
        "count(odd) >= 1 and at most 10% of odd are (top is known)",
        "some odd are (top is known) and at most 10% of odd are (status is known)",
        "share(odd) <= 50% and at most 10% of (ranks except odd) are (top is known)",
        "at least 90% of odd are (top is known)",
        "at most 3 odd are (top is known)",
        "at most 10% of ranks are unreadable",
    ],
)
def test_percentages_of_somebody_are_fine(when: str) -> None:
    """H304 is about groups that may be empty and amounts that nobody meets."""
    assert lints(condition(when), ("H304",)) == []


@pytest.mark.parametrize(
    "when",
    ["at most 10% of odd are (top is known)", "not (at least 90% of odd are (top is known))"],
)
def test_percentages_of_nobody_are_told(when: str) -> None:
    """Nobody is at most a tenth of nobody."""
    assert [one.code for one in lints(condition(when), ("H304",))] == ["H304"]


@pytest.mark.parametrize(
    "when",
    [
        'at least 90% of ranks are (top.function == "f")',
        'all nodes are (all ranks are (top.function == "f"))',
        "all ranks are (top is known)",
        'all ranks are (top is known and top.function is known and top.function == "f")',
        'all odd are (top.function == "f")',
        "all ranks are unreadable",
    ],
)
def test_all_is_fine_where_it_can_be_answered(when: str) -> None:
    """H313 is about the ranks of the whole job and fields that may be unknown."""
    assert lints(condition(when), ("H313",)) == []


@pytest.mark.parametrize(
    ("when", "found"),
    [
        ('log.phase is known and log.phase != "eval"', False),
        ('log.phase is unknown or log.phase != "eval"', False),
        ("not job.ended", False),
        ("no rank is unreadable", False),
        ('any rank is (not (stack is known and stack has "a"))', False),
        ('any rank is (top is known and any child is (not (top.function == "f")))', True),
        ('log.phase not in ["eval"]', True),
        ('no rank is (status == "exited")', True),
    ],
)
def test_negations_of_what_may_be_unknown(when: str, found: bool) -> None:
    """H310 is about a single field that may be unknown where nothing else says that it is known."""
    assert bool(lints(condition(when), ("H310",))) is found


@pytest.mark.parametrize(
    ("when", "found"),
    [
        ('log.phase == "eval" and log.stalled_for < 30m', True),
        ("30m >= log.stalled_for", True),
        ("not (log.stalled_for > 1h)", True),
        ('(log.slow or log.stalled_for < 1h) and log.phase == "eval"', True),
        ("not log.stalled", True),
        ("bounded", True),
        ("any rank is (unreadable and log.stalled_for < 1h)", True),
        ("log.stalled_for < 1h for 10s", True),
        ("log.stalled_for > 1h", False),
        ('log.phase == "eval" or log.stalled_for < 30m', False),
        ("no rank is (log.stalled_for < 1h)", False),
        ("not (log.stalled_for < 1h)", False),
    ],
)
def test_an_end_in_time(when: str, found: bool) -> None:
    """H311 knows what ends: a bound on the stall, or that steps advance."""
    defs = {"bounded": parse_expr("log.stalled_for < 5m and log.phase is known")}
    assert ends(parse_expr(when), defs) is found


@pytest.mark.parametrize(
    ("when", "never"),
    [
        ("log.stalled_for > 5m and log.stalled_for < 2m", True),
        ("log.stalled_for >= 5m and log.stalled_for <= 5m", False),
        ("log.iteration > 3 and log.iteration < 4", True),
        ("share(odd) > 100%", True),
        ("share(odd) >= $half and share(odd) < 50%", True),
        ("count(odd) < 0", True),
        ("slow and not log.slow", True),
        ('any rank is (status in ["exited"] and status == "zombie")', True),
        ('any rank is (status not in ["running", "missing", "exited", "zombie", "stopped"])', True),
        ("any rank is unreadable and no rank is unreadable", True),
        ("any rank is (top in nothing)", True),
        ("log.slow and (log.stalled or log.progressing)", True),
        ("log.slow or log.stalled", False),
        ('any rank is (status == "exited") and any rank is (status == "zombie")', False),
        ("log.stalled for 10s and not log.stalled", True),
        ("not (log.stalled for 10s) and log.stalled", False),
    ],
)
def test_contradictions(when: str, never: bool) -> None:
    """H302 sees what the words alone exclude, and nothing that could be true."""
    rules = Ruleset(
        variables={"half": 0.5},
        defs={"slow": parse_expr("log.slow")},
        lists={"nothing": FrameList(name="nothing", patterns=())},
    )
    assert (why_impossible(parse_expr(when), rules) is not None) is never


def test_settled_overlaps_are_left_alone() -> None:
    """H309: refines, a chain of refines, priority or the same answer settle who wins."""
    general = "  - {id: general, when: log.slow, verdict: slow}\n"
    special = "when: 'log.slow and any rank is unreadable', verdict: inconclusive"
    for settled in (
        f"  - {{id: a, refines: general, {special}}}\n",
        f"  - {{id: a, priority: 1, {special}}}\n",
        "  - {id: a, when: 'log.slow and any rank is unreadable', verdict: slow}\n",
        f"  - {{id: b, refines: general, when: log.stalled, verdict: slow}}\n"
        f"  - {{id: a, refines: b, {special}}}\n",
    ):
        assert lints(f"rules:\n{general}{settled}", ("H309",)) == []
    assert lints(f"rules:\n{general}  - {{id: a, {special}}}\n", ("H309",))


@pytest.mark.parametrize(
    ("pattern", "globs"),
    [
        ("barrier", ("*barrier*",)),
        (r"foo\.bar$", ("*foo.bar",)),
        ("a|b.*c", ("*a*", "*b*c*")),
        ("^torch", ()),
        (r"\d+", ()),
        ("(a|b)", ()),
        (".*", ()),
        ("[ab]", ()),
    ],
)
def test_regexes_that_are_globs(pattern: str, globs: tuple[str, ...]) -> None:
    """What is tied to the name's beginning, or chooses characters, is none."""
    assert as_globs(pattern) == globs


@pytest.mark.parametrize(
    ("pattern", "explosive"),
    [
        ("(a+)+", True),
        ("(.*a)*x", True),
        (r"(\w+\s?)*$", True),
        (r"(\w+\.)+", False),
        (r"(\d+ms|\d+s)+", False),
        ("x*y*", False),
        ("^nfs|rpc", False),
        ("(", False),
    ],
)
def test_explosive_regexes(pattern: str, explosive: bool) -> None:
    """A repetition in a repetition is harmless where something must part the rounds."""
    assert is_explosive(pattern) is explosive


def test_the_catalogue_knows_what_the_pack_names() -> None:
    """Every torch pattern of the pack matches; patterns of user code are none of its business."""
    patterns = [one for entry in load_ruleset().lists.values() for one in entry.patterns]
    claimed = [one for one in patterns if claims_to_be_known(one)]
    assert len(claimed) > 20
    assert [one for one in claimed if not catalogue().has_match(one)] == []
    assert not claims_to_be_known("mylib.torch.all_reduce")
    assert catalogue().has_match("torch.nn.modules.*")
    assert not catalogue().has_match("torch.distributed.distributed_c10d.all_reduse")
    assert catalogue().has_match("ncclDevKernel*")


@pytest.mark.parametrize(
    "detect", [DetectConfig(), DetectConfig(stall=600.0), DetectConfig(confirm=45.0)]
)
def test_the_planned_span_is_that_of_detection(detect: DetectConfig) -> None:
    """H314 allows what the watch really waits between its two samples, whatever the threshold."""
    config = Config(detect=detect)
    for threshold in (detect.floor, detect.ceiling):
        seconds = confirm_seconds(detect, threshold)
        assert shortest_interval(config) <= seconds <= longest_span(config)
