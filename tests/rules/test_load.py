"""Loading: files, includes, verbs, and what the result holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whyhang.rules import ast, sources
from whyhang.rules.findings import BrokenPack, Finding, RuleErrors, format_findings
from whyhang.rules.load import check_files, load_ruleset, load_source
from whyhang.rules.sources import Source
from whyhang.schemas.config import Config
from whyhang.schemas.errors import UsageError

HERE = Path(__file__).parent
PACK = """\
version: 1
pack: {name: pytorch, version: 1.2.0}
vars: {quorum: 90%}
lists:
  communication: ["*.barrier", "*.all_reduce"]
  transparent: ["threading.*"]
  phases: [eval, init]
defs:
  waiting: top in communication
sets:
  odd: ranks that are not waiting
suppress:
  - {id: quiet, when: log.phase in phases and log.stalled_for < 1h}
rules:
  - id: local-hang
    when: log.stalled and at least $quorum of ranks are waiting
    verdict: local_hang
    suspects: odd
  - {id: sharper, refines: local-hang, when: count(odd) == 1, verdict: local_hang}
"""


@pytest.fixture
def pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small pack that stands in for the real one."""
    folder = tmp_path / "packs"
    folder.mkdir()
    (folder / "pytorch.yaml").write_text(PACK)
    monkeypatch.setattr(sources, "directory", lambda: folder)
    return folder / "pytorch.yaml"


