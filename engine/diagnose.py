"""From evidence to a diagnosis: verdict, merged stacks and the table of who stands where."""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.engine.contradictions import contradictions
from whyhang.engine.facets import process_of
from whyhang.engine.facts import Facts, position, status
from whyhang.engine.judge import open_court, reach
from whyhang.engine.merge import build_tree
from whyhang.engine.suspects import describe, rank_classes
from whyhang.engine.topology import NOT_TOLD
from whyhang.rules.ruleset import Ruleset
from whyhang.schemas.diagnosis import Diagnosis, Group
from whyhang.schemas.frame import Frame
from whyhang.schemas.incident import Incident
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.rankset import NOBODY, RankSet


def diagnose(incident: Incident, ruleset: Ruleset, *, version: str | None = None) -> Diagnosis:
    """Judge an incident and prepare what the renderers need. Pure."""
    court = open_court(ruleset, incident)
    verdict = reach(court, version=version)
    topology = court.facts.world.topology
    return Diagnosis(
        incident=incident,
        verdict=verdict,
        tree=build_tree(incident),
        groups=(
            *group_ranks(court.facts, verdict.suspects.ranks),
            *_group_unranked(court.facts),
        ),
        topology=None if topology == NOT_TOLD else topology,
        contradictions=contradictions(court.facts),
    )


def group_ranks(facts: Facts, suspects: RankSet) -> tuple[Group, ...]:
    """The ranks by what their trainers do in the last sample, suspects first, then large groups."""
    last = facts.world.sample_count - 1
    if last < 0:
        return ()
    found: dict[tuple[str | None, str, bool], RankSet] = {}
    kernel: dict[tuple[str | None, str, bool], set[tuple[str | None, str | None]]] = {}
    for first, members in rank_classes(facts):
        subject = facts.world.ranks.subjects[first]
        top, words = position(facts, subject, last), status(facts, subject, last)
        process = process_of(subject, last)
        for is_suspect, part in ((True, members & suspects), (False, members - suspects)):
            if not part:
                continue
            key = (
                describe(top) if isinstance(top, Frame) else None,
                "unknown" if isinstance(words, Missing) else words,
                is_suspect,
            )
            found[key] = found.get(key, NOBODY) | part
            kernel.setdefault(key, set()).add(
                (None, None) if isinstance(process, Missing) else (process.state, process.wchan)
            )
    groups = []
    for key, ranks in found.items():
        place, words, suspect = key
        states = kernel[key]
        state, wchan = next(iter(states)) if len(states) == 1 else (None, None)
        groups.append(
            Group(
                kind="trainer",
                ranks=tuple(ranks),
                position=place,
                status=words,
                state=state,
                wchan=wchan,
                role="suspect" if suspect else "",
            )
        )
    return tuple(sorted(groups, key=lambda g: (g.role != "suspect", -len(g.ranks), g.ranks)))


def _group_unranked(facts: Facts) -> Iterator[Group]:
    """The trainers without a known rank by where they stand: never dropped, never accused."""
    last = facts.world.sample_count - 1
    found: dict[tuple[str | None, str], list[Process]] = {}
    for subject in facts.world.processes.subjects.values():
        process = process_of(subject, last)
        if isinstance(process, Missing) or process.kind != "trainer" or process.rank is not None:
            continue
        top, words = position(facts, subject, last), status(facts, subject, last)
        place = describe(top) if isinstance(top, Frame) else None
        word = "unknown" if isinstance(words, Missing) else words
        found.setdefault((place, word), []).append(process)
    for (place, word), members in found.items():
        states = {(process.state, process.wchan) for process in members}
        state, wchan = next(iter(states)) if len(states) == 1 else (None, None)
        yield Group(
            kind="trainer",
            ranks=(),
            position=place,
            status=word,
            state=state,
            wchan=wchan,
            nameless=tuple(process.place for process in members),
        )
