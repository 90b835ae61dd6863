"""Loggers with a shape of line of their own, outside of the frameworks for language and vision;
patterns as in :mod:`whyhang.collectors.preset_family`.
"""

from __future__ import annotations

from whyhang.collectors.preset_family import (
    EPOCH,
    FLOAT,
    LOSS,
    MS,
    STEP,
    TOTAL,
    family,
)

BOOSTING = family(
    "boosting",
    "xgboost",
    "lightgbm",
    "catboost",
    hints=("]\t", "learn:", "iteration:"),
    lines={
        "end": (r"\[LightGBM\] \[Info\] Finished training",),
        "progress": (
            rf"^(?:\[[\d:]{{8}}\] )?\[{STEP}\]\t[^\t]{{1,80}}:\s?{FLOAT}",
            rf"\[Info\] Iteration:{STEP}, training [^:]{{1,60}}: {FLOAT}",
            rf"^{STEP}:\t(?:learn: {LOSS}\t)?.*?\bremaining: ",
        ),
        "init": (r"\[LightGBM\] \[Info\] Start training",),
    },
)
# Writers of JAX programs: CLU (Flax, T5X), Big Vision, and Levanter's bars in a log.
JAX_WRITERS = family(
    "jax_writers",
    "flax",
    "t5x",
    "big_vision",
    "levanter",
    hints=(".py:", "progress on:", "] "),
    lines={
        "eval": (
            rf"logging_writer\.py:\d+\] \[{STEP}\] (?:collection=)?(?:eval|val|test)",
            r"\bProgress on: ?(?:eval|val|test)",
        ),
        "checkpoint_save_end": (
            rf"\bSaved checkpoint at step:? {STEP}",
            r"\bSaved checkpoint at ",
        ),
        "checkpoint_save_start": (rf"\bSaving checkpoint at step:? {STEP}",),
        "progress": (
            rf"logging_writer\.py:\d+\] \[{STEP}\] (?:.*?\b(?:train_)?loss={LOSS})?",
            rf"\.py:\d+\] \[{STEP}\] \w{{0,30}}loss = {LOSS}",
            rf"^\[{STEP}\] (?:loss|return|reward|score)[ :=]{{1,3}}{FLOAT}\b",
            r"\bProgress on: ?train (?P<step>\d+(?:\.\d+)?[kM]?)it/(?P<total>\d+(?:\.\d+)?[kM]?)it "
            rf"(?:.*?\bloss={LOSS})?",
        ),
    },
)
# Machine-readable lines of NVIDIA's examples (DLLogger) and of MLPerf.
MACHINE_READABLE = family(
    "mlperf",
    "dllogger",
    hints=("dlll {", ":::mllog"),
    lines={
        "end": (r':::MLLOG .{0,200}"key": "run_stop"',),
        "eval": (
            r':::MLLOG .{0,200}"key": "eval_(?:start|stop|accuracy|loss|error)"'
            rf'(?:.{{0,300}}?"(?:step_num|samples_count)": {STEP})?',
        ),
        "progress": (
            rf'^DLLL \{{.*"step": \[(?:{EPOCH}, )?{STEP}[,\]](?!.*"(?:val|eval)\w*")'
            rf'(?:.*?"\w{{0,20}}loss": {LOSS})?',
            rf':::MLLOG .{{0,200}}"key": "(?:train_loss|tracked_stats)", "value": (?:{LOSS})?'
            rf'.{{0,300}}?"(?:step_num|samples_count|step)": {STEP}',
        ),
        "init": (r':::MLLOG .{0,200}"key": "run_start"',),
    },
)
SPEECH = family(
    "speech",
    "wenet",
    "funasr",
    "marian",
    hints=("train ", "train,", ": up. "),
    lines={
        "end": (r"^\[[\d: -]+\] Training finished",),
        "eval": (
            rf"\bCV (?:\| )?Batch {EPOCH}/{STEP} loss {LOSS}",
            r"\bEpoch \d+ CV info",
            rf"\bval, rank: \d+, epoch: {EPOCH}/.{{0,100}}? total step: {STEP}\b",
            rf"\[valid\] Ep\. {EPOCH} : Up\. {STEP} :",
        ),
        "checkpoint_save_end": (r"\] - Checkpoint saved to ",),
        "checkpoint_save_start": (
            r"Checkpoint: save to checkpoint ",
            r"\] - Save checkpoint: ",
            r"\] Saving model weights and runtime parameters to ",
        ),
        "progress": (
            rf"\bTRAIN (?:\|.{{0,40}}\| )?Batch {EPOCH}/{STEP} loss {LOSS}",
            rf"\btrain, rank: \d+, epoch: {EPOCH}/.{{0,100}}? total step: {STEP}\b"
            rf"(?:.*?\bloss_avg_rank: {LOSS})?",
            rf"\] Ep\. {EPOCH} : Up\. {STEP} : Sen\. [\d,]+ : Cost {LOSS}",
        ),
    },
)
RECOMMENDERS = family(
    "recommenders",
    "dlrm",
    "dgl_ke",
    hints=("finished training it", "[train]("),
    lines={
        "eval": (rf"^Testing at - {STEP}/{TOTAL} of epoch", r"\]\[Valid\]"),
        "checkpoint_save_start": (r"^Saving model to ",),
        "progress": (
            rf"\bFinished training it {STEP}/{TOTAL} of epoch {EPOCH}, {MS} ms/it"
            rf"(?:, loss {LOSS})?",
            rf"\]\[Train\]\({STEP}/{TOTAL}\) average pos_loss: ",
        ),
    },
)
IMAGES = family(
    "images",
    "mxnet",
    "stylegan",
    "nerfstudio",
    hints=("batch [", "tick ", "%) ", "iteration "),
    lines={
        "end": (r"\bOptimization Done\.",),
        "eval": (
            rf"\bEpoch\[{EPOCH}\] Validation-",
            r"^Evaluating metrics\.\.\.",
            rf"\bIteration {STEP}, Testing net",
        ),
        "checkpoint_save_start": (r"\bSnapshotting to ",),
        "progress": (
            rf"\bEpoch\[{EPOCH}\] Batch \[(?:\d+-)?{STEP}\]\s+Speed",
            rf"^tick {STEP} +kimg \d",
            rf"^{STEP} \(\d+\.\d+%\) +(?:\d+ s, )?\d+\.\d+ ms ",
            rf"\bIteration {STEP} \(.{{1,40}} iters\), loss = {LOSS}",
        ),
    },
)