def write(folder: Path, text: str, name: str = "hang.yaml") -> Path:
    """A file with some text."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def faults(path: Path) -> list[str]:
    """The findings in a file, short; without the lints."""
    return [
        f"{Path(one.span.file).name}:{one.span.line} {one.severity} {one.code} {one.message}"
        for one in check_files([path])
        if not one.code.startswith("H3")
    ]


def test_a_file_with_many_faults_shows_them_all() -> None:
    """Each fault has a line and column, the source line, carets and a remedy."""
    findings = check_files([HERE / "faults.yaml"])
    text = "\n".join(format_findings(findings)).replace(f"{HERE}/", "") + "\n"
    assert text == (HERE / "faults.txt").read_text()
    assert len(findings) >= 10
    assert all(finding.source is not None for finding in findings)
    assert text.count("= help: ") == len(findings)


def test_the_example_loads() -> None:
    """A file that uses every section and construct has no errors, only lints on purpose."""
    lints = {finding.code for finding in check_files([HERE / "example.yaml"])}
    assert lints == {"H307", "H313", "H314"}
    ruleset = load_ruleset(HERE / "example.yaml")
    rules = {rule.id: rule for rule in ruleset.rules}
    first = rules["one-side"]
    assert isinstance(first.when, ast.Held)
    assert first.when.text.endswith("some odd are frozen) for 2m")
    assert isinstance(first.when.duration, ast.Literal_)
    assert first.when.duration.value == 120.0
    assert isinstance(first.suspects, ast.Named)
    assert (first.keep, first.message) == (600.0, "ranks {{ ranks }} hold up the others")
    assert first.labels == {"team": "infra"}
    assert rules["one-node"].refines == ("one-side", "disk-sleep")
    assert rules["divergent"].priority == -1
    assert rules["disk-sleep"].category == "disk_io"
    assert ruleset.suppress[2].category == "compile"
    assert ruleset.variables == {"still": 10.0, "quorum": 0.9, "minority": 0.5}
    assert ruleset.lists["hidden_communication"].why.startswith("these wait")
    assert ruleset.lists["communication"].frames
    assert not ruleset.lists["quiet_phases"].frames
    assert len(ruleset.ignore) == 1


def test_the_sections_are_typed() -> None:
    """Durations are seconds, sizes bytes, auto is None, and texts stay as written."""
    config = load_ruleset(HERE / "example.yaml").config
    assert config.job.id == "$JOB_ID"
    assert config.progress.log == ("logs/*.log",)
    assert config.progress.checkpoint is not None
    assert config.progress.checkpoint.max_age == 6 * 3600
    assert (config.detect.stall, config.detect.floor, config.detect.confirm) == (None, 180, 20)
    assert config.detect.phases == {"load": 3 * 3600, "eval": 3600}
    assert config.collect.kinds == ("trainer", "dataloader")
    assert (config.topology.tensor, config.topology.pipeline) == (4, 2)
    assert (config.topology.expert, config.topology.order) == (None, None)
    assert config.topology.place.endswith("example.yaml:95")
    assert (config.on_hang.action, config.on_hang.grace) == ("stop", 60)
    assert config.on_hang.notify_post == "https://example.org/x"
    assert (config.store.keep, config.store.max_size) == (7 * 86400, 512 * 2**20)


def test_the_pack_that_ships_has_no_findings() -> None:
    """The built-in pack loads, by itself and as the whole of an almost empty file."""
    ruleset = load_ruleset()
    assert ruleset.config == Config()
    assert ruleset.rules
    assert all(rule.id.startswith("pytorch/") for rule in ruleset.rules)
    assert ruleset.lists["transparent"].frames


def test_the_smallest_file_gets_the_pack(pack: Path, tmp_path: Path) -> None:
    """Without ``include`` the pack for PyTorch applies; an empty ``include`` turns it off."""
    small = load_ruleset(write(tmp_path, "version: 1\ndetect: {stall: 10m}\n"))
    assert [rule.id for rule in small.rules] == ["pytorch/local-hang", "pytorch/sharper"]
    assert small.rules[1].refines == ("pytorch/local-hang",)
    assert [one.id for one in small.suppress] == ["pytorch/quiet"]
    assert small.config.detect.stall == 600
    assert small.lists["transparent"].frames and not small.lists["phases"].frames
    none = load_ruleset(write(tmp_path, "version: 1\ninclude: []\n"))
    assert none.rules == ()


def test_names_of_the_pack_are_visible(pack: Path, tmp_path: Path) -> None:
    """Rules of one's own use the pack's definitions, sets, lists and variables."""
    text = (
        "version: 1\nrules:\n  - id: mine\n    refines: pytorch/local-hang\n"
        "    when: share(odd) < $quorum and any rank is (waiting and stack has communication)\n"
        "    verdict: slow\n"
    )
    ruleset = load_ruleset(write(tmp_path, text))
    assert ruleset.rules[-1].id == "mine"
    assert ruleset.rules[-1].refines == ("pytorch/local-hang",)


def test_verbs_change_what_is_included(pack: Path, tmp_path: Path) -> None:
    """Append, remove, replace, override and disable act on one item each."""
    text = (
        "version: 1\n"
        "vars: {quorum: {replace: 95%}}\n"
        "lists:\n  communication: {append: ['*.recv'], remove: ['*.barrier']}\n"
        "  phases: {replace: [compile]}\n"
        "defs: {waiting: {replace: top in communication or unreadable}}\n"
        "sets: {odd: {replace: ranks that are unreadable}}\n"
        "suppress: [{id: pytorch/quiet, disabled: true}]\n"
        "rules:\n  - {id: pytorch/local-hang, override: {for: 5m, confidence: low}}\n"
        "  - {id: pytorch/sharper, disabled: true}\n"
    )
    ruleset = load_ruleset(write(tmp_path, text))
    assert ruleset.variables == {"quorum": 0.95}
    assert ruleset.lists["communication"].patterns == ("*.all_reduce", "*.recv")
    assert ruleset.lists["phases"].patterns == ("compile",)
    assert isinstance(ruleset.defs["waiting"], ast.Or)
    assert isinstance(ruleset.sets["odd"], ast.Filtered)
    assert ruleset.suppress == ()
    (rule,) = ruleset.rules
    assert isinstance(rule.when, ast.Held)
    assert (rule.confidence, rule.verdict) == ("low", "local_hang")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "rules: [{id: pytorch/local-hung, disabled: true}]",
            "hang.yaml:2 error H402 no included file has a rule `pytorch/local-hung` to change",
        ),
        (
            "lists: {comunication: {append: [x]}}",
            "hang.yaml:2 error H402 no included file has a list `comunication` to change",
        ),
        (
            "lists: {communication: {remove: ['*.barier']}}",
            "hang.yaml:2 error H402 list `communication` has no pattern `*.barier` to remove",
        ),
        (
            "lists: {communication: [x]}",
            "hang.yaml:2 error H403 list `communication` is in `builtin:pytorch@1` already",
        ),
        (
            "defs: {waiting: unreadable}",
            "hang.yaml:2 error H403 def `waiting` is in `builtin:pytorch@1` already",
        ),
        (
            "rules: [{id: pytorch/sharper, when: log.slow, verdict: slow}]",
            "hang.yaml:2 error H403 rule `pytorch/sharper` is in `builtin:pytorch@1` already",
        ),
        (
            "rules: [{id: pytorch/sharper, override: {verdict: local_hang}}]",
            "hang.yaml:2 warning H406 `local_hang` changes nothing",
        ),
        (
            "lists: {communication: {append: ['*.barrier']}}",
            "hang.yaml:2 warning H406 `*.barrier` changes nothing",
        ),
        (
            "include: ['builtin:pytroch@1']",
            "hang.yaml:2 error H401 unknown pack `pytroch`",
        ),
        (
            "include: ['builtin:pytorch@2']",
            "hang.yaml:2 error H401 `builtin:pytorch@2`: this whyhang ships version 1.2.0",
        ),
        (
            "include: ['builtin:pytorch']",
            "hang.yaml:2 error H401 `builtin:pytorch` is not a pinned pack",
        ),
        (
            "include: ['https://example.org/x.yaml']",
            "hang.yaml:2 error H401 `https://example.org/x.yaml` is an address",
        ),
        ("defs: {ranks: log.slow}", "hang.yaml:2 error H209 `ranks` is a word of the language"),
        ("defs: {status: log.slow}", "hang.yaml:2 error H209 `status` is a field already"),
        (
            "rules: [{id: a, verdict: slow}]",
            "hang.yaml:2 error H014 rule `a` has no `when`",
        ),
        (
            "rules: [{id: a, refines: b, when: log.slow, verdict: slow}]",
            "hang.yaml:2 error H201 unknown rule `b`",
        ),
        (
            "rules: [{id: a, when: log.slow, verdict: slow, message: '{{ a'}]",
            "hang.yaml:2 error H203 message: unexpected end of template, "
            "expected 'end of print statement'.",
        ),
        (
            "ignore: [ranks that are waiting]",
            "hang.yaml:2 error H208 what is ignored must be processes or threads or children, "
            "not ranks",
        ),
        (
            "defs:\n  a: >\n    log.slow # why\n    and log.stalled",
            "hang.yaml:3 error H013 a comment in this condition hides all that follows it",
        ),
        (
            "defs:\n  a: >\n    log.slow\n    and log.stalled",
            "hang.yaml:3 warning H013 errors in this condition cannot be shown where they are",
        ),
    ],
)
def test_faults_of_names_and_verbs(pack: Path, tmp_path: Path, text: str, expected: str) -> None:
    """What does not exist cannot be changed, what exists cannot be repeated."""
    assert faults(write(tmp_path, f"version: 1\n{text}\n")) == [expected]


def test_files_include_files(pack: Path, tmp_path: Path) -> None:
    """Paths start at the including file; a file that is reached twice counts once."""
    write(tmp_path / "team", "version: 1\ninclude: []\ndefs: {calm: log.slow}\n", "calm.yaml")
    write(tmp_path / "team", "version: 1\ninclude: [./calm.yaml]\n", "base.yaml")
    text = (
        "version: 1\ninclude: [team/base.yaml, ./team/calm.yaml]\n"
        "rules: [{id: a, when: calm, verdict: slow}]\n"
    )
    ruleset = load_ruleset(write(tmp_path, text))
    assert [rule.id for rule in ruleset.rules] == ["a"]
    assert set(ruleset.defs) == {"calm"}


def test_files_that_include_each_other_are_refused(tmp_path: Path) -> None:
    """A circle of includes is a finding, not an endless loop."""
    write(tmp_path, "version: 1\ninclude: [b.yaml]\n", "a.yaml")
    write(tmp_path, "version: 1\ninclude: [a.yaml]\n", "b.yaml")
    (fault,) = faults(tmp_path / "a.yaml")
    assert fault.startswith("b.yaml:2 error H405 files include each other")


def test_a_missing_include_is_one_finding(tmp_path: Path) -> None:
    """Names that may stand in a file that cannot be read are not reported as well."""
    text = (
        "version: 1\ninclude: [gone.yaml]\n"
        "rules: [{id: a, when: any rank is (elsewhere and top in anywhere), verdict: slow}]\n"
    )
    (fault,) = faults(write(tmp_path, text))
    assert "H401 cannot read" in fault


def test_sections_of_included_files_have_no_effect(tmp_path: Path) -> None:
    """Only the job's own file says where incidents are kept; that is warned about."""
    write(tmp_path, "version: 1\ninclude: []\nstore: {path: elsewhere}\n", "base.yaml")
    path = write(tmp_path, "version: 1\ninclude: [base.yaml]\n")
    assert faults(path) == ["base.yaml:3 warning H407 `store` has no effect in an included file"]
    assert load_ruleset(path).config == Config()


