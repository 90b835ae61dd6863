"""Writes a job as an incident directory in the public format."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from tests.generated.job import Act, Child, Job, Machine, Stack
from tests.generated.notation import Line, bare_name

BEGAN = datetime(2026, 3, 9, 4, 12, 0, tzinfo=timezone.utc)
STANDARD = sys.stdlib_module_names
MEGATRON = "/workspace/Megatron-LM/"
DENIED = "Permission Denied: Try running again with elevated permissions"


class Frames:
    """Frames as JSON text, made once for each stack and way of dumping."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.made: dict[tuple[Stack, bool], str] = {}

    def text(self, stack: Stack, native: bool) -> str:
        """The JSON list of a stack's frames."""
        key = (stack, native)
        if key not in self.made:
            frames = [self.frame(line) for line in stack if native or not line.native]
            self.made[key] = json.dumps([one for one in frames if one is not None])
        return self.made[key]

    def frame(self, line: Line) -> dict[str, Any] | None:
        """One frame; None where this Python has none of its own for it."""
        job = self.job
        if line.native:
            path = f"{job.site}torch/lib/{line.path}" if "torch" in line.path else line.path
            short, name = line.path, line.name
        else:
            path, short = self.place(line.path)
            name = line.name if job.qualified else bare_name(line.name)
            if name.endswith("<listcomp>") and job.python in ("3.12", "3.13"):
                return None
        return {
            "name": name,
            "filename": path,
            "module": path if line.native else None,
            "short_filename": short,
            "line": line.number,
            "locals": None,
            "is_entry": line.native,
            "is_shim_entry": line.native,
        }

    def place(self, path: str) -> tuple[str, str]:
        """Full and short path of a Python file."""
        job = self.job
        if path.startswith("@"):
            inner = job.script if path == "@@" else path[1:]
            return job.project + inner, inner.removeprefix("tools/")
        if path.startswith("<"):
            return path, path
        top = path.partition("/")[0].removesuffix(".py")
        if top in STANDARD:
            return job.library + path, path
        if top == "megatron" and job.backend == "nccl":
            return MEGATRON + path, path
        return job.site + path, path


def write_incident(job: Job, place: Path) -> Path:
    """Write the incident into an empty directory."""
    index = build_index(job)
    place.mkdir(parents=True, exist_ok=True)
    (place / "incident.json").write_text(json.dumps(index, indent=1), encoding="utf-8")
    frames = Frames(job)
    for sample in (0, 1):
        folder = place / "samples" / str(sample)
        folder.mkdir(parents=True)
        for machine in job.machines:
            if machine.status in ("missing", "not_collected"):
                continue
            text = "".join(f"{line}\n" for line in process_lines(job, machine, sample, frames))
            (folder / f"{machine.name}.jsonl").write_text(text, encoding="utf-8")
    if job.has_log:
        text = "".join(f"{json.dumps(event)}\n" for event in progress_events(job))
        (place / "progress.jsonl").write_text(text, encoding="utf-8")
    return place


def build_index(job: Job) -> dict[str, Any]:
    """What ``incident.json`` says."""
    second = BEGAN + timedelta(seconds=job.interval)
    nodes = []
    for machine in job.machines:
        node: dict[str, Any] = {
            "name": machine.name,
            "ranks": f"{machine.ranks.start}-{machine.ranks.stop - 1}",
            "status": machine.status,
        }
        if machine.unread:
            node["unread"] = "/".join(map(str, sorted(machine.unread)))
        if machine.reason:
            node["reason"] = machine.reason
        nodes.append(node)
    ok = {"ok": True}
    log = ok if job.has_log else {"ok": False, "reason": "no log was found"}
    return {
        "format": "whyhang.incident/1",
        "print_id": f"{int(BEGAN.timestamp())}000000000",
        "job_id": "job-17",
        "job_name": "pretrain",
        "framework": "pytorch",
        "taken_at": BEGAN.isoformat(),
        "finished_at": (second + timedelta(seconds=4)).isoformat(),
        "trigger": job.trigger,
        "world_size": job.world,
        "nodes": nodes,
        "samples": [
            {"index": 0, "at": BEGAN.isoformat(), "monotonic_seconds": 0.0},
            {"index": 1, "at": second.isoformat(), "monotonic_seconds": job.interval},
        ],
        "progress": job.progress if job.has_log else {"state": "unknown"},
        "sources": {
            "stacks": ok,
            "io": ok,
            "log": log,
            "nccl_ras": {"ok": False, "reason": "NCCL 2.21.5 has no RAS (needs 2.24)"},
        },
        "whyhang": "0.1.0",
    }


def progress_events(job: Job) -> Iterator[dict[str, Any]]:
    """The last steps of the log before the stall."""
    step = job.progress.get("step")
    median = float(job.progress.get("median_interval_seconds") or 0)
    if step is None or not median:
        return
    last = -float(job.progress["stalled_seconds"])
    for back in range(min(int(step), 20), -1, -1):
        monotonic = round(last - back * median, 3)
        yield {
            "at": (BEGAN + timedelta(seconds=monotonic)).isoformat(),
            "monotonic_seconds": monotonic,
            "step": int(step) - back,
            "phase": "train",
            "source": "train.log",
        }


