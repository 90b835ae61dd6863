"""What a text is that holds no stacks, and which command or tool takes the user further."""

from __future__ import annotations

import re

# So much of a text tells what it is.
_HEAD_BYTES = 1 << 18
_KINDS = (
    (
        re.compile(
            rb"speedscope\.app/file-format-schema|\A\W*\"?\w*\"?.{0,200}\"traceEvents\"", re.S
        ),
        "a profile over time; a hang shows in the stacks of one moment: `py-spy dump --pid PID`",
    ),
    (
        re.compile(rb"\A\x80[\x02-\x05]|\"pg_config\"|\"(?:comm_lib|nccl)_version\"\s*:"),
        "the dump of a flight recorder: give its directory to `whyhang fr`",
    ),
    (
        re.compile(rb"^\s*\[<[0-9a-f]+>\] [\w.]+\+0x[0-9a-f]+/0x", re.M),
        "a kernel stack, which does not tell who waits for it: add `py-spy dump --nonblocking "
        "--pid PID` of every rank, or let `whyhang collect` read both",
    ),
    (
        re.compile(
            rb"aught collective operation timeout|WorkNCCL\(|monitoredBarrier|ProcessGroup\w+\.cpp:"
        ),
        "a log without stacks: give the dumps of the flight recorder to `whyhang fr`, or add "
        "`py-spy dump --pid PID` of every rank",
    ),
    (
        re.compile(rb"^(?:NCCL version \S+ compiled with CUDA|Job summary\s*$)", re.M),
        "a reply of NCCL RAS: `whyhang ras --file` reads it",
    ),
    (
        re.compile(
            rb"Failed to (?:find python version|suspend process)|Permission Denied: Try run"
        ),
        "only the errors of py-spy: `whyhang doctor` tells what it lacks",
    ),
)
_FOLDED = re.compile(rb"[^;\n]+(?:;[^;\n]+)+ \d+(?:\.\d+)?\s*\Z")


def recognise(data: bytes) -> str | None:
    """What a text without stacks is, with the remedy; None where it is nothing known."""
    head = data[:_HEAD_BYTES]
    lines = [line for line in head.splitlines()[:20] if line.strip()]
    if lines and sum(_FOLDED.match(line) is not None for line in lines) * 2 > len(lines):
        return _KINDS[0][1]
    return next((what for pattern, what in _KINDS if pattern.search(head)), None)
