"""What a diagnosis says to people, before any markup: Markdown and terminal show the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whyhang.renderers import words
from whyhang.renderers.clean import count_of, one_line, shorten
from whyhang.renderers.machines import machine_lines
from whyhang.renderers.unseen import not_seen
from whyhang.schemas.diagnosis import Diagnosis, Group
from whyhang.schemas.evidence import Evidence
from whyhang.schemas.incident import Incident
from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.topology import Topology
from whyhang.schemas.truth import Truth
from whyhang.schemas.verdict import Verdict

_SHOWN_GROUPS = 24
_SHOWN_SUSPECTS = 16
_SHOWN_UNSEEN = 16
_SHOWN_MACHINES = 16
# Characters of what comes from outside: a log line may have megabytes.
_LONGEST = 320
_LONGEST_NAME = 80
_SHOWN_CLAUSES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Ranks at one position: of the suspects' table and of the table of everybody."""

    ranks: str
    nodes: str
    kind: str
    position: str
    state: str
    role: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A line of evidence: the clause, its value in a word, whom it holds for, where it stands."""

    value: Truth
    text: str
    about: str
    place: str

    @property
    def mark(self) -> str:
        """``✓ yes``, ``✗ no`` or ``? unknown``."""
        return words.TRUTH_WORDS[self.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """All sections of a report, in the order in which they are shown."""

    headline: str
    is_hang: bool
    verdict: str
    category: str
    confidence: str
    rule: str | None
    overrides: tuple[str, ...]
    summary: str
    job: tuple[str, ...]
    suspects: tuple[Row, ...]
    suspects_left: int
    nobody: str
    suspect_groups: tuple[str, ...]
    groups: tuple[Row, ...]
    groups_left: int
    evidence: tuple[Clause, ...]
    open: tuple[Clause, ...]
    machines: tuple[str, ...]
    contradictions: tuple[str, ...]
    not_seen: tuple[str, ...]
    lowered: tuple[str, ...]
    also: tuple[str, ...]
    suppressed: tuple[tuple[str, str], ...]
    undecided: tuple[tuple[tuple[str, ...], str], ...]
    log: tuple[str, ...]
    last_line: str | None
    next_steps: tuple[str, ...]
    files: tuple[str, ...]
    command: str
    footer: str


def brief(diagnosis: Diagnosis, *, files: Sequence[str] = (), command: str | None = None) -> Brief:
    """What there is to say about a diagnosis.

    ``files`` are the reports that were written; ``command`` makes this one again.
    """
    verdict, incident = diagnosis.verdict, diagnosis.incident
    suspects = tuple(_suspects(diagnosis))
    evidence, open_clauses = _evidence(verdict.evidence)
    everybody = tuple(_row(group, incident) for group in diagnosis.groups)
    return Brief(
        headline=shorten(one_line(verdict.headline), 2 * _LONGEST)
        or words.VERDICT_WORDS[verdict.verdict],
        is_hang=verdict.is_hang,
        verdict=verdict.verdict,
        category=verdict.category,
        confidence=verdict.confidence,
        rule=verdict.rule,
        overrides=tuple(map(_short, verdict.overrides)),
        summary="" if verdict.summary == verdict.headline else one_line(verdict.summary),
        job=tuple(_job(diagnosis)),
        suspects=suspects[:_SHOWN_SUSPECTS],
        suspects_left=max(0, len(suspects) - _SHOWN_SUSPECTS),
        nobody="" if suspects else _nobody(diagnosis),
        suspect_groups=tuple(map(one_line, verdict.suspects.groups)),
        groups=everybody[:_SHOWN_GROUPS],
        groups_left=max(0, len(everybody) - _SHOWN_GROUPS),
        evidence=evidence,
        open=open_clauses,
        machines=tuple(_at_most(list(machine_lines(diagnosis)), _SHOWN_MACHINES)),
        contradictions=tuple(map(_short, diagnosis.contradictions)),
        not_seen=tuple(_at_most(list(not_seen(diagnosis)), _SHOWN_UNSEEN)),
        lowered=tuple(map(one_line, verdict.lowered)),
        also=verdict.also,
        suppressed=tuple((each.id, one_line(each.summary)) for each in verdict.suppressed),
        undecided=tuple(_undecided(verdict)),
        log=tuple(_log(incident)),
        last_line=_short(incident.progress.last_line or "") or None,
        next_steps=tuple(map(_short, verdict.next_steps)),
        files=tuple(map(one_line, files)),
        command=one_line(command or "")
        or f"whyhang diagnose .whyhang/{incident.print_id or '<directory>'}",
        footer=_footer(diagnosis),
    )


def _undecided(verdict: Verdict) -> Iterator[tuple[tuple[str, ...], str]]:
    """The undecided rules by what they lack: a missing sample leaves a dozen of them open."""
    lacking: dict[tuple[str, ...], list[str]] = {}
    for each in verdict.undecided:
        lacking.setdefault(each.because, []).append(each.rule)
    for because, rules in lacking.items():
        yield tuple(rules), words.some(because, 4)


def _short(text: str, limit: int = _LONGEST) -> str:
    return shorten(one_line(text), limit)


def _job(diagnosis: Diagnosis) -> Iterator[str]:
    incident, topology = diagnosis.incident, diagnosis.topology
    if incident.job_id or incident.job_name:
        both = incident.job_name if incident.job_id else None
        name = f" ({_short(both, _LONGEST_NAME)})" if both else ""
        yield f"job {_short(incident.job_id or incident.job_name or '', _LONGEST_NAME)}{name}"
    if incident.world_size:
        yield count_of(incident.world_size, "rank")
    if incident.nodes:
        yield count_of(len(incident.nodes), "node")
    if isinstance(topology, Topology):
        yield f"{topology} (from {_short(topology.source, _LONGEST_NAME)})"
    at = incident.finished_at or incident.taken_at
    if at:
        yield f"collected {words.moment(at)}"
    if len(incident.samples) > 1:
        first, last = incident.samples[0], incident.samples[-1]
        apart = words.duration(last.monotonic_seconds - first.monotonic_seconds)
        yield f"{count_of(len(incident.samples), 'sample')} over {apart}"
    elif incident.samples:
        yield "1 sample"


def _nobody(diagnosis: Diagnosis) -> str:
    if diagnosis.verdict.verdict == "inconclusive":
        return "The evidence does not say who is at fault."
    if diagnosis.verdict.is_hang or diagnosis.verdict.verdict == "slow":
        return "No rank can be singled out."
    return ""


def _suspects(diagnosis: Diagnosis) -> Iterator[Row]:
    suspects = diagnosis.verdict.suspects
    placed = NOBODY
    for position in suspects.positions:
        placed = placed | position.ranks
        yield Row(
            ranks=position.ranks.format(words.SHOWN_RUNS),
            nodes=words.nodes(diagnosis.incident, position.ranks),
            kind=position.kind,
            position=_short(position.frame),
            state=_states(diagnosis.incident, position.kind, position.ranks),
            number=len(position.ranks),
        )
    rest = suspects.ranks - placed
    for group in diagnosis.groups:
        members = RankSet(group.ranks) & rest
        if group.kind == "trainer" and members:
            rest = rest - members
            yield _row(group, diagnosis.incident, members)
    if rest:
        yield Row(
            ranks=rest.format(words.SHOWN_RUNS),
            nodes=words.nodes(diagnosis.incident, rest),
            kind="trainer",
            position="",
            state=_states(diagnosis.incident, "trainer", rest),
            number=len(rest),
        )
    if suspects.nodes and not suspects.ranks:
        yield Row(
            ranks="none known",
            nodes=words.some(suspects.nodes, words.SHOWN_NODES),
            kind="",
            position="",
            state="",
        )


def _row(group: Group, incident: Incident, members: RankSet | None = None) -> Row:
    ranks = RankSet(group.ranks) if members is None else members
    state = words.state(group.state, group.wchan)
    if group.status != "running":
        known = words.STATE_WORDS.get(group.state or "")
        state = ", ".join(part for part in (group.status, state) if part and part != known)
    return Row(
        ranks=ranks.format(words.SHOWN_RUNS)
        or words.some(group.nameless, words.SHOWN_NAMELESS)
        or "none known",
        nodes=words.nodes(incident, ranks),
        kind=group.kind,
        position=_short(group.position or ""),
        state=state,
        role=one_line(group.role),
        number=len(ranks) or len(group.nameless),
    )


def _states(incident: Incident, kind: str, ranks: RankSet) -> str:
    """What the kernel said of these processes at last; with their number where they differ."""
    seen: Counter[str] = Counter()
    for process in incident.last.processes if incident.last else ():
        if process.kind != kind or process.rank not in ranks:
            continue
        if process.exit is not None:
            seen[f"exited, status {process.exit}"] += 1
        else:
            state = words.state(process.state, process.wchan) or "unknown"
            if process.blocked_on is not None:
                state += f", waits in {_short(str(process.blocked_on))}"
            seen[state] += 1
    if len(seen) == 1:
        return next(iter(seen))
    common = sorted(seen.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{text} ({number})" for text, number in common[:3]]
    if len(common) > 3:
        shown.append(f"+{sum(number for _, number in common[3:])} others")
    return ", ".join(shown)


def _evidence(root: Evidence | None) -> tuple[tuple[Clause, ...], tuple[Clause, ...]]:
    """The clauses that decided, and those that could not be decided."""
    if root is None:
        return (), ()
    deciding = tuple(dict.fromkeys(root.deciding()))
    unknown = tuple(
        part
        for part in dict.fromkeys(root.walk())
        if part.value is Truth.UNKNOWN and not part.children and part not in deciding
    )
    return (
        tuple(map(_clause, deciding[:_SHOWN_CLAUSES])),
        tuple(map(_clause, unknown[:_SHOWN_CLAUSES])),
    )


def _clause(part: Evidence) -> Clause:
    about = [one_line(part.detail)] if part.detail else []
    for name, members in (("yes", part.yes), ("no", part.no), ("unknown", part.unknown)):
        # The detail of a count names its ranks already.
        if (
            members
            and members.format(words.SHOWN_RUNS) not in part.detail.replace(";", " ").split()
        ):
            about.append(f"{name}: {words.ranks(members)}")
    if part.missing:
        about.append(f"missing: {words.some(part.missing, 4)}")
    place = f"{part.span.file}:{part.span.line}" if part.span.file and part.span.line else ""
    return Clause(
        value=part.value, text=one_line(part.text), about="; ".join(about), place=one_line(place)
    )


def _at_most(lines: list[str], limit: int) -> Iterator[str]:
    """The lines; past ``limit`` the number of those left out."""
    yield from map(_short, lines[:limit])
    if len(lines) > limit:
        yield f"{len(lines) - limit} more such lines: all ranks are in verdict.json"


def _checkpoint(incident: Incident) -> Iterator[str]:
    """What a restart goes back to."""
    found = incident.checkpoint
    if found is None or found.age_seconds is None:
        return
    name = f"step {found.step}" if found.step is not None else one_line(found.name or "unnamed")
    text = f"last checkpoint: {name}, {words.duration(found.age_seconds)} old"
    if found.max_age_seconds is not None and found.age_seconds > found.max_age_seconds:
        text += f" (more than the {words.duration(found.max_age_seconds)} of `max_age`)"
    step = incident.progress.step
    if found.step is not None and step is not None and step > found.step:
        text += f"; a restart loses {step - found.step} steps"
    yield text


def _log(incident: Incident) -> Iterator[str]:
    progress = incident.progress
    text: str = "no progress known" if progress.state == "unknown" else progress.state
    if progress.stalled_seconds is not None:
        text += f", last progress {words.duration(progress.stalled_seconds)} before sample 0"
    if progress.threshold_seconds is not None:
        text += f" (threshold {words.duration(progress.threshold_seconds)})"
    yield text
    if progress.step is not None:
        total = f" of {progress.total}" if progress.total is not None else ""
        usual = progress.median_interval_seconds
        pace = f", usually one in {words.duration(usual)}" if usual is not None else ""
        yield f"step {progress.step}{total}{pace}"
    if progress.phase:
        yield f"phase {progress.phase}"
    yield from _checkpoint(incident)
    steps: dict[int, list[int]] = {}
    for rank, step in progress.per_rank_step.items():
        steps.setdefault(step, []).append(rank)
    if len(steps) > 1:
        parts = [f"step {step}: {words.ranks(RankSet(steps[step]))}" for step in sorted(steps)]
        yield words.some(tuple(parts), 6)


def _footer(diagnosis: Diagnosis) -> str:
    verdict = diagnosis.verdict
    parts = [f"whyhang {verdict.whyhang or diagnosis.incident.whyhang or ''}".strip()]
    if diagnosis.incident.print_id:
        parts.append(f"print ID {diagnosis.incident.print_id}")
    if verdict.rules_digest:
        parts.append(f"rules {verdict.rules_digest[:19]}")
    return " · ".join(one_line(part) for part in parts)
