"""All families of training frameworks, and what any loop may print."""

from __future__ import annotations

import re

from whyhang.collectors.preset_family import BAR, BAR_LOSS, LOSS, STEP, Family, family
from whyhang.collectors.presets_hf import HF, LLAMAFACTORY_JSONL, MS_SWIFT
from whyhang.collectors.presets_language import (
    COLOSSALAI,
    COMPOSER,
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
from whyhang.collectors.presets_phases import EPOCHS, with_phases
from whyhang.collectors.presets_shapes import (
    BOOSTING,
    IMAGES,
    JAX_WRITERS,
    MACHINE_READABLE,
    RECOMMENDERS,
    SPEECH,
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
# must end there: `step 1.5` and `step 12s` count no steps. Other languages have their own word.
_FOREIGN = ("шаг", "étape", "schritt", "paso", "passo", "步数", "迭代", "ステップ", "스텝")
_WORD = (
    r"(?:global[_ ]?step|current_steps?|train[_ ]?step|iteration|steps?|iters?|step_i|"
    r"steps_completed|training_iteration(?=:)|" + "|".join(_FOREIGN) + ")"
)
_FIRST = f"(?=[gctis{''.join(dict.fromkeys(word[0] for word in _FOREIGN))}])"
# 1,250 as well.
_NUMBER = r"\d{1,3}(?:,\d{3}){1,4}(?!,?\d)|\d+"
_STEP = rf"(?P<step>{_NUMBER})"
_TOTAL = rf"(?P<total>{_NUMBER})(?!\d|[eE.]\d)"
# Between a word and its number; bounded, since lines may be blank for kilobytes.
_TO = r"[\"']?\s{0,9}[:=#]?\s{0,9}[\[(]?\s{0,9}"
# Settings, not counters: `total steps 1000`.
_NO_COUNT = "".join(
    f"(?<!{word} )"
    for word in (
        *("total", "max", "num", "every", "from", "save", "eval", "log", "logging", "warmup"),
        *("optimization", "accumulation", "fps"),
    )
)
_COUNT = (
    rf"{_FIRST}(?<![\w/.-]){_NO_COUNT}{_WORD}\b{_TO}{_STEP}(?![\w%]|\.\d|:\d|/s)"
    rf"(?:\s{{0,9}}(?:/|of)\s{{0,9}}{_TOTAL})?"
)
_EPOCH_WORD = rf"(?:(?<![\w/.-])epoch\b{_TO}(?P<epoch>\d+(?:\.\d+)?).{{0,60}}?)?"
_LATER_EPOCH = rf"(?:,.{{0,20}}?(?<![\w/.-])epoch\b{_TO}(?P<later_epoch>\d+(?:\.\d+)?))?"
_LOSS_WORD = (
    r"(?:.*?\b(?:(?:lm|train|training|total|avg|mean)_)?loss\b"
    rf"[\"']?\s{{0,9}}(?:[:=]|is\b)?\s{{0,9}}{LOSS})?"
)
_EVAL = r"(?:eval|valid|val|test)\w*"
_CHECKPOINT = rf"(?:\w+ )?checkpoint\b.{{0,80}}?{_COUNT}"
_COUNTER = family(
    "step",
    hints=("step", "iter", "epoch", "batch", "update", "round", "itr", *_FOREIGN),
    any_case=(
        *("tep", "TEP", "ter", "TER", "atch", "ATCH"),
        *("pdate", "PDATE", "ound", "OUND", "itr", "Itr", "ITR"),
        *(word for one in _FOREIGN for word in dict.fromkeys((one, one.capitalize()))),
    ),
    # Warnings count what they are about; builds of images have steps, too.
    ignored=r"[a-z]Warning: |^Step \d+/\d+ : [A-Z]+ |"
    r"\b(?:[Ss]tart|[Rr]esum|[Rr]estor|[Ll]oad)\w*\b(?:(?!eval|valid).){0,40}?"
    r"\b(?:from|at) (?:epoch|step|iter)",
    lines={
        "eval": (
            rf"^\W*(?:\w+ ){{0,2}}(?:eval|valid|test)\w*\W.*?{_COUNT}",
            rf"\[(?:eval|valid|test)\w*\].{{0,40}}?{_COUNT}",
            rf"[\s\]|>](?:eval|valid)\w*[^,;|={{}}]{{0,40}}?{_COUNT}",
            rf"\b(?:eval=\w+|group=valid\w*), ?{_COUNT}",
            rf"{_COUNT}[\s,|:-]{{1,4}}{_EVAL}\b",
            rf"\beval_step={STEP}/(?P<total>\d+)",
        ),
        "checkpoint_save_end": (rf"\bsaved {_CHECKPOINT}",),
        "checkpoint_save_start": (rf"\bsaving {_CHECKPOINT}",),
        "progress": (
            rf"\bloss = {LOSS}, step = {STEP}",  # TensorFlow's estimator
            f"{_EPOCH_WORD}{_COUNT}{_LATER_EPOCH}{_LOSS_WORD}",
            # Batches are steps only beside an epoch: else their sizes would count.
            rf"\bepoch\W{{0,3}}(?P<epoch>\d+)(?:/\d+)?\]?\W{{1,4}}batch\W{{0,3}}{STEP}"
            rf"(?![\w%]|\.\d)(?:\s{{0,9}}/\s{{0,9}}{_TOTAL})?(?:.*?\bloss\W{{1,3}}{LOSS})?",
            rf"\bepoch +(?P<epoch>\d+) \| +{STEP}/ *{_TOTAL} batches \|(?:.*?\bloss +{LOSS})?",
            # Words that count much else: only beside a loss.
            rf"(?<![\w/.-])(?:num_)?(?:updates?|batch|round|itr)\b{_TO}{_STEP}(?![\w%]|\.\d|:\d|/s)"
            rf"(?:\s{{0,9}}(?:/|of)\s{{0,9}}{_TOTAL})?.{{0,80}}?\b(?:train_)?loss\W{{1,4}}{LOSS}",
            # Tables of keys and values.
            rf"^[|│]\s{{1,60}}(?:total_timesteps|step)\s{{1,60}}[|│]\s{{1,60}}{_STEP}\s{{1,60}}[|│]",
            rf"\b(?P<epoch>\d+)epoch:train:\d+-{STEP}batch:(?:.*?\bloss={LOSS})?",  # ESPnet
        ),
    },
)
COUNTER = with_phases(_COUNTER)

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
    COMPOSER,
    PADDLE,
    LITGPT,
    NANOGPT,
    TIMM,
    with_phases(PYTORCH_EXAMPLES),
    ULTRALYTICS,
    KERAS,
    *(
        with_phases(one)
        for one in (BOOSTING, JAX_WRITERS, MACHINE_READABLE, SPEECH, RECOMMENDERS, IMAGES)
    ),
)
# A bare bar is drawn by the Transformers family, but by every other loop as well: such a family
# claims a log only together with one of its own other lines.
FAMILIES: tuple[Family, ...] = (*SPECIFIC, HF, COUNTER, EPOCHS)

# Any bar. What stands before the percentage is its description.
TQDM_BAR = re.compile(rf"(?i)^(?P<about>(?:[^|]|\|\|)*?){BAR}{BAR_LOSS}")
# A bar whose total is not known: `Epoch 0: 11it [00:08,  2.01it/s]`.
TQDM_OPEN = re.compile(rf"(?i)^(?P<about>[^|]{{0,200}}?)\b{STEP}it \[\d+:[\d:]{{2,9}}, {BAR_LOSS}")
# What a bar of the training is called, inside of one of epochs.
TQDM_TRAINING = re.compile(
    r"(?i)^(?:epoch\W{1,4}#(?:/#)?\W{1,4})?(?:global |train(?:ing)? )?"
    r"(?:steps?|train(?:ing)?|iter(?:ation)?s?)\b"
)
# Bars that never count training steps, by description or by unit.
TQDM_OTHER = re.compile(
    r"(?i)\b(?:load|map|download|fetch|filter|token|convert|generat|sanity|valid|eval|test|resolv|"
    r"extract|sav|group|pack|captur|predict|infer|upload|cach|flatten|creat|comput|check)\w*"
    r"|examples?/s|[kMGT]i?B/s|\dB/s"
)
