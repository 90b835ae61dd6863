"""What following idle logs costs."""

from __future__ import annotations

import resource
import time
from pathlib import Path

from whyhang.engine.log_watch import LogWatch
from whyhang.engine.streams import find_logs
from whyhang.schemas.config import Config

RANKS = 1024
_GIB = 1 << 30


def follow_idle(directory: Path, seconds: float) -> tuple[float, float]:
    """CPU share of one core and peak MiB, with a log for each of 1,024 ranks and one of 1 GiB."""
    for rank in range(RANKS):
        (directory / f"rank{rank}.log").write_text("starting\n" + "step 1/9 loss 1\n" * 50)
    with (directory / "big.log").open("wb") as big:
        block = b"[trainer] step 17/90000 loss 2.5 lr 1e-4\n" * 25_000
        while big.tell() < _GIB:
            big.write(block)
    now = time.monotonic()
    watch = LogWatch(find_logs([str(directory / "*.log")]), Config(), now)
    watch.poll(now)
    start, used = time.monotonic(), time.process_time()
    while time.monotonic() < start + seconds:
        time.sleep(1.0)
        now = time.monotonic()
        watch.poll(now)
        list(watch.transitions(now))
    share = (time.process_time() - used) / (time.monotonic() - start)
    watch.close()
    return share, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
