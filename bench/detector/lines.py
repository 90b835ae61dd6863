"""Lines as the frameworks print them."""

from __future__ import annotations

import time

from bench.detector.trace import EPOCH


def stamp(now: float) -> str:
    """Local time as most frameworks print it."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(EPOCH + now))


def megatron(now: float, step: int, total: int, seconds: float) -> str:
    """An iteration of Megatron-LM, which tells how long its iterations take."""
    return (
        f" [{stamp(now)}.000001] iteration {step:8d}/{total:8d} | consumed samples: "
        f"{step * 512:12d} | elapsed time per iteration (ms): {seconds * 1000:.1f} | learning "
        "rate: 3.000000E-04 | global batch size:   512 | lm loss: 7.550000E+00 | grad norm: 0.731 |"
    )


def megatron_save(now: float, step: int) -> str:
    """A checkpoint begins."""
    return f"[{stamp(now)}] saving checkpoint at iteration {step:8d} to /ckpt in torch_dist format"


def megatron_saved(now: float, step: int) -> str:
    """A checkpoint is written."""
    return f"  [{stamp(now)}] successfully saved checkpoint from iteration {step:8d} to /ckpt"


def bar(step: int, total: int, elapsed: float, about: str = "") -> str:
    """A progress bar of tqdm."""
    done = step / total
    rate = elapsed / max(step, 1)
    return (
        f"{about}{done:4.0%}|{'█' * int(10 * done):10}| {step}/{total} "
        f"[{clock(elapsed)}<{clock(rate * (total - step))}, {rate:5.2f}s/it]"
    )


def clock(seconds: float) -> str:
    """Time as tqdm prints it."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


def verl(step: int, seconds: float) -> str:
    """A step of verl, through the Ray driver."""
    return (
        f"\x1b[36m(TaskRunner pid=2210)\x1b[0m step:{step} - actor/entropy:0.31 - "
        f"actor/pg_loss:0.0121 - training/epoch:0 - critic/score/mean:0.41 - "
        f"timing_s/step:{seconds:.1f} - perf/throughput:1410.2"
    )


def torchtitan(now: float, step: int) -> str:
    """A step of torchtitan, in its colours."""
    return (
        f"[rank0]:[titan] {stamp(now)},005 - root - INFO - \x1b[31mstep: {step:2}  "
        f"\x1b[32mloss:  9.81130  \x1b[34mtps: 6,103  \x1b[36mtflops: 320.1\x1b[39m"
    )


def detectron2(now: float, text: str) -> str:
    """A record of detectron2's logger."""
    when = time.strftime("%m/%d %H:%M:%S", time.localtime(EPOCH + now))
    return f"\x1b[32m[{when} d2.utils.events]: \x1b[0m{text}"
