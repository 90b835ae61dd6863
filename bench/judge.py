"""What judging costs as jobs grow: ``python -m bench.judge``; exit status 1 past a limit.

Builds jobs in memory, evaluates 100 rules on each, and compares CPU times as ratios within one
run, so that the speed of the machine does not matter. Two things are timed apart:

- *arranging*, once per incident: finding tracks, kin and classes in the evidence. It touches every
  process once, as reading the evidence does, so it grows with the job. It is reported per rank.
- *evaluating* the rules and naming the suspects: this is what must not grow with the job, because
  ``test``, ``replay`` and ``diff`` do it again for every change of a rule. Limits: 16,384 ranks in
  eight classes at most 1.5 times 1,024 ranks, with counters different in every rank at most 20
  times, evidence of all rules below 50 MB (in memory, and as JSON).
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

from whyhang.engine.evaluate import Evaluator
from whyhang.engine.explain import Explainer
from whyhang.engine.explanation import explain_all
from whyhang.engine.facts import Facts
from whyhang.engine.judge import Court
from whyhang.engine.positions import Positions
from whyhang.engine.world import World
from whyhang.renderers.evidence_json import render_explanation_json
from whyhang.rules.load import load_ruleset
from whyhang.rules.ruleset import Ruleset
from whyhang.schemas.frame import Frame
from whyhang.schemas.incident import Incident, Node, Snapshot
from whyhang.schemas.process import Dump, IoCounters, Process
from whyhang.schemas.progress import Progress
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stack import Stack, Thread

RANKS_PER_NODE = 8
RULES = 100
MIB = 1 << 20
SITE = "/opt/venv/lib/python3.12/site-packages/"

TEMPLATES = (
    "log.stalled and share(odd) <= {n}% and at least {n}% of (ranks except odd) are waiting"
    " and some odd are frozen",
    'at least {n} ranks are (proc.state == "D" and proc.wchan matches /nfs|rpc/)',
    'any rank is (top in dataloader and any child is (proc.kind == "dataloader" and'
    " cpu.rate < {n}%))",
    "count(bad_nodes) == 1 and all nodes except bad_nodes are (at least {n}% of ranks are waiting)",
    "most ranks are (io.read_rate < {n}00 and io.write_rate < {n}00)",
    "at least {n}% of ranks agree on top.function and no rank is (stack has checkpointing)",
    "any rank is (not waiting and frozen for {n}s) or at least {n}% of processes are asleep",
    "any node is (count(odd) >= {n}) and log.stalled_for > {n}s",
)


def ruleset(directory: Path) -> Ruleset:
    """The built-in pack, and rules of every construct up to a hundred."""
    missing = RULES - len(load_ruleset().rules)
    lines = ["version: 1", "sets:", "  bad_nodes: nodes that are (all ranks are (not waiting))"]
    lines.append("rules:")
    for number in range(missing):
        when = TEMPLATES[number % len(TEMPLATES)].format(n=10 + number)
        lines += [f"  - id: rule-{number}", "    verdict: local_hang", "    suspects: odd"]
        lines += ["    when: |", f"      {when}"]
    path = directory / "hang.yaml"
    path.write_text("\n".join(lines) + "\n")
    loaded = load_ruleset(path)
    assert len(loaded.rules) == RULES
    return loaded


def stack(*frames: str) -> Stack:
    """A stack of ``path:line name`` frames, innermost first, below a deep common part."""
    made = []
    for text in frames:
        place, _, name = text.partition(" ")
        path, _, line = place.partition(":")
        root = "/workspace/" if path.startswith("@") else SITE
        made.append(Frame(name, root + path.lstrip("@"), path.lstrip("@"), int(line)))
    made += [Frame("_call_impl", f"{SITE}torch/nn/modules/module.py", "module.py", n)
             for n in range(30)]  # fmt: skip
    return Stack((*made, Frame("main", "/workspace/train.py", "train.py", 60)))


WAITS = tuple(
    stack(f"torch/distributed/distributed_c10d.py:{3000 + n} all_reduce") for n in range(6)
)
READS = stack("@data.py:88 read_shard", "torch/utils/data/dataloader.py:725 __next__")
LOSES = stack("@loss.py:12 loss")
WORKER = stack("torch/utils/data/_utils/worker.py:374 _worker_loop")


def build(ranks: int, *, distinct: bool) -> Incident:
    """A job that hangs in eight classes; ``distinct``: with counters of its own in every rank."""
    samples = tuple(
        Snapshot(
            index=number,
            at=f"2026-01-01T00:00:{number * 15:02d}+00:00",
            monotonic_seconds=number * 15.0,
            processes=tuple(processes(ranks, number, distinct=distinct)),
        )
        for number in range(2)
    )
    nodes = tuple(
        Node(
            name=f"n{first // RANKS_PER_NODE:05}",
            ranks=RankSet(range(first, min(ranks, first + RANKS_PER_NODE))),
        )
        for first in range(0, ranks, RANKS_PER_NODE)
    )
    return Incident(
        print_id="1780890495107774003",
        trigger="stall",
        world_size=ranks,
        nodes=nodes,
        samples=samples,
        progress=Progress(state="stalled", stalled_seconds=640.0, phase="train"),
    )


def processes(ranks: int, sample: int, *, distinct: bool) -> Iterator[Process]:
    """A trainer and a worker of each rank: ranks 40-47 read, 56 computes, the rest waits."""
    dump = Dump(ok=True, mode="native")
    same = IoCounters(read_bytes=0, write_bytes=0, rchar=1000, wchar=1000)
    for rank in range(ranks):
        io = same
        if distinct:
            # Differs in every rank, and so does what it grows by.
            grown = 1_000_000 * rank + sample * (rank * 7919 % ranks) * 15
            io = IoCounters(read_bytes=grown, write_bytes=grown, rchar=grown, wchar=grown)
        shown = WAITS[rank * len(WAITS) // ranks]
        if 40 <= rank < 48:
            shown = READS
        elif rank == 56:
            shown = LOSES
        for kind, pid, seen in (
            ("trainer", 1000 + rank, shown),
            ("dataloader", 10**6 + rank, WORKER),
        ):
            yield Process(
                pid=pid,
                node=f"n{rank // RANKS_PER_NODE:05}",
                kind=kind,  # type: ignore[arg-type]
                rank=rank,
                state="S",
                wchan="futex_wait",
                cpu_seconds=rank * (1.0 + sample) if distinct else 100.0,
                io=io,
                tracer_pid=0,
                dump=dump,
                threads=(Thread(name="MainThread", stack=seen, tid=pid),),
            )


def evaluate(rules: Ruleset, facts: Facts) -> Evaluator:
    """All rules and suppressions of a fresh evaluator, and the suspects of each rule."""
    evaluator = Evaluator(rules, facts)
    for entry in rules.suppress:
        evaluator.truth(entry.when)
    for rule in rules.rules:
        evaluator.truth(rule.when)
        if rule.suspects is not None:
            evaluator.group(rule.suspects)
    return evaluator


def cpu_seconds(work: Callable[[], object], times: int) -> float:
    """The least CPU time of a few runs, the garbage collector being off."""
    best = float("inf")
    gc.collect()
    gc.disable()
    try:
        for _ in range(times):
            start = time.process_time()
            work()
            best = min(best, time.process_time() - start)
    finally:
        gc.enable()
    return best


def arrange(rules: Ruleset, incident: Incident) -> Facts:
    """The facts of an incident with the classes that the rules need."""
    facts = Facts(World(incident), Positions(rules.lists))
    evaluate(rules, facts)
    return facts


def measure(rules: Ruleset, ranks: int, *, distinct: bool, times: int) -> tuple[float, float]:
    """CPU seconds of evaluating, and of arranging with a first evaluation."""
    incident = build(ranks, distinct=distinct)
    first = cpu_seconds(lambda: arrange(rules, incident), 1)
    facts = arrange(rules, incident)
    return cpu_seconds(lambda: evaluate(rules, facts), times), first


def evidence_sizes(rules: Ruleset, ranks: int, *, distinct: bool) -> tuple[float, float]:
    """MiB of what `explain` holds of all rules: in memory beyond the classes, and as JSON."""
    incident = build(ranks, distinct=distinct)
    facts = arrange(rules, incident)
    gc.collect()
    tracemalloc.start()
    evaluator = evaluate(rules, facts)
    court = Court(rules, incident, facts, evaluator, Explainer(evaluator))
    explanation = explain_all(court)
    evaluator = court = None  # type: ignore[assignment]
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] / MIB
    tracemalloc.stop()
    return held, len(render_explanation_json(explanation)) / MIB


def main() -> int:
    """Measure, print a table, and answer 1 where a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", type=int, default=1024, help="ranks of the small job")
    parser.add_argument("--large", type=int, default=16384, help="ranks of the large job")
    parser.add_argument("--times", type=int, default=5, help="runs, of which the fastest counts")
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as directory:
        rules = ruleset(Path(directory))
        for distinct, limit in ((False, 1.5), (True, 20.0)):
            name = "counters of its own in every rank" if distinct else "eight classes"
            small, _ = measure(rules, options.small, distinct=distinct, times=options.times)
            large, first = measure(rules, options.large, distinct=distinct, times=options.times)
            ratio = large / small
            failed |= ratio > limit
            print(
                f"{name}: {RULES} rules cost {small * 1e3:.1f} ms over {options.small} ranks,"
                f" {large * 1e3:.1f} ms over {options.large}: {ratio:.2f} times (limit {limit});"
                f" arranging {(first - large) / options.large * 1e6:.1f} us per rank"
            )
            held, text = evidence_sizes(rules, options.large, distinct=distinct)
            failed |= max(held, text) > 50
            print(f"  evidence of all rules: {held:.1f} MiB in memory, {text:.1f} MiB as JSON")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
