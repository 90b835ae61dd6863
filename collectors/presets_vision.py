"""Frameworks for vision, and general loops; patterns as in
:mod:`whyhang.collectors.preset_family`.
"""

from __future__ import annotations

from whyhang.collectors.preset_family import (
    BAR,
    BAR_LOSS,
    EPOCH,
    LOSS,
    SECONDS,
    STEP,
    TOTAL,
    family,
)

PYTORCH_EXAMPLES = family(
    "pytorch_examples",
    "pytorch_mnist",
    "pytorch_imagenet",
    hints=("epoch:", "train: [", "training  [", "] loss:"),
    lines={
        "eval": (
            rf"^Test set: Average loss: {LOSS}",
            rf"\bTest: +\[ *{STEP}/ *{TOTAL}\]\s+(?:Time|eta)(?:.*?\b[Ll]oss:? +{LOSS})?",
            rf"\bEval Epoch: {EPOCH} \[ *{STEP} / {TOTAL}\]",
        ),
        "progress": (
            rf"\bTrain Epoch: {EPOCH} \[ *{STEP}/{TOTAL} \( *\d+%\)\]"
            rf"(?:.*?\bBatch \(t\): {SECONDS})?(?:.*?\bLoss: {LOSS})?",
            rf"^Epoch: \[ *{EPOCH}\]\[ *{STEP}/{TOTAL}\]\s+Time +{SECONDS}"
            rf"(?:.*?\bLoss +{LOSS})?",
            rf"^\[{EPOCH}, +{STEP}\] loss: {LOSS}",  # a tutorial of PyTorch
            # The logger of DeiT, MAE and DINO; Swin's; PaddleDetection's.
            rf"\bEpoch: +\[ *{EPOCH}(?:/\d+)?\] +\[ *{STEP}/ *{TOTAL}\] +(?:eta|learning_rate):"
            rf"(?:.*?\bloss: {LOSS})?(?:.*?\b(?:time|batch_cost): {SECONDS})?",
            rf"\bTrain(?:ing)?:? +\[ *{STEP}/ *{TOTAL}\] +eta:"
            rf"(?:.*?\b(?:total_)?loss: {LOSS})?(?:.*?\btime: {SECONDS})?",
            rf"\bTrain: \[ *{EPOCH}/\d+\]\[ *{STEP}/{TOTAL}\]\s+eta "
            rf"(?:.*?\btime {SECONDS})?(?:.*?\bloss {LOSS})?",
        ),
    },
)
DETECTRON2 = family(
    "detectron2",
    hints=("iter:",),
    lines={
        "end": (r"Overall training speed: \d+ iterations",),
        "eval": (
            r"Start inference on \d+ batches",
            rf"Inference done {STEP}/{TOTAL}\.",
            r"Total inference time: ",
        ),
        "checkpoint_save_start": (r"Saving checkpoint to ",),
        "progress": (
            rf"(?:\]: |INFO: ) *(?:eta: \S+(?: days?, \S+)?  )?iter: {STEP}  total_loss: {LOSS}"
            rf"(?:.*?last_time: {SECONDS})?",
        ),
        "init": (r"Starting training from iteration",),
    },
)
MMENGINE = family(
    "mmengine",
    "mmcv",
    hints=("(train)", "info - epoch [", "info - iter ["),
    lines={
        "eval": (
            *(
                rf"- (?:Epoch|Iter)\({phase}\) +(?:\[ *{EPOCH}\])?\[ *{STEP}/{TOTAL}\]"
                for phase in ("val", "test")
            ),
            # mmcv, before mmengine, which does not know the total.
            rf"- (?:Epoch|Iter)\(val\) (?:\[{EPOCH}\])?\[{STEP}\]\t",
        ),
        "checkpoint_save_start": (
            rf"Saving checkpoint at {STEP} iterations",
            rf"Saving checkpoint at {EPOCH} epochs",
        ),
        "progress": (
            rf"- (?:Epoch|Iter)\(train\) +(?:\[ *{EPOCH}\])?\[ *{STEP}/{TOTAL}\]"
            rf"(?:.*?  time: {SECONDS})?(?:.*?  loss: {LOSS})?",
            rf"- INFO - (?:Epoch|Iter) (?:\[{EPOCH}\])?\[{STEP}/{TOTAL}\]\s+lr: "
            rf"(?:.*?, time: {SECONDS})?(?:.*?, loss: {LOSS})?",
        ),
        "compile": (r'Model has been "compiled"',),
        "init": (r"Checkpoints will be saved to",),
    },
)
TIMM = family(
    "timm",
    hints=("train:",),
    lines={
        "end": (r"^\*\*\* Best metric: ",),
        "eval": (rf"(?:^|- )Test(?: \(EMA\))?: \[ *{STEP}/{TOTAL}\]  Time:.*?Loss: +{LOSS}",),
        "checkpoint_save_end": (r"^ \('.*checkpoint-\d+\.pth\.tar'",),
        "progress": (
            rf"(?:^|- )Train: {EPOCH} \[ *{STEP}/{TOTAL} \( *\d+%\)\]"
            rf"  Loss: +{LOSS} .*?Time: {SECONDS}s",
        ),
        "init": (r"^Scheduled epochs: ",),
    },
)
ULTRALYTICS = family(
    "ultralytics",
    "yolo",
    "yolov5",
    hints=("% ", "%|"),
    lines={
        "end": (r"\b\d{1,7} epochs completed in", r"^Optimizer stripped from"),
        "eval": (
            rf"^\s*Class +Images +(?:Instances|Labels) .*?\d+%(?: \S+|\|[^|]*\|) {STEP}/{TOTAL} ",
        ),
        "progress": (
            # A bar of its own; tqdm's before release 8.3.200.
            rf"^\s*{EPOCH}/\d+ +\d\S*[GM]\b.*?:  *\d+%(?: .*?|\|[^|]*\|) {STEP}/{TOTAL} ",
        ),
        "init": (r"^Starting training for \d+ epochs",),
    },
)
KERAS = family(
    "keras",
    hints=("/step",),
    ends_only=True,
    lines={
        "checkpoint_save_start": (rf"^Epoch {EPOCH}: saving model to ",),
        "progress": (
            rf"^ *{STEP}/(?P<total>\d+|Unknown) (?:[━ ]+ )?(?:- )?\S+ (?:- )?\d+\S*/step"
            rf"(?:.*? - loss: {LOSS})?",
        ),
        "compile": (r"Compiled cluster using XLA",),
        "init": (rf"^Epoch {EPOCH}/\d+$",),
    },
)
DIFFUSERS = family(
    "diffusers",
    hints=("steps:",),
    lines={
        "eval": (r"Running validation\.\.\.",),
        "checkpoint_save_end": (r"Saved state to ",),
        "checkpoint_save_start": (rf"Saving current state to .*?checkpoint-{STEP}",),
        "progress": (rf"^\s*Steps: {BAR}{BAR_LOSS}",),
        "init": (
            r"\*{5} Running training \*{5}",
            r"Total optimization steps = (?P<total>[\d,]+)",
        ),
    },
)
LIGHTNING = family(
    "lightning",
    hints=("epoch",),
    lines={
        "end": (r"^`Trainer\.fit` stopped",),
        "eval": (
            rf"^\s*(?:Validation|Sanity Checking|Testing)(?: DataLoader \d+)?:{BAR}",
            rf"^\s*(?:Validation|Sanity Checking|Testing)[ \w]{{0,40}}? [━╸╺ ]{{1,400}}"
            rf" {STEP}/{TOTAL} +\d+:\d\d:\d\d • ",
        ),
        "checkpoint_save_start": (rf"Epoch {EPOCH}, global step {STEP}: .* saving model to ",),
        "progress": (
            # NeMo 1 has a second colon.
            rf"^\s*Epoch {EPOCH}:(?: :)?{BAR}{BAR_LOSS}",
            # The bar that rich draws.
            rf"^\s*Epoch {EPOCH}(?:/\d+)? [━╸╺ ]{{1,400}} {STEP}/{TOTAL} +\d+:\d\d:"
            rf"(?:.*?\b\w*loss: {LOSS})?",
        ),
        "init": (r"^Initializing distributed: GLOBAL_RANK",),
    },
)