def test_warnings_do_not_stop_loading(pack: Path, tmp_path: Path) -> None:
    """Only errors make a file unusable."""
    path = write(tmp_path, "version: 1\ndefs:\n  a: >\n    log.slow\n    or log.stalled\n")
    assert "a" in load_ruleset(path).defs


def test_all_errors_come_at_once(tmp_path: Path) -> None:
    """Loading a bad file raises everything that ``check`` would say."""
    with pytest.raises(RuleErrors) as caught:
        load_ruleset(HERE / "faults.yaml")
    assert caught.value.findings == check_files([HERE / "faults.yaml"])
    assert caught.value.exit_status == 2


def test_a_broken_pack_is_our_own_fault(pack: Path, tmp_path: Path) -> None:
    """An error in what ships with whyhang is an internal one, and says so."""
    pack.write_text(PACK.replace("log.stalled", "log.staled"))
    with pytest.raises(BrokenPack, match=r"pack builtin:pytorch@1 is broken") as caught:
        load_ruleset()
    assert caught.value.exit_status == 3
    with pytest.raises(BrokenPack):
        check_files([write(tmp_path, "version: 1\n")])


def test_a_pack_broken_by_a_change_is_the_changes_fault(pack: Path, tmp_path: Path) -> None:
    """A replaced definition that no longer fits is reported as the user's."""
    path = write(tmp_path, "version: 1\ndefs: {waiting: {replace: node.name is unknown}}\n")
    ok = load_ruleset(path)
    assert "waiting" in ok.defs
    path = write(tmp_path, "version: 1\ndefs: {waiting: {replace: any rank is unreadable}}\n")
    with pytest.raises(RuleErrors) as caught:
        load_ruleset(path)
    assert {finding.code for finding in caught.value.findings} == {"H205"}


