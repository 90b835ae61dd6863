"""What came of scenarios as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.lab.expectations import seen
from tests.lab.harness import Outcome
from tests.lab.scenarios import Scenario

LEFT_OUT = "not played"
HEADER = """\
| scenario | facts expected | facts seen | collection (s) | longest stop (ms) |
|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One scenario; ``seen`` are statements, each with whether it is as expected."""

    name: str
    expected: tuple[str, ...]
    seen: tuple[tuple[bool, str], ...]
    seconds: float | None = None
    longest_stop: float | None = None

    @property
    def is_right(self) -> bool:
        """Whether all was found."""
        return all(right for right, _ in self.seen)


def row(name: str, scenario: Scenario, outcome: Outcome | str) -> Row:
    """The row of a scenario and what came of it, or why nothing did."""
    expected = tuple(expectations(scenario))
    if isinstance(outcome, str):
        is_left_out = outcome.startswith(LEFT_OUT)
        return Row(name=name, expected=expected, seen=((is_left_out, outcome.splitlines()[0]),))
    return Row(
        name=name,
        expected=expected,
        seen=tuple(findings(outcome)),
        seconds=outcome.seconds,
        longest_stop=outcome.longest_stop,
    )


def expectations(scenario: Scenario) -> Iterator[str]:
    """What a scenario must show."""
    if scenario.expected is not None:
        yield from scenario.expected.told()
    elif scenario.under == "nothing":
        yield "exit code 1"
    elif scenario.under == "killed_collect":
        yield "the job goes on"
    else:
        yield from ("no incident", "exit code 0", "nobody is stopped")


def findings(outcome: Outcome) -> Iterator[tuple[bool, str]]:
    """What it did show; processes that were harmed are never right."""
    expected = outcome.scenario.expected
    if expected is not None and outcome.verdict is None:
        yield False, "no verdict"
    elif expected is not None and outcome.verdict is not None:
        yield from seen(expected, outcome.verdict, outcome.processes)
    elif outcome.scenario.under == "nothing":
        yield outcome.exit_code == 1, f"exit code {outcome.exit_code}"
    elif outcome.scenario.under == "killed_collect":
        # It was waited for: a job that stands is no outcome.
        yield True, "the job goes on"
    else:
        yield from _undisturbed(outcome)
    yield from ((False, harm) for harm in outcome.harmed)


def _undisturbed(outcome: Outcome) -> Iterator[tuple[bool, str]]:
    stop = outcome.longest_stop or 0.0
    yield not outcome.incidents, f"{len(outcome.incidents)} incidents"
    yield outcome.exit_code == 0, f"exit code {outcome.exit_code}"
    yield not stop, f"longest stop {stop * 1000:.0f} ms"


def markdown(found: Row) -> str:
    """The row of a Markdown table; what is wrong is bold."""
    expected = "<br>".join(map(_escaped, found.expected))
    seen = "<br>".join(
        _escaped(said) if right else f"**{_escaped(said)}**" for right, said in found.seen
    )
    return f"| {found.name} | {expected} | {seen} | {' | '.join(_measured(found))} |"


def text(found: Row) -> str:
    """The row for a terminal, over several lines."""
    seconds, stop = _measured(found)
    lines = [f"{found.name}: {seconds} s, longest stop {stop} ms"]
    lines += [f"  expected  {said}" for said in found.expected]
    lines += [f"  {'seen    ' if right else 'WRONG   '}  {said}" for right, said in found.seen]
    return "\n".join(lines)


def _measured(found: Row) -> tuple[str, str]:
    seconds = "-" if found.seconds is None else f"{found.seconds:.1f}"
    stop = "-" if found.longest_stop is None else f"{found.longest_stop * 1000:.0f}"
    return seconds, stop


def _escaped(said: str) -> str:
    return said.replace("|", "\\|")
