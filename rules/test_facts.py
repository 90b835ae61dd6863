"""What a rule test says of ranks and processes: YAML -> facts.

The shape has been checked against the schema before; here stand the faults that a schema cannot
find (H502).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, get_args

from whyhang.rules.assemble import Item
from whyhang.rules.findings import Finding
from whyhang.rules.quantities import parse_duration, parse_percent
from whyhang.rules.suggest import did_you_mean
from whyhang.rules.test_cases import GpuWords, ProcessFacts, RankClass, Status, ThreadFacts
from whyhang.schemas.rankset import NOBODY, RankSet

T = TypeVar("T")

EVERYBODY = "*"
UNREADABLE = "unreadable"
STATUSES: tuple[str, ...] = get_args(Status)
# A new stack says nothing about what an earlier line said of the old one.
_OF_THE_STACK = ("stack", "then", "native", "unreadable", "status")
_PLAIN = ("kind", "status", "state", "wchan", "d_threads", "threads", "traced", "exit_code", "cpus")
_PERCENT = ("cpu", "run_queue")


class FactReader:
    """Reads facts of one test file; what is wrong with them gathers in ``findings``."""

    def __init__(self, stacks: Mapping[str, Item]) -> None:
        self.findings: list[Finding] = []
        self._named = stacks
        self._stacks: dict[str, tuple[str, ...]] = {}
        for name in stacks:
            self._stack_named(name, ())

    def fault(self, message: str, item: Item, help: str = "") -> None:
        """Note a value that a test cannot have."""
        self.findings.append(Finding(code="H502", message=message, span=item.span, help=help))

    def read(self, item: Item | None, parse: Callable[[str], T], what: str) -> T | None:
        """A value from its text; None with a finding where it is none."""
        if item is None:
            return None
        try:
            return parse(item.text)
        except ValueError as error:
            self.fault(f"`{item.text}` is no {what}: {error}", item)
            return None

    def duration(self, item: Item | None) -> float | None:
        """Seconds."""
        return self.read(item, parse_duration, "duration")

    def ranks(self, item: Item | None) -> RankSet | None:
        """A set of ranks."""
        return self.read(item, RankSet.parse, "set of ranks")

    # --- ranks ----------------------------------------------------------------------------------

    def classes(self, lines: Iterable[tuple[str, Item]], size: int) -> tuple[RankClass, ...]:
        """The ranks below ``size`` by what the lines say of them together.

        Later lines override earlier ones, key by key.
        """
        groups: dict[tuple[int, ...], RankSet] = {(): RankSet(range(size))}
        facts = []
        for number, (key, item) in enumerate(lines):
            facts.append(self.line(item))
            named = self._named_ranks(key, item, size)
            split: dict[tuple[int, ...], RankSet] = {}
            for numbers, ranks in groups.items():
                for chosen, part in (((*numbers, number), ranks & named), (numbers, ranks - named)):
                    if part:
                        split[chosen] = part
            groups = split
        return tuple(
            RankClass(ranks=ranks, facts=ProcessFacts(**merge(facts[n] for n in numbers)))
            for numbers, ranks in sorted(groups.items(), key=lambda entry: min(entry[1]))
            if numbers
        )

    def _named_ranks(self, key: str, item: Item, size: int) -> RankSet:
        everybody = RankSet(range(size))
        if key == EVERYBODY:
            return everybody
        span = item.key_span
        try:
            named = RankSet.parse(key)
        except ValueError as error:
            self.findings.append(Finding(code="H502", message=str(error), span=span))
            return NOBODY
        beyond = named - everybody
        if beyond:
            message = f"this world has no rank {beyond.format(4)}: its ranks are {everybody}"
            self.findings.append(Finding(code="H502", message=message, span=span))
        return named & everybody

    def line(self, item: Item) -> dict[str, Any]:
        """The facts of one line by name; a list or a text may stand for a stack alone."""
        if isinstance(item.value, str):
            return self._short(item)
        if isinstance(item.value, list):
            return {"stack": self.stack(item)}
        return self.process(item)

    def _short(self, item: Item) -> dict[str, Any]:
        text = item.text
        head, _, reason = text.partition(":")
        if head == UNREADABLE:
            return {"unreadable": reason.strip() or UNREADABLE}
        if text in STATUSES:
            return {"status": text}
        return {"stack": self.stack(item)}

    def process(self, item: Item) -> dict[str, Any]:
        """The facts that a mapping states, by name."""
        found: dict[str, Any] = {}
        for name, value in item.mapping().items():
            if value.value is None:
                found |= _unknown(name)
            elif name in _PLAIN:
                plain = value.value
                found[name] = value.text if isinstance(plain, float | str) else plain
            elif name == "step_lag":
                found[name] = value.value
            elif name in _PERCENT:
                found[name] = self.percent(value)
            elif name == "native":
                found[name] = tuple(one.text for one in value.sequence())
            elif name in ("stack", "then"):
                found[name] = self.stack(value)
            elif name == "unreadable":
                found[name] = self._reason(value)
            elif name == "gpu":
                found[name] = self._gpu(value)
            elif name == "retransmits":
                found[name] = {_node(key): one.value for key, one in value.mapping().items()}
            elif name == "unchanged_for":
                found[name] = self.duration(value)
            elif name == "kernel":
                found[name] = tuple(one.text for one in value.sequence())
            elif name in ("io", "disk"):
                found |= _rates("" if name == "io" else "disk_", value)
            elif name == "python_threads":
                found[name] = tuple(map(self._thread, value.sequence()))
            elif name == "children":
                found[name] = tuple(ProcessFacts(**self.process(one)) for one in value.sequence())
        return found

    def percent(self, item: Item | None) -> float | None:
        """A fraction of 1."""
        return self.read(item, parse_percent, "percentage")

    def _gpu(self, item: Item) -> GpuWords:
        parts = item.mapping()
        power = parts["power"].value if "power" in parts else None
        return GpuWords(
            utilization=self.percent(parts.get("utilization")),
            memory=self.percent(parts.get("memory")),
            power=float(power) if isinstance(power, int | float) else None,
            failed="failed" in parts and parts["failed"].value is True,
        )

    def _reason(self, item: Item) -> str | None:
        if item.value is True:
            return UNREADABLE
        return None if item.value is False else item.text

    def _thread(self, item: Item) -> ThreadFacts:
        parts = item.mapping()
        return ThreadFacts(name=parts["name"].text, stack=self.stack(parts["stack"]))

    # --- stacks ---------------------------------------------------------------------------------

    def stack(self, item: Item, trail: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Frames as written, outermost first, names of stacks filled in."""
        return tuple(frame for one in item.sequence() for frame in self._frames(one, trail))

    def _frames(self, item: Item, trail: tuple[str, ...]) -> tuple[str, ...]:
        text = item.text.strip()
        if text in self._named:
            if text in trail:
                self.fault(f"stack `{text}` holds itself", item)
                return ()
            return self._stack_named(text, trail)
        if not text or not set(text) & set(". /:<"):
            self.fault(
                f"`{text}` is neither a frame nor one of `stacks`",
                item,
                did_you_mean(text, [*self._named, UNREADABLE, *STATUSES])
                or "a frame is written `module.function` or `path.py:7 function`",
            )
        return (text,)

    def _stack_named(self, name: str, trail: tuple[str, ...]) -> tuple[str, ...]:
        if name not in self._stacks:
            self._stacks[name] = self.stack(self._named[name], (*trail, name))
        return self._stacks[name]


def merge(lines: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The facts of several lines together; a later one wins."""
    merged: dict[str, Any] = {}
    for line in lines:
        if "stack" in line or "unreadable" in line:
            for name in _OF_THE_STACK:
                merged.pop(name, None)
        merged |= line
    return merged


def _node(key: str) -> str:
    """A node by its number or its name."""
    return f"node{key}" if key.isdigit() else key


def _unknown(name: str) -> dict[str, Any]:
    """A fact that is taken back: nothing is known of it."""
    if name in ("io", "disk"):
        prefix = "" if name == "io" else "disk_"
        return {f"{prefix}read_rate": None, f"{prefix}write_rate": None}
    return {name: () if name == "children" else None}


def _rates(prefix: str, item: Item) -> dict[str, float]:
    """The two rates of `io` or `disk`; a number stands for both."""
    if isinstance(item.value, int | float):
        rate = float(item.value)
        return {f"{prefix}read_rate": rate, f"{prefix}write_rate": rate}
    return {
        f"{prefix}{name}": float(value.value)
        for name, value in item.mapping().items()
        if isinstance(value.value, int | float)
    }
