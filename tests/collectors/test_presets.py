"""What presets read in lines of training frameworks."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.collectors.presets import PresetReader, preset_names
from whyhang.schemas.progress import LogLine

STEP_LINES: list[tuple[str, str, int, int | None]] = [
    (
        "megatron",
        " [2026-01-02 03:04:05] iteration        7/     500 | consumed samples:  224 | elapsed "
        "time per iteration (ms): 2710.5 | lm loss: 7.061310E+00 | grad norm: 1.0 |",
        7,
        500,
    ),
    ("hf", "  1%|          | 7/500 [00:46<1:35:04,  4.60s/it]", 7, 500),
    (
        "llamafactory_jsonl",
        '{"current_steps": 7, "total_steps": 500, "loss": 1.5, "lr": 1}',
        7,
        500,
    ),
    ("ms_swift", "{'loss': '1.5', 'epoch': '0.1', 'global_step/max_steps': '7/500'}", 7, 500),
    ("nemo", "Training epoch 0, iteration 7/500 | lr: 0.1 | global_step: 7 | x: 1", 7, 500),
    ("lightning", "Epoch 0:   1%|1   | 7/500 [00:03<00:09,  0.33it/s, v_num=3]", 7, 500),
    ("colossalai", "Epoch 1/3:   1%|1  | 7/500 [00:20<13:00,  4.00s/it, Loss=2.2]", 7, 500),
    ("diffusers", "Steps:   1%|1  | 7/500 [00:20<13:00,  4.00s/it, lr=1e-4, step_loss=.2]", 7, 500),
    ("deepspeed", "[2026-01-02] [INFO] [Rank 0] step=7, skipped=0, lr=[0.1], mom=[0.9]", 7, None),
    ("torchtitan", "[titan] 2026 - root - INFO - step:  7  loss:  9.81130  memory: 1", 7, None),
    ("torchtune", "Step 7 | loss:1.25 lr:0.1 tokens_per_second:7", 7, None),
    ("openrlhf", "INFO 01-02 03:04:05 ppo.py:1] \u2728 Global step 7: {'reward': 1}", 7, None),
    ("verl", "step:7 - actor/pg_loss:np.float64(0.5) - timing_s/step:55.4", 7, None),
    ("pytorch_examples", "Epoch: [0][  7/500]\tTime  0.1 ( 0.2)\tLoss 6.9e+00 (7.0)", 7, 500),
    (
        "detectron2",
        "[01/02 03:04:05 d2.utils.events]:  eta: 1:00:00  iter: 7  total_loss: 3",
        7,
        None,
    ),
    (
        "mmengine",
        "01/02 03:04:05 - mmengine - INFO - Iter(train) [   7/500]  lr: 1  time: 2",
        7,
        500,
    ),
    (
        "xtuner",
        "[XTuner][RANK 0][INFO] Epoch 1 Step 7/500 data_time: 0.1 time: 2.5 loss: 1",
        7,
        500,
    ),
    (
        "fairseq",
        "2026 | INFO | train_inner | epoch 001:  7 / 9 loss=2.5, num_updates=7, lr=1",
        7,
        None,
    ),
    ("timm", "Train: 0 [   7/500 (  1%)]  Loss:  6.95 (6.97)  Time: 0.412s,  620.10/s", 7, 500),
    ("nanogpt", "iter 7: loss 3.1000, time 390.25ms, mfu 40%", 7, None),
    ("litgpt", "Epoch 1 | iter 28 step 7 | loss train: 2.5, val: n/a | iter time: 390 ms", 7, None),
    (
        "ultralytics",
        "  1/100  7.1G  1.2 0.9 1.1 12 640: 43% \u2501\u2501 7/500 6.2it/s 40s<42s",
        7,
        500,
    ),
    ("keras", "  7/500 \u2501\u2501\u2501 4s 9ms/step - accuracy: 0.9 - loss: 0.5", 7, 500),
    ("paddle", "[2026] [    INFO] - loss: 2, learning_rate: 1e-5, global_step: 7, x: 1", 7, None),
    ("maxtext", "I0102 m.py:2] completed step: 7, seconds: 2.04, TFLOP/s: 4, loss: 10.1", 7, None),
    ("tqdm", "my loop:   1%|1  | 7/500 [00:20<13:00,  4.00s/it, loss=2.2]", 7, 500),
    ("step", "[trainer] epoch 3 step 7/500 loss 2.5", 7, 500),
]


def read(reader: PresetReader, lines: Iterable[str]) -> list[LogLine]:
    return [found for line in lines for found in reader.feed(line)]


def bar(step: int, total: int, about: str = "") -> str:
    return f"{about}{100 * step // total:3d}%|####      | {step}/{total} [00:10<00:20,  1.00s/it]"


@pytest.mark.parametrize(("name", "line", "step", "total"), STEP_LINES)
def test_progress_line(name: str, line: str, step: int, total: int | None) -> None:
    """Each preset finds step and total in its own framework's line."""
    (found,) = read(PresetReader(name), [line])
    assert (found.kind, found.step, found.total) == ("progress", step, total)