def test_a_file_that_is_not_there_is_a_wrong_use(tmp_path: Path) -> None:
    """Files that cannot be read are no findings."""
    with pytest.raises(UsageError, match="No such file"):
        load_ruleset(tmp_path / "hang.yaml")
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"version: 1 # \xe9\n")
    with pytest.raises(UsageError, match="not UTF-8"):
        check_files([path])


def test_the_digest_is_that_of_the_sources(pack: Path, tmp_path: Path) -> None:
    """Equal sources give an equal digest; a change or an override gives another."""
    one = load_ruleset(write(tmp_path, "version: 1\n", "a.yaml")).digest
    same = load_ruleset(write(tmp_path, "version: 1\n", "b.yaml")).digest
    other = load_ruleset(write(tmp_path, "version: 1\nvars: {x: 1}\n")).digest
    set_ = load_ruleset(tmp_path / "a.yaml", overrides={"quorum": "80%"}).digest
    assert one == same
    assert len({one, other, set_}) == 3
    pack.write_text(PACK.replace("90%", "91%"))
    assert load_ruleset(tmp_path / "a.yaml").digest != one


def test_overrides_change_variables(pack: Path, tmp_path: Path) -> None:
    """``--set`` reaches the variables of the pack."""
    path = write(tmp_path, "version: 1\n")
    assert load_ruleset(path, overrides={"quorum": "80%"}).variables == {"quorum": 0.8}


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_damage_to_a_file_breaks_the_loader(data: st.DataObject) -> None:
    """Whatever is cut, doubled or mistyped in a file, the result is findings with a place."""
    text = (HERE / "example.yaml").read_text()
    start = data.draw(st.integers(0, len(text)))
    end = start + data.draw(st.integers(0, 30))
    patch = data.draw(
        st.sampled_from(["", "\n", ":", "  ", "{", "[", "- ", '"', "&a ", "null", "x"])
    )
    damaged = text[:start] + patch + text[end:]
    _, findings = load_source(Source(name="f", text=damaged), {})
    for finding in findings:
        assert isinstance(finding, Finding)
        assert finding.span.line >= 1 and finding.span.column >= 1
        assert list(format_findings([finding]))
