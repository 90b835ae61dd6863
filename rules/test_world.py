"""The world that a rule test describes: YAML -> WorldFacts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast, get_args

from whyhang.rules.assemble import Item
from whyhang.rules.config import topology_of
from whyhang.rules.findings import Finding
from whyhang.rules.quantities import parse_duration
from whyhang.rules.series import expand, expand_words, step_of
from whyhang.rules.suggest import did_you_mean
from whyhang.rules.test_cases import (
    CheckpointFacts,
    EventFacts,
    LogFacts,
    NodeFacts,
    Stage,
    WorldFacts,
)
from whyhang.rules.test_facts import FactReader
from whyhang.schemas.rankset import NOBODY
from whyhang.schemas.words import PHASES, NodeStatus, ProgressState, Trigger

SAMPLES = 2
INTERVAL = 15.0
# A stalled log whose length the test does not say.
STALLED_FOR = 600.0
RANKS_PER_NODE = 8
# A typing error must not ask for gigabytes.
MAX_RANKS = 100_000
_SHARES = ("memory_free", "shm_free", "io_pressure", "cpu_pressure")
_STATES: tuple[str, ...] = get_args(ProgressState)


class WorldReader:
    """Reads the worlds of one test file; ``defaults`` are what every test starts from."""

    def __init__(self, facts: FactReader, defaults: Mapping[str, Item]) -> None:
        self.facts = facts
        self.defaults = defaults
        if "ranks" in defaults:
            # Every test reads these lines again; by themselves they are checked even if none does.
            for item in defaults["ranks"].mapping().values():
                facts.line(item)

    def world(self, parts: Mapping[str, Item]) -> WorldFacts:
        """The world of one test."""
        nodes, per_node, size = self._size(self._either(parts, "world"))
        if nodes * per_node > MAX_RANKS:
            asked = self._either(parts, "world")
            assert asked is not None
            self.facts.fault(f"a world has at most {MAX_RANKS} ranks", asked)
            nodes, per_node = 1, 1
        lines = [
            line
            for given in (self.defaults, parts)
            if "ranks" in given
            for line in given["ranks"].mapping().items()
        ]
        stages = [Stage(since=0.0, classes=self.facts.classes(lines, nodes * per_node))]
        for change in parts["changes"].sequence() if "changes" in parts else []:
            since = self.facts.duration(change.child("at"))
            lines = [*lines, *change.child("ranks").mapping().items()]
            classes = self.facts.classes(lines, nodes * per_node)
            stages.append(Stage(since=since or 0.0, classes=classes))
        moments = self._moments(parts, stages)
        trigger = self._either(parts, "trigger")
        return WorldFacts(
            nodes=nodes,
            ranks_per_node=per_node,
            size=size,
            topology=topology_of(self._either(parts, "topology")),
            moments=moments,
            log=self._log(parts, max(1, len(moments))),
            stages=tuple(stages),
            trigger="stall" if trigger is None else cast("Trigger", trigger.text),
            heard=self._nodes(parts, nodes),
            checkpoint=self._checkpoint(self._either(parts, "checkpoint")),
            events=tuple(map(self._event, parts["events"].sequence() if "events" in parts else [])),
            sources={
                name: item.text
                for name, item in (parts["sources"].mapping() if "sources" in parts else {}).items()
            },
        )

    def _either(self, parts: Mapping[str, Item], name: str) -> Item | None:
        return parts.get(name) or self.defaults.get(name)

    def _size(self, item: Item | None) -> tuple[int, int, int | None]:
        """Nodes, ranks of each, and the world size."""
        if item is not None and isinstance(item.value, int):
            return 1, item.value, item.value
        parts = {} if item is None else item.mapping()

        def number(name: str, default: int) -> int:
            value = parts[name].value if name in parts else default
            return value if isinstance(value, int) else default

        nodes, per_node = number("nodes", 1), number("ranks_per_node", RANKS_PER_NODE)
        unknown = "size" in parts and parts["size"].text == "unknown"
        return nodes, per_node, None if unknown else number("size", nodes * per_node)

    def _moments(self, parts: Mapping[str, Item], stages: list[Stage]) -> tuple[float, ...]:
        """The times of the samples; long enough for every stack that is unchanged for a while."""
        asked = self._either(parts, "samples")
        count = asked.value if asked is not None and isinstance(asked.value, int) else SAMPLES
        needed = [one.facts.unchanged_for or 0.0 for stage in stages for one in stage.classes]
        interval = max([INTERVAL, *needed])
        if "timeline" in parts:
            series = parts["timeline"].mapping()
            count = max([1, *(len(self._series(name, item)) for name, item in series.items())])
            stalled = series.get("log.stalled_for")
            step = None
            if stalled is not None:
                step = self.facts.read(stalled, lambda t: step_of(t, parse_duration), "series")
            # The time since the last step grows as the clock does.
            interval = step or 2 * INTERVAL
        interval = self.facts.duration(self._either(parts, "interval")) or interval
        return tuple(number * interval for number in range(count))

    # --- the log --------------------------------------------------------------------------------

    def _log(self, parts: Mapping[str, Item], count: int) -> tuple[LogFacts, ...]:
        own = LogFacts(**self._log_facts(self._either(parts, "log")))
        timeline = parts["timeline"].mapping() if "timeline" in parts else {}
        if not timeline:
            if own.state is None and None in (own.threshold, own.stalled_for):
                own = replace(own, state="stalled")
            if own.state == "stalled" and own.stalled_for is None:
                own = replace(own, stalled_for=STALLED_FOR)
        columns = {
            name.removeprefix("log."): self._series(name, item) for name, item in timeline.items()
        }
        lengths = {len(values) for values in columns.values()}
        if len(lengths) > 1:
            self.facts.fault("the series differ in length", parts["timeline"])
        return tuple(
            replace(
                own,
                **{
                    name: values[min(number, len(values) - 1)]
                    for name, values in columns.items()
                    if values
                },
            )
            for number in range(count)
        )

    def _log_facts(self, item: Item | None) -> dict[str, Any]:
        if item is None:
            return {}
        if isinstance(item.value, str):
            state = self.facts.read(item, one_of(_STATES), "state of the log")
            return {} if state is None else {"state": state}
        found: dict[str, Any] = {}
        for name, value in item.mapping().items():
            if name in ("stalled_for", "threshold", "interval"):
                found[name] = self.facts.duration(value)
            elif name in ("iteration", "total"):
                found[name] = value.value
            else:
                found[name] = value.text
        return found

    def _checkpoint(self, item: Item | None) -> CheckpointFacts | None:
        if item is None:
            return None
        told = item.mapping()
        step = told["step"].value if "step" in told else None
        return CheckpointFacts(
            age=self.facts.duration(told.get("age")),
            step=step if isinstance(step, int) else None,
        )

    def _series(self, name: str, item: Item) -> tuple[Any, ...]:
        def values(text: str) -> tuple[Any, ...]:
            if name == "log.stalled_for":
                return expand(text, parse_duration)
            if name == "log.iteration":
                return tuple(None if v is None else int(v) for v in expand(text, float))
            return expand_words(text, one_of(_STATES if name == "log.state" else PHASES))

        return self.facts.read(item, values, "series") or ()

    # --- nodes and events -----------------------------------------------------------------------

    def _nodes(self, parts: Mapping[str, Item], count: int) -> dict[str, NodeFacts]:
        names = [f"node{number}" for number in range(count)]
        found: dict[str, NodeFacts] = {}
        for key, item in (parts["nodes"].mapping() if "nodes" in parts else {}).items():
            name = f"node{key}" if key.isdigit() else key
            if name not in names:
                message = f"this world has no node `{key}`"
                help = did_you_mean(name, names) or f"its nodes are {names[0]} to {names[-1]}"
                self.facts.findings.append(
                    Finding(code="H502", message=message, span=item.key_span, help=help)
                )
            fields = item.mapping()
            status = fields.get("status") if fields else item
            word = self.facts.read(status, one_of(("ok", "missing", "not_collected")), "status")
            found[name] = NodeFacts(
                status=cast("NodeStatus", word or "ok"),
                reason=fields["reason"].text if "reason" in fields else None,
                **{share: self.facts.percent(fields.get(share)) for share in _SHARES},
            )
        return found

    def _event(self, item: Item) -> EventFacts:
        parts = item.mapping()
        code = parts["exit_code"].value if "exit_code" in parts else None
        return EventFacts(
            kind=parts["kind"].text,
            ranks=self.facts.ranks(parts.get("ranks")) or NOBODY,
            node=parts["node"].text if "node" in parts else None,
            exit_code=code if isinstance(code, int) else None,
            line=parts["line"].text if "line" in parts else "",
        )


def one_of(words: tuple[str, ...]) -> Callable[[str], str]:
    """A reader of one of the words; ValueError for another."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError(did_you_mean(text, words) or f"it is one of {', '.join(words)}")
        return text

    return read
