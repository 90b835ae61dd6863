"""Jobs of different rhythm, each of which hangs at a random moment."""

from __future__ import annotations

from collections.abc import Callable

from bench.detector import lines
from bench.detector.trace import Script, Trace

TOTAL = 100_000


def llm(script: Script, seconds: float, steps: int, interval: int = 1) -> Trace:
    """Megatron: steady steps; a marked checkpoint and a silent validation now and then."""
    megatron_start(script)
    count = script.count(steps)
    for step in range(interval, count + 1, interval):
        script.wait(interval * seconds, 0.03)
        script.say(lines.megatron(script.now, step, TOTAL, seconds))
        if step // interval % 150 == 0:
            script.wait(10 * seconds, 0.1)
            script.say(f" validation loss at iteration {step} | lm loss value: 8.012340E+00 | ")
            megatron_checkpoint(script, step)
    return script.hang()


def megatron_start(script: Script) -> None:
    """From the launch to the first step, which is slower than the others."""
    script.between(5, 20)
    script.say("> initializing torch distributed ...")
    script.between(20, 60)
    script.say("time to initialize megatron (seconds): 31.405")
    script.between(60, 180)
    script.say(f"[before the start of training step] datetime: {lines.stamp(script.now)}")
    script.between(20, 60)


def megatron_checkpoint(script: Script, step: int) -> None:
    """A checkpoint of which the log tells begin and end."""
    script.say(lines.megatron_save(script.now, step))
    script.between(30, 90)
    script.say(lines.megatron_saved(script.now, step))


def vision(script: Script) -> Trace:
    """detectron2: a line every 13 s, and a marked evaluation of 400 s every 60 lines."""
    script.between(60, 200)
    script.say(lines.detectron2(script.now, "Starting training from iteration 0"))
    for line in range(1, script.count(360) + 1):
        script.wait(13.0, 0.1)
        step = 20 * line - 1
        text = f" eta: 11:20:31  iter: {step}  total_loss: 4.91  loss_cls: 2.1  time: 0.6521  "
        script.say(lines.detectron2(script.now, f"{text}last_time: 0.6490  lr: 0.00039962"))
        if line % 60 == 0:
            script.say(lines.detectron2(script.now, "Start inference on 5000 batches"))
            script.wait(400.0, 0.1)
            script.say(lines.detectron2(script.now, "Total inference time: 0:06:44.1"))
    return script.hang()


def rlhf(script: Script) -> Trace:
    """verl: steps of two minutes in the median, the longest answers take more than ten."""
    return reinforcement(script, 250, lambda _: 120.0 * script.random.lognormvariate(0.0, 0.75))


def drift(script: Script) -> Trace:
    """verl: answers grow longer, and steps become four times as long over the run."""
    return reinforcement(
        script, 300, lambda done: 120.0 * 4.0**done * script.random.lognormvariate(0.0, 0.2)
    )


def reinforcement(script: Script, steps: int, seconds: Callable[[float], float]) -> Trace:
    """Steps whose length is a function of how much is done, after a slow start."""
    script.between(200, 600)
    script.say("\x1b[36m(TaskRunner pid=2210)\x1b[0m Training from scratch")
    count = script.count(steps)
    for step in range(1, count + 1):
        length = seconds(step / count)
        script.wait(length)
        script.say(lines.verl(step, length))
    return script.hang()


def hf_bars(script: Script) -> Trace:
    """HF Trainer: bars without description, an evaluation bar, a checkpoint that only begins."""
    total = script.count(3000)
    script.between(60, 200)
    script.say("***** Running training *****")
    script.say(f"  Total optimization steps = {total:,}")
    begin = script.now
    for step in range(1, total + 1):
        script.wait(1.2, 0.1)
        script.say(lines.bar(step, total, script.now - begin), "\r")
        if step % 10 == 0:
            script.say("")
            script.say(f"{{'loss': '2.031', 'grad_norm': '1.253', 'epoch': '{step / 1000:.3f}'}}")
        if step % 500 == 0:
            script.say("***** Running Evaluation *****")
            evaluation = script.now
            for batch in range(1, 41):
                script.wait(2.0, 0.2)
                script.say(lines.bar(batch, 40, script.now - evaluation), "\r")
            script.say(f"{{'eval_loss': '1.877', 'epoch': '{step / 1000:.3f}'}}")
            script.say(f"Saving model checkpoint to /out/checkpoint-{step}")
            script.between(60, 240)
    return script.hang()


