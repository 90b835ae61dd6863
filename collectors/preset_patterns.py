"""All families of training frameworks, and what any loop may print."""

from __future__ import annotations

import re

from whyhang.collectors.preset_family import BAR, BAR_LOSS, LOSS, STEP, TOTAL, Family, family
from whyhang.collectors.presets_hf import HF, LLAMAFACTORY_JSONL, MS_SWIFT
from whyhang.collectors.presets_language import (
    COLOSSALAI,
    DEEPSPEED,
    FAIRSEQ,
    LITGPT,
    MAXTEXT,
    MEGATRON,
    NANOGPT,
    NEMO,
    OPENRLHF,
    PADDLE,
    TORCHTITAN,
    TORCHTUNE,
    VERL,
    XTUNER,
)
from whyhang.collectors.presets_vision import (
    DETECTRON2,
    DIFFUSERS,
    KERAS,
    LIGHTNING,
    MMENGINE,
    PYTORCH_EXAMPLES,
    TIMM,
    ULTRALYTICS,
)

# `step 12`, `step=12/100`, `"global_step": 12`, `Iter [12/100]`, `iteration: 12 of 100`. Digits
# must end there: `step 1.5` and `step 12s` count no steps.
_WORD = r"(?:global[_ ]?step|current_steps?|train[_ ]?step|iteration|steps?|iter)"
# Settings, not counters: `total steps 1000`.
_NO_COUNT = "".join(
    f"(?<!{word} )"
    for word in (
        *("total", "max", "num", "every", "from", "save", "eval", "log", "logging", "warmup"),
        *("optimization", "accumulation"),
    )
)
_COUNT = (
    rf"(?=[gctis])(?<![\w/.-]){_NO_COUNT}{_WORD}\b[\"']?\s*[:=]?\s*[\[(]?\s*{STEP}(?![\w%]|\.\d|:\d|/s)"
    rf"(?:\s*(?:/|of)\s*{TOTAL})?"
)
_EPOCH_WORD = r"(?:(?<![\w/.-])epoch\b[\"']?\s*[:=]?\s*[\[(]?\s*(?P<epoch>\d+(?:\.\d+)?).{0,60}?)?"
_LOSS_WORD = rf"(?:.*?\bloss\b[\"']?\s*[:=]?\s*{LOSS})?"
COUNTER = family(
    "step",
    hints=("step", "iter"),
    any_case=("tep", "TEP", "ter", "TER"),
    lines={
        "eval": (rf"^\W*(?:\w+ ){{0,2}}(?:eval|valid|test)\w*\W.*?{_COUNT}",),
        "progress": (f"{_EPOCH_WORD}{_COUNT}{_LOSS_WORD}",),
    },
)

SPECIFIC: tuple[Family, ...] = (
    MEGATRON,
    MS_SWIFT,
    LLAMAFACTORY_JSONL,
    VERL,
    OPENRLHF,
    NEMO,
    DEEPSPEED,
    TORCHTITAN,
    TORCHTUNE,
    LIGHTNING,
    COLOSSALAI,
    DIFFUSERS,
    MAXTEXT,
    MMENGINE,
    DETECTRON2,
    XTUNER,
    FAIRSEQ,
    PADDLE,
    LITGPT,
    NANOGPT,
    TIMM,
    PYTORCH_EXAMPLES,
    ULTRALYTICS,
    KERAS,
)
# A bare bar is drawn by the Transformers family, but by every other loop as well: such a family
# claims a log only together with one of its own other lines.
FAMILIES: tuple[Family, ...] = (*SPECIFIC, HF, COUNTER)

# Any bar. What stands before the percentage is its description.
TQDM_BAR = re.compile(rf"(?i)^(?P<about>[^|]*?){BAR}{BAR_LOSS}")
# Bars that never count training steps, by description or by unit.
TQDM_OTHER = re.compile(
    r"(?i)\b(?:load|map|download|fetch|filter|token|convert|generat|sanity|valid|eval|test|resolv|"
    r"extract|sav|group|pack|captur|predict|infer|upload|cach|flatten|creat|comput|check)\w*"
    r"|examples?/s|[kMGT]i?B/s|\dB/s"
)
