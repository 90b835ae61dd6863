"""Closed sets of words that evidence and rules share.

They stand apart from the types that carry them, so that whoever only speaks the words (the rule
language does) need not load the types of all evidence.
"""

from __future__ import annotations

from typing import Literal, get_args

# Why evidence was taken.
Trigger = Literal["stall", "manual", "exit", "import"]
# What was heard from a machine; `schemas/incident.py` says what each word means.
NodeStatus = Literal["ok", "partial", "missing", "not_collected"]
# What a process is for.
ProcessKind = Literal[
    "trainer", "dataloader", "compile_worker", "checkpoint", "launcher", "helper", "other"
]
PROCESS_KINDS: tuple[ProcessKind, ...] = get_args(ProcessKind)
# What a job was doing, by its log.
Phase = Literal["train", "init", "load", "eval", "checkpoint", "compile", "end"]
PHASES: tuple[Phase, ...] = get_args(Phase)
ProgressState = Literal["stalled", "advancing", "slow", "unknown"]