def longer_sequences(script: Script) -> Trace:
    """torchtitan: steps of 2 s become steps of 16 s in the midst of training."""
    script.between(40, 120)
    script.say(f"[rank0]:[titan] {lines.stamp(script.now)} - root - INFO - Training starts at step")
    half = script.count(500)
    for step in range(1, 2 * half + 1):
        script.wait(2.0 if step <= half else 16.0, 0.05)
        script.say(lines.torchtitan(script.now, step))
    return script.hang()


def silent_checkpoints(script: Script) -> Trace:
    """A loop of one's own: a line every 5 s, and checkpoints of 300 s that nothing announces."""
    script.between(40, 120)
    for step in range(1, script.count(900) + 1):
        script.wait(5.0, 0.05)
        script.say(f"step {step} loss 2.071 lr 3e-4")
        if step % 150 == 0:
            script.wait(300.0, 0.1)
    return script.hang()


def epoch_bars(script: Script) -> Trace:
    """A bare bar that is drawn anew for each epoch, with a silent validation between."""
    script.between(40, 120)
    for _ in range(script.count(8)):
        begin = script.now
        for step in range(1, 151):
            script.wait(2.0, 0.1)
            script.say(lines.bar(step, 150, script.now - begin), "\r")
        script.say("")
        script.between(20, 60)
    return script.hang()


def attached(script: Script) -> Trace:
    """A watch that begins late: the log has a long pause of its past and is silent just now."""
    megatron_start(script)
    count = script.count(300)
    for step in range(1, 2 * count + 1):
        script.wait(20.0, 0.05)
        if step == count // 2:
            script.between(2400, 3600)
        script.say(lines.megatron(script.now, step, TOTAL, 20.0))
        if step == count:
            # An evaluation that nothing announces.
            script.between(400, 1500)
            script.attach()
            script.between(10, 120)
    return script.hang()


def resumed(script: Script) -> Trace:
    """Ranks that fail are started again twice: the counter goes back, the first step is slow."""
    first, count = 0, script.count(250)
    for _ in range(3):
        megatron_start(script)
        script.between(200, 600)
        for step in range(first + 1, first + count + 1):
            script.wait(10.0, 0.05)
            script.say(lines.megatron(script.now, step, TOTAL, 10.0))
            if step == first + count - count // 3:
                megatron_checkpoint(script, step)
        first += count - count // 3
        script.say("[rank3]: torch.distributed.DistBackendError: NCCL communicator was aborted")
        script.between(20, 90)
    return script.hang()


SHAPES: dict[str, Callable[[Script], Trace]] = {
    "LLM, 2.7 s steps": lambda script: llm(script, 2.7, 1500),
    "LLM, 30 s steps": lambda script: llm(script, 30.0, 600),
    "LLM, a line every 10 steps": lambda script: llm(script, 3.0, 4000, interval=10),
    "vision, evaluation of 400 s": vision,
    "RLHF, lognormal 120 s": rlhf,
    "RL, length drifts 4x": drift,
    "HF bars, evaluation, checkpoint": hf_bars,
    "sequence length x8": longer_sequences,
    "unmarked checkpoints of 300 s": silent_checkpoints,
    "a bar per epoch": epoch_bars,
    "attached to an old log": attached,
    "resumed twice": resumed,
}


def play(shape: str, seed: int, scale: float = 1.0) -> Trace:
    """The trace of one job; the same for the same seed."""
    return SHAPES[shape](Script(shape, seed, scale))