def process_lines(job: Job, machine: Machine, sample: int, frames: Frames) -> Iterator[str]:
    """The process lines of a node in a sample."""
    for local, rank in enumerate(machine.ranks):
        act = job.acts[rank]
        pid = 20_000 + 100 * local
        who = {"node": machine.name, "rank": rank, "local_rank": local}
        if not act.gone:
            name = "sglang::schedul" if job.framework == "sglang" else "python3"
            child = Child(kind="trainer", act=act, name=name)
            yield process_line(job, {**who, "pid": pid, "ppid": 900}, child, sample, frames)
            for number, one in enumerate(job.children.get(rank, ()), start=1):
                ids = {**who, "pid": pid + number, "ppid": pid}
                yield process_line(job, ids, one, sample, frames)


def process_line(job: Job, who: dict[str, Any], child: Child, sample: int, frames: Frames) -> str:
    """One process as a line of JSON."""
    act, pid = child.act, who["pid"]
    trainer = child.kind == "trainer"
    is_unread = act.unread is not None or (
        trainer and who["rank"] in job.machine_of(who["rank"]).unread
    )
    blocked = (
        act.no_native or act.state in "DTtZ" or any(s in "DTt" for _, s, _ in act.thread_states)
    )
    native = bool(trainer and job.native and sample == 1 and not blocked)
    mode = "native" if native else "python" if sample == 1 and not blocked else "nonblocking"
    reason = act.unread or DENIED
    zombie = act.state == "Z"
    line: dict[str, Any] = {
        **who,
        "kind": child.kind,
        "name": child.name,
        "cmdline": [] if zombie else command_line(job, child.kind),
        "python": f"{job.python}.7",
        "state": act.state,
        "tracer_pid": 0,
        "dump": {"ok": not is_unread, "tool": job.tool, "mode": mode, "seconds": 0.05},
    }
    if is_unread:
        line["dump"]["error"] = reason
        # Another user's /proc gives status and no more.
        return json.dumps(line)
    if act.wchan:
        line |= {"wchan": act.wchan, "syscall": act.syscall}
    line |= counters(job, act, sample, seed=pid + 7 * who["rank"])
    line["os_threads"] = [
        {"tid": pid, "name": child.name, "state": act.state, "wchan": act.wchan},
        *({"tid": pid + 60 + n, "name": name, "state": state, "wchan": wchan}
          for n, (name, state, wchan) in enumerate(act.thread_states)),
    ]  # fmt: skip
    threads = ",".join(thread_texts(job, child, pid, sample, native, frames))
    return f'{json.dumps(line)[:-1]}, "threads": [{threads}]}}'


def counters(job: Job, act: Act, sample: int, *, seed: int) -> dict[str, Any]:
    """CPU and I/O so far; every process began at another count."""
    base = 1_000_000 + 7919 * (seed % 991)
    passed = job.interval * sample
    read, written = int(act.reads * passed), int(act.writes * passed)
    moved = int(act.traffic * passed)
    calls = (read + written + moved) // 4096
    return {
        "cpu_seconds": round(base / 4000 + act.cpu * passed, 2),
        "io": {
            "read_bytes": base + read,
            "write_bytes": base + written,
            "rchar": 5 * base + read + moved // 2,
            "wchar": 3 * base + written + moved // 2,
            "syscr": base // 100 + calls,
            "syscw": base // 200 + calls,
        },
    }


def thread_texts(
    job: Job, child: Child, pid: int, sample: int, native: bool, frames: Frames
) -> Iterator[str]:
    """The threads of a process as JSON, youngest first as py-spy gives them."""
    act = child.act
    named: list[tuple[str | None, Stack]] = list(act.threads)
    stack = act.then if sample and act.then is not None else act.stack
    main: list[tuple[str | None, Stack]] = [("MainThread", stack)]
    if child.kind == "trainer":
        named.extend(idle_threads(job))
        if job.framework == "ray" and stack[-1].name == "Thread._bootstrap":
            main = [
                ("TrainingThread(train_fn_per_worker)", stack),
                ("MainThread", job.stack("thread.ray", outer=False)),
            ]
    for number, (name, frames_of) in enumerate([*named, *main]):
        is_main = frames_of is stack
        head = {
            "pid": pid,
            "thread_id": 139_000_000_000_000 + pid * 4096 + number,
            "thread_name": name,
            "os_thread_id": pid if name == "MainThread" else pid + 20 + number,
            "active": act.state == "R" and is_main,
            "owns_gil": act.gil and not is_main,
            "process_info": None,
        }
        yield f'{json.dumps(head)[:-1]}, "frames": {frames.text(frames_of, native)}}}'


def idle_threads(job: Job) -> Iterator[tuple[str | None, Stack]]:
    """Threads of a trainer that idle by nature."""
    feeder = job.stack("thread.feeder", outer=False)
    yield from [("QueueFeederThread", feeder)] * job.workers
    if job.pinned:
        yield "Thread-3 (_pin_memory_loop)", job.stack("thread.pin", outer=False)
    names = {"tqdm": "Thread-1", "inductor": "InductorSubproc", "wandb": "ChkStopThr"}
    for name in job.idle:
        thread = names.get(name, "ThreadPoolExecutor-0_0")
        yield thread, job.stack(f"thread.{name}", outer=False)
    if job.backend == "nccl":
        yield None, ()


def command_line(job: Job, kind: str) -> list[str]:
    """The words of a process's command line."""
    if kind == "compile_worker":
        module = f"{job.site}torch/_inductor/compile_worker/__main__.py"
        return ["python3", module, "--kind=fork", "--workers=32", "--parent=20000"]
    words = ["python3", "-u", job.script, "--config", "base.yaml"]
    if job.framework == "megatron":
        words += ["--tensor-model-parallel-size", str(job.tensor)]
        words += ["--pipeline-model-parallel-size", str(job.pipeline)]
    return words
