"""The Transformers trainer and what is built on it; patterns as in
:mod:`whyhang.collectors.preset_family`.
"""

from __future__ import annotations

from whyhang.collectors.preset_family import (
    BAR,
    DICT_EPOCH,
    EPOCH,
    FLOAT,
    LOSS,
    SECONDS,
    STEP,
    TOTAL,
    family,
    printed,
)

_TRAIN_END = (
    rf"^\{{'train_runtime':.*{printed('train_loss', LOSS)}.*{DICT_EPOCH}",
    r"^Training completed\b",
)
HF = family(
    "hf",
    "hf_trainer",
    "trl",
    "axolotl",
    "llamafactory",
    "accelerate",
    hints=("%|", "'loss':", "'epoch':"),
    latch=True,
    lines={
        "end": _TRAIN_END,
        "eval": (
            rf"^\{{'eval_(?:\w+_)?loss': '?{LOSS}'?.*{DICT_EPOCH}",
            r"\*{5} Running (?!training \*)\w+ \*{5}$",
            rf"epoch {EPOCH}: (?:perplexity: \S+ eval_loss: {LOSS}|\{{)",
        ),
        "checkpoint_save_end": (r"Random states saved in ",),
        "checkpoint_save_start": (
            rf"Saving model checkpoint to .*?checkpoint-{STEP}\s*$",
            rf"Saving current state to .*?(?:step_|checkpoint-){STEP}",
        ),
        "progress": (
            rf"^{BAR}",
            rf"^\{{'loss': '?{LOSS}'?,(?:.*{printed('step_time', SECONDS)})?.*{DICT_EPOCH}",
            # Trainers of TRL put other members first.
            rf"^\{{'(?!eval_|test_|train_runtime|train_loss)[\w/. -]+': "
            rf"(?:.*?{printed('loss', LOSS)})?.*{DICT_EPOCH}",
            rf">> \{{'loss': {LOSS}, 'learning_rate': {FLOAT}, {DICT_EPOCH}",
        ),
        "compile": (r"[Cc]apturing (?:CUDA|cuda) graph",),
        "init": (
            r"\*{5} Running training \*{5}",
            r"Total optimization steps = (?P<total>[\d,]+)",
        ),
    },
)
LLAMAFACTORY_JSONL = family(
    "llamafactory_jsonl",
    hints=('"current_steps"',),
    lines={
        "eval": (
            rf'^\{{"current_steps": {STEP}, "total_steps": {TOTAL}, "eval_loss": {LOSS}, '
            rf'"epoch": (?P<epoch>{FLOAT})',
        ),
        "progress": (
            rf'^\{{"current_steps": {STEP}, "total_steps": {TOTAL}(?:, "loss": {LOSS})?'
            rf'(?!.*"eval_loss")(?:.*?"epoch": (?P<epoch>{FLOAT}))?',
        ),
    },
)
MS_SWIFT = family(
    "ms_swift",
    "swift",
    hints=("train:", "'global_step/max_steps'", "'iteration'"),
    lines={
        "end": (_TRAIN_END[0], r"\[INFO:swift\] End time of running main"),
        "eval": (
            rf"^\s*(?:Val|Evaluate):{BAR}",
            rf"^\{{'eval_loss': '?{LOSS}'?,.*{DICT_EPOCH},"
            rf".*'global_step/max_steps': '{STEP}/{TOTAL}'",
        ),
        "checkpoint_save_start": (rf"\[INFO:swift\] Saving model checkpoint to .*?-{STEP}\s*$",),
        "progress": (
            rf"^\s*Train:{BAR}",
            rf"^\{{'loss': '?{LOSS}'?,(?:.*{DICT_EPOCH},)?"
            rf".*?'(?:global_step/max_steps|iteration)': '{STEP}/{TOTAL}'"
            rf"(?:.*'train_speed\(s/it\)': '?{SECONDS}'?)?",
        ),
        "init": (r"The logging file will be saved in",),
    },
)