@pytest.mark.parametrize(
    ("name", "line", "kind"),
    [
        (
            "megatron",
            "[2026] saving checkpoint at iteration  20 to /c in torch format",
            "checkpoint_save_start",
        ),
        (
            "megatron",
            "  successfully saved checkpoint from iteration  20 to /c",
            "checkpoint_save_end",
        ),
        ("megatron", "[after training is done] datetime: 2026", "end"),
        ("hf", "[INFO|trainer.py:1] 2026 >> ***** Running Evaluation *****", "eval"),
        ("hf", "[INFO|trainer.py:1] 2026 >> ***** Running training *****", "init"),
        ("trl", "{'eval_loss': '1.877', 'eval_runtime': '2', 'epoch': '0.5'}", "eval"),
        ("accelerate", "Saving current state to /out/step_100", "checkpoint_save_start"),
        ("axolotl", "[INFO] Training completed! Saving trained model", None),
        ("axolotl", "Training completed! Saving trained model", "end"),
        ("nanogpt", "compiling the model... (takes a ~minute)", "compile"),
        ("keras", "Epoch 2/5", "init"),
    ],
)
def test_phase_markers(name: str, line: str, kind: str | None) -> None:
    """Lines that open or close phases are told from progress."""
    assert [found.kind for found in read(PresetReader(name), [line])] == ([kind] if kind else [])


def test_values_of_a_line() -> None:
    """Loss, epoch and the step's own duration are read in seconds; nan is unknown."""
    (found,) = read(
        PresetReader("mindspeed"),
        [
            " iteration 5/ 9 | consumed samples: 1 | elapsed time per iteration (ms): 1500.0 |"
            " lm loss: nan |"
        ],
    )
    assert (found.seconds_per_step, found.loss) == (1.5, None)
    (found,) = read(PresetReader("trl"), ["{'loss': '2.5', 'grad_norm': '1', 'epoch': '0.25'}"])
    assert (found.step, found.loss, found.epoch) == (None, 2.5, 0.25)


def test_rank_of_the_prefix_is_kept() -> None:
    """The rank handed in with a piece is that of its line."""
    (found,) = PresetReader("step").feed("step 5", 3)
    assert found.rank == 3


def test_training_bar_is_latched_by_the_announced_total() -> None:
    """Once the total is announced, an evaluation's bare bar is a sign of life, no progress."""
    reader = PresetReader("hf")
    lines = ["Total optimization steps = 1,250", bar(1, 50), bar(2, 50), bar(1, 1250), bar(3, 50)]
    assert [found.step for found in read(reader, lines)] == [None, 1]
    assert reader.others == 2


def test_training_bar_is_latched_by_being_first() -> None:
    """Without announcement the bar that rose first holds the latch while others run."""
    reader = PresetReader("hf")
    lines = [bar(step, 100) for step in range(5)] + [bar(step, 20) for step in range(1, 21)]
    lines += [bar(5, 100)]
    assert [found.total for found in read(reader, lines)] == [100] * 6
    assert reader.others == 19


def test_bar_of_loading_gives_the_latch_up() -> None:
    """A complete bar without description loses the latch to the next bar that rises."""
    reader = PresetReader("tqdm")
    lines = [bar(0, 4), bar(4, 4)] + [bar(step, 900) for step in range(6)]
    assert read(reader, lines)[-1].step == 5


def test_bar_that_never_moved_gives_the_latch_up() -> None:
    """An outer bar of epochs that stands at 0 does not hide the inner bar of steps."""
    reader = PresetReader("tqdm")
    lines = [bar(0, 3, "Epochs: ")] + [bar(step, 900, "Train: ") for step in range(6)]
    assert read(reader, lines)[-1].step == 5


def test_outer_bar_does_not_take_the_latch_back() -> None:
    """A bar of epochs that rises while the bar of steps moves on stays a sign of life."""
    reader = PresetReader("tqdm")
    lines = []
    for epoch in range(40):
        lines += [bar(epoch, 40, "Epochs: "), *(bar(step, 5, "Train: ") for step in range(6))]
    totals = [found.total for found in read(reader, lines)]
    assert set(totals[1:]) == {5}


def test_bars_of_other_work_are_no_progress() -> None:
    """Bars that load, map or validate move, but training does not."""
    reader = PresetReader("tqdm")
    lines = [
        bar(step, 9, about)
        for about in ("Loading checkpoint shards: ", "Map: ", "Validation: ")
        for step in range(4)
    ]
    assert read(reader, lines) == []
    assert reader.others == 9


def test_epoch_in_the_description_of_a_bar() -> None:
    """`Epoch 2:` before a bar is its epoch."""
    (found,) = read(PresetReader("tqdm"), [bar(3, 9, "Epoch 2/5: ")])
    assert found.epoch == 2


@pytest.mark.parametrize(
    "line",
    [
        "max_steps: 1000",
        "Total optimization steps = 1250",
        "saving every 500 steps",
        "step 1.5 done",
        "heartbeat ok step=alive",
        "Resuming from step 100",
        "see /data/step 7s",
    ],
)
def test_generic_step_leaves_settings_alone(line: str) -> None:
    """Settings and prose that merely mention steps are no counters."""
    assert read(PresetReader("step"), [line]) == []


@pytest.mark.parametrize(
    ("line", "step", "total", "epoch"),
    [
        ('{"step": 12, "loss": 3.1}', 12, None, None),
        ("Epoch [1/10], Step [100/600], Loss: 0.25", 100, 600, 1),
        ("global_step: 12", 12, None, None),
        ("iteration=12 of 90", 12, 90, None),
        ("train step 12 | loss 1", 12, None, None),
    ],
)
def test_generic_step(line: str, step: int, total: int | None, epoch: float | None) -> None:
    """Common hand-written shapes are read."""
    (found,) = read(PresetReader("step"), [line])
    assert (found.step, found.total, found.epoch) == (step, total, epoch)


def test_lines_preset_counts_anything() -> None:
    """With `lines` every piece is progress without a step."""
    (found,) = read(PresetReader("lines"), ["hello"])
    assert (found.kind, found.step, found.text) == ("progress", None, "hello")


def test_own_pattern() -> None:
    """A user's regex may name step, total, epoch, loss and seconds."""
    reader = PresetReader(pattern=r"B(?P<step>\d+)/(?P<total>\d+) t=(?P<seconds>[\d.]+)")
    (found,) = read(reader, ["noise", "B7/9 t=2.5"])
    assert (found.step, found.total, found.seconds_per_step) == (7, 9, 2.5)
    assert reader.preset == "pattern"


@pytest.mark.parametrize("pattern", ["(", r"iter (\d+)"])
def test_bad_pattern(pattern: str) -> None:
    """A broken regex, or one without `step`, is refused."""
    with pytest.raises(ValueError, match=r"step|regex"):
        PresetReader(pattern=pattern)


def test_unknown_preset_lists_the_names() -> None:
    """The error names what there is."""
    with pytest.raises(ValueError, match="megatron"):
        PresetReader("megatrom")


@pytest.mark.parametrize("name", preset_names())
def test_every_name_opens(name: str) -> None:
    """All names and aliases can be used."""
    assert list(PresetReader(name).feed("")) in ([], [LogLine(kind="progress")])


@pytest.mark.parametrize(("name", "line", "step", "total"), STEP_LINES)
def test_auto_finds_the_preset(name: str, line: str, step: int, total: int | None) -> None:
    """Three lines with rising steps decide; until then nothing is lost."""
    numbered = [re.sub(r"(?<![\d.])7(?![\d.])", str(n), line) for n in (1, 2, 3)]
    lines = ["NCCL INFO noise", *numbered]
    if name == "hf":
        lines.insert(0, "***** Running training *****")
    reader = PresetReader("auto")
    found = [one for one in read(reader, lines) if one.kind == "progress"]
    assert reader.preset == name
    assert [one.step for one in found] == [1, 2, 3]


@pytest.mark.parametrize(
    ("marker", "name"),
    [
        ("Distributed environment is initialized, world size: 8", "colossalai"),
        ("Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/2", "lightning"),
        ("noise", "lightning"),
    ],
)
def test_auto_tells_alike_frameworks_by_their_other_lines(marker: str, name: str) -> None:
    """Where two frameworks draw the same bar, the markers before it decide."""
    reader = PresetReader("auto")
    read(reader, [marker, *(bar(step, 90, "Epoch 0: ") for step in range(4))])
    assert reader.preset == name


def test_auto_waits_for_three_rises() -> None:
    """Two rising lines, or three that do not rise, decide nothing."""
    reader = PresetReader("auto")
    assert read(reader, ["step 5", "step 6", "step 6", "step 5", "step 6"]) == []
    assert reader.preset is None


def test_auto_prefers_the_framework_to_the_bar() -> None:
    """A generic choice gives way once the framework shows a line of its own."""
    reader = PresetReader("auto")
    read(reader, [bar(step, 500) for step in range(4)])
    assert reader.preset == "tqdm"
    read(reader, ["{'loss': 2.5, 'learning_rate': 1e-5, 'epoch': 0.01}"])
    assert reader.preset == "hf"
    assert [found.step for found in read(reader, [bar(4, 500)])] == [4]


def test_auto_is_not_misled_by_loading_bars() -> None:
    """Bars of loading before training choose nothing."""
    reader = PresetReader("auto")
    read(reader, [bar(step, 4, "Loading checkpoint shards: ") for step in range(5)])
    assert reader.preset is None


@given(st.text(max_size=80), st.sampled_from(preset_names()))
def test_never_raises(text: str, name: str) -> None:
    """No text upsets a preset."""
    for found in PresetReader(name).feed(text):
        assert found.step is None or found.step >= 0


@pytest.mark.parametrize(
    "text", ["epoch 1 step " * 5000, "1" * 65000, "%|" * 30000, "- loss: 1, learning_rate: " * 2500]
)
def test_hostile_lines_stay_cheap(text: str) -> None:
    """Long repetitive lines take well under a second with all presets tried."""
    before = time.process_time()
    list(PresetReader("auto").feed(text))
    assert time.process_time() - before < 2.0
