"""What training frameworks print: families of line patterns, as data.

Patterns are searched in a clean piece (see :mod:`whyhang.collectors.normalise`). Named groups:
``step``, ``total``, ``epoch``, ``loss``, ``seconds`` and ``ms`` (both a step's duration). They stay
unanchored where the shape allows it, since real logs carry prefixes that nobody foresees, and have
no nested quantifiers, since they run on the host of the training.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from whyhang.schemas.progress import EventKind

_FLOAT = r"[-+]?(?:nan|inf(?:inity)?|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)"
_STEP = r"(?P<step>\d+)"
_TOTAL = r"(?P<total>\d+)"
_EPOCH = r"(?P<epoch>\d+)"
_LOSS = rf"(?P<loss>{_FLOAT})"
_SECONDS = rf"(?P<seconds>{_FLOAT})"
_MS = rf"(?P<ms>{_FLOAT})"
# What tqdm draws behind the description: `  2%|▏  | 20/1250 [01:17<1:18:55,  3.85s/it`.
_BAR = rf"\s*\d{{1,3}}%\|[^|]*\|\s*{_STEP}/{_TOTAL} \[[^\]<]*<[^\],]*(?:,\s*[^\],]*)?"
_BAR_LOSS = rf"(?:.*?\b[\w/]*loss={_LOSS})?"


def _value(key: str, number: str) -> str:
    """A member of a printed dict; Transformers 5 prints its numbers as strings."""
    return rf"'{key}': '?{number}'?"


_DICT_EPOCH = _value("epoch", rf"(?P<epoch>{_FLOAT})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Frameworks that print alike.

    ``latch``: bars have no description, so once the training bar's total is known, bars with
    another total belong to other phases. ``hints``: a line that tells of progress has one of these
    in lower case; they spare a foreign log most of the regexes.
    """

    name: str
    aliases: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    latch: bool = False
    patterns: tuple[tuple[EventKind, re.Pattern[str]], ...]


_ORDER: tuple[EventKind, ...] = (
    "end",
    "eval",
    "checkpoint_save_end",
    "checkpoint_save_start",
    "progress",
    "compile",
    "init",
)


def _family(
    name: str,
    *aliases: str,
    hints: tuple[str, ...],
    lines: Mapping[EventKind, tuple[str, ...]],
    latch: bool = False,
) -> Family:
    ordered = tuple(
        (kind, re.compile(f"(?i){pattern}")) for kind in _ORDER for pattern in lines.get(kind, ())
    )
    return Family(name=name, aliases=aliases, hints=hints, latch=latch, patterns=ordered)


MEGATRON = _family(
    "megatron",
    "flagscale",
    "mindspeed",
    "nvrx",
    "nvrx_ft",
    hints=("iteration",),
    lines={
        "end": (
            rf"^\[exiting program (?:at iteration {_STEP}|after)",
            r"^\[after training is done\]",
        ),
        "eval": (
            rf"^ validation\S* loss at iteration {_STEP}(?: on \w+ set)? \| lm loss value: {_LOSS}",
            rf"^Evaluating (?:on \d+ samples|iter {_STEP}/{_TOTAL})",
        ),
        "checkpoint_save_end": (rf"successfully saved checkpoint from iteration +{_STEP} to ",),
        "checkpoint_save_start": (rf"saving checkpoint at iteration +{_STEP} to ",),
        "progress": (
            rf"(?:^|[\s\]>])iteration +{_STEP}/ *{_TOTAL} \|"
            rf".*?elapsed time per iteration \(ms\): +{_MS}\b"
            rf"(?:.*?\b(?:lm|policy) loss: +{_LOSS}\b)?",
            # The FSDP2 trainer of MindSpeed.
            rf"(?:^|[\s\]>])iteration:? +{_STEP}(?:/ *{_TOTAL})? \| *consumed ",
        ),
        "compile": (
            r"^> compiling dataset index builder",
            r"compiling and loading fused kernels",
        ),
        "init": (
            r"^> initializing torch distributed",
            r"^time to initialize megatron",
            r"^\[before the start of training step\]",
            r"\[agent\] starting workers",
        ),
    },
)

_TRAIN_END = (
    rf"^\{{'train_runtime':.*{_value('train_loss', _LOSS)}.*{_DICT_EPOCH}",
    r"^Training completed\b",
)
HF = _family(
    "hf",
    "hf_trainer",
    "trl",
    "axolotl",
    "llamafactory",
    "accelerate",
    hints=("%|", "'loss':"),
    latch=True,
    lines={
        "end": _TRAIN_END,
        "eval": (
            rf"^\{{'eval_(?:\w+_)?loss': '?{_LOSS}'?.*{_DICT_EPOCH}",
            r"\*{5} Running (?!training \*)\w+ \*{5}$",
            rf"epoch {_EPOCH}: (?:perplexity: \S+ eval_loss: {_LOSS}|\{{)",
        ),
        "checkpoint_save_end": (r"Random states saved in ",),
        "checkpoint_save_start": (
            rf"Saving model checkpoint to .*?checkpoint-{_STEP}\s*$",
            rf"Saving current state to .*?(?:step_|checkpoint-){_STEP}",
        ),
        "progress": (
            rf"^{_BAR}",
            rf"^\{{'loss': '?{_LOSS}'?,(?:.*{_value('step_time', _SECONDS)})?.*{_DICT_EPOCH}",
            rf">> \{{'loss': {_LOSS}, 'learning_rate': {_FLOAT}, {_DICT_EPOCH}",
        ),
        "compile": (r"capturing cuda graph",),
        "init": (
            r"\*{5} Running training \*{5}",
            r"Total optimization steps = (?P<total>[\d,]+)",
        ),
    },
)
LLAMAFACTORY_JSONL = _family(
    "llamafactory_jsonl",
    hints=('"current_steps"',),
    lines={
        "eval": (
            rf'^\{{"current_steps": {_STEP}, "total_steps": {_TOTAL}, "eval_loss": {_LOSS}, '
            rf'"epoch": (?P<epoch>{_FLOAT})',
        ),
        "progress": (
            rf'^\{{"current_steps": {_STEP}, "total_steps": {_TOTAL}(?:, "loss": {_LOSS})?'
            rf'(?!.*"eval_loss")(?:.*?"epoch": (?P<epoch>{_FLOAT}))?',
        ),
    },
)
MS_SWIFT = _family(
    "ms_swift",
    "swift",
    hints=("train:", "'global_step/max_steps'", "'iteration'"),
    lines={
        "end": (_TRAIN_END[0], r"\[INFO:swift\] End time of running main"),
        "eval": (
            rf"^\s*(?:Val|Evaluate): +{_BAR}",
            rf"^\{{'eval_loss': '?{_LOSS}'?,.*{_DICT_EPOCH},"
            rf".*'global_step/max_steps': '{_STEP}/{_TOTAL}'",
        ),
        "checkpoint_save_start": (rf"\[INFO:swift\] Saving model checkpoint to .*?-{_STEP}\s*$",),
        "progress": (
            rf"^\s*Train: +{_BAR}",
            rf"^\{{'loss': '?{_LOSS}'?,(?:.*{_DICT_EPOCH},)?"
            rf".*?'(?:global_step/max_steps|iteration)': '{_STEP}/{_TOTAL}'"
            rf"(?:.*'train_speed\(s/it\)': '?{_SECONDS}'?)?",
        ),
        "init": (r"The logging file will be saved in",),
    },
)
NEMO = _family(
    "nemo",
    hints=("training epoch",),
    lines={
        "end": (r"^`Trainer\.fit` stopped",),
        "eval": (rf"\b(?:Sanity checking )?Validation: iteration {_STEP}/{_TOTAL}",),
        "checkpoint_save_end": (rf"Successfully saved checkpoint from iteration +{_STEP}",),
        "checkpoint_save_start": (rf"Global Checkpoint Save : Rank: \d+ : Iteration: {_STEP}",),
        "progress": (
            rf"Training epoch {_EPOCH}, iteration {_STEP}/{_TOTAL} \|"
            rf"(?:.*?\breduced_train_loss: {_LOSS})?"
            rf"(?:.*?\btrain_step_timing in s: {_SECONDS})?",
        ),
    },
)
LIGHTNING = _family(
    "lightning",
    hints=("epoch",),
    lines={
        "end": (r"^`Trainer\.fit` stopped",),
        "eval": (rf"^\s*(?:Validation|Sanity Checking|Testing)(?: DataLoader \d+)?: ?{_BAR}",),
        "checkpoint_save_start": (rf"Epoch {_EPOCH}, global step {_STEP}: .* saving model to ",),
        "progress": (rf"^\s*Epoch {_EPOCH}: ?{_BAR}{_BAR_LOSS}",),
        "init": (r"^Initializing distributed: GLOBAL_RANK",),
    },
)
COLOSSALAI = _family(
    "colossalai",
    hints=("epoch", "step:"),
    lines={
        "checkpoint_save_end": (rf"^Saved checkpoint at epoch {_EPOCH} step {_STEP}",),
        "checkpoint_save_start": (r"^Start saving (?:final )?model checkpoint",),
        "progress": (rf"^\s*(?:Epoch {_EPOCH}(?:/\d+)?|Step): ?{_BAR}{_BAR_LOSS}",),
        "init": (r"Distributed environment is initialized",),
    },
)
DIFFUSERS = _family(
    "diffusers",
    hints=("steps:",),
    lines={
        "eval": (r"Running validation\.\.\.",),
        "checkpoint_save_end": (r"Saved state to ",),
        "checkpoint_save_start": (rf"Saving current state to .*?checkpoint-{_STEP}",),
        "progress": (rf"^\s*Steps: {_BAR}{_BAR_LOSS}",),
        "init": (
            r"\*{5} Running training \*{5}",
            r"Total optimization steps = (?P<total>[\d,]+)",
        ),
    },
)
DEEPSPEED = _family(
    "deepspeed",
    hints=("step=", "steps:"),
    lines={
        "end": (r"\[launch\.py:\d+:main\] Process \d+ exits successfully",),
        "checkpoint_save_end": (rf"Checkpoint global_step{_STEP} is ready now",),
        "checkpoint_save_start": (
            rf"\[Torch\] Checkpoint global_step{_STEP} is about to be saved",
            r"Saving model checkpoint: ",
        ),
        "progress": (
            rf"\[Rank \d+\] step={_STEP}, skipped=",
            rf"^steps: {_STEP} loss: {_LOSS}.* iter time \(s\): {_SECONDS}",
            rf"epoch={_EPOCH}/micro_step=\d+/global_step={_STEP}, RunningAvg",
        ),
        "compile": (r"^Emitting ninja build file", r"^Building extension module"),
        "init": (r"Initializing TorchBackend in DeepSpeed",),
    },
)
TORCHTITAN = _family(
    "torchtitan",
    hints=("step:",),
    lines={
        "end": (r"INFO - (?:Training completed|Process group destroyed)",),
        "eval": (rf"INFO - validate step: +{_STEP}  loss: +{_LOSS}",),
        "checkpoint_save_end": (
            r"INFO - (?:Finished (?:saving|staging) the checkpoint in|"
            r"Last step checkpoint completed)",
        ),
        "checkpoint_save_start": (
            r"INFO - (?:Saving|Staging) the checkpoint\.",
            r"Saving a (?:full|model only) checkpoint",
        ),
        "progress": (rf"INFO - step: +{_STEP}  loss: +{_LOSS}",),
        "compile": (r"Compiling each TransformerBlock with torch\.compile",),
        "init": (
            rf"Trainer is initialized with .*total steps {_TOTAL}",
            r"Training starts at step",
        ),
    },
)
TORCHTUNE = _family(
    "torchtune",
    hints=("loss:",),
    lines={
        "checkpoint_save_end": (r"Saving checkpoint took ",),
        "checkpoint_save_start": (r"Saving checkpoint\. This may take some time",),
        "progress": (
            rf"^\s*{_EPOCH}\|{_STEP}\|Loss: {_LOSS}:",
            rf"^Step {_STEP} \| loss:{_LOSS} ",
        ),
        "init": (r"Instantiating model and loading checkpoint took",),
    },
)
OPENRLHF = _family(
    "openrlhf",
    hints=("global step", "train step of"),
    lines={
        "eval": (r"Evaluation start time:", rf"Evaluation completed in .*?global_step {_STEP}"),
        "checkpoint_save_end": (r"Saved best checkpoint",),
        "progress": (rf"Global step {_STEP}: \{{", rf"^\s*Train step of epoch {_EPOCH}: {_BAR}"),
        "compile": (r"capturing cuda graph",),
    },
)
VERL = _family(
    "verl",
    hints=("step:", "training progress:"),
    lines={
        "end": (r"Final validation metrics",),
        "eval": (
            rf"^step:{_STEP} - (?!.*(?:actor/|critic/|train/))val(?:-\w+)?/(?:loss:{_LOSS})?",
            r"^test_gen_batch meta info",
            r"^validation generation end",
            r"Initial validation metrics",
        ),
        "checkpoint_save_end": (r"^Updated checkpoint tracker",),
        "checkpoint_save_start": (
            rf"^(?:local_global_step_folder|Saving checkpoint to): .*global_step_{_STEP}",
        ),
        "progress": (
            # NumPy 2 prints its numbers as np.float64(…).
            rf"^step:{_STEP} - (?=.*(?:actor/|critic/|train/))"
            rf"(?:.*?(?:actor/pg_loss|train/loss):(?:np\.float\d+\()?{_LOSS})?"
            rf"(?:.*?training/epoch:(?:np\.\w+\()?{_EPOCH})?"
            rf"(?:.*?timing_s/step:(?:np\.float\d+\()?{_SECONDS})?",
            rf"^\s*Training Progress: *{_BAR}",
        ),
        "compile": (r"capturing cuda graph",),
        "init": (rf"^Total training steps: {_TOTAL}", r"^Training from scratch"),
    },
)
PYTORCH_EXAMPLES = _family(
    "pytorch_examples",
    "pytorch_mnist",
    "pytorch_imagenet",
    hints=("epoch:",),
    lines={
        "eval": (
            rf"^Test set: Average loss: {_LOSS}",
            rf"^Test: \[ *{_STEP}/{_TOTAL}\]\tTime",
        ),
        "progress": (
            rf"^Train Epoch: {_EPOCH} \[{_STEP}/{_TOTAL} \( *\d+%\)\]\s+Loss: {_LOSS}",
            rf"^Epoch: \[ *{_EPOCH}\]\[ *{_STEP}/{_TOTAL}\]\s+Time +{_SECONDS}"
            rf"(?:.*?\bLoss +{_LOSS})?",
        ),
    },
)
DETECTRON2 = _family(
    "detectron2",
    hints=("iter:",),
    lines={
        "end": (r"Overall training speed: \d+ iterations",),
        "eval": (
            r"Start inference on \d+ batches",
            rf"Inference done {_STEP}/{_TOTAL}\.",
            r"Total inference time: ",
        ),
        "checkpoint_save_start": (r"Saving checkpoint to ",),
        "progress": (
            rf"(?:\]: |INFO: ) *(?:eta: \S+(?: days?, \S+)?  )?iter: {_STEP}  total_loss: {_LOSS}"
            rf"(?:.*?last_time: {_SECONDS})?",
        ),
        "init": (r"Starting training from iteration",),
    },
)
MMENGINE = _family(
    "mmengine",
    hints=("(train)",),
    lines={
        "eval": (rf"- (?:Epoch|Iter)\((?:val|test)\) +(?:\[ *{_EPOCH}\])?\[ *{_STEP}/{_TOTAL}\]",),
        "checkpoint_save_start": (
            rf"Saving checkpoint at {_STEP} iterations",
            rf"Saving checkpoint at {_EPOCH} epochs",
        ),
        "progress": (
            rf"- (?:Epoch\(train\) +\[ *{_EPOCH}\]|Iter\(train\) +)\[ *{_STEP}/{_TOTAL}\]"
            rf"(?:.*?  time: {_SECONDS})?(?:.*?  loss: {_LOSS})?",
        ),
        "compile": (r'Model has been "compiled"',),
        "init": (r"Checkpoints will be saved to",),
    },
)
FAIRSEQ = _family(
    "fairseq",
    hints=("train_inner",),
    lines={
        "end": (r"\bdone training in ",),
        "eval": (r'begin validation on "', r"valid on '\w+' subset \|"),
        "checkpoint_save_end": (r"(?:Finished saving|Saved) checkpoint ",),
        "checkpoint_save_start": (
            r"Preparing to save checkpoint for epoch",
            r"Saving checkpoint to ",
        ),
        "progress": (
            rf"\| train_inner \| epoch {_EPOCH}:.*?\bloss={_LOSS}.*?\bnum_updates={_STEP}\b",
        ),
        "init": (r"begin training epoch",),
    },
)
TIMM = _family(
    "timm",
    hints=("train:",),
    lines={
        "end": (r"^\*\*\* Best metric: ",),
        "eval": (rf"(?:^|- )Test(?: \(EMA\))?: \[ *{_STEP}/{_TOTAL}\]  Time:.*?Loss: +{_LOSS}",),
        "checkpoint_save_end": (r"^ \('.*checkpoint-\d+\.pth\.tar'",),
        "progress": (
            rf"(?:^|- )Train: {_EPOCH} \[ *{_STEP}/{_TOTAL} \( *\d+%\)\]"
            rf"  Loss: +{_LOSS} .*?Time: {_SECONDS}s",
        ),
        "init": (r"^Scheduled epochs: ",),
    },
)
NANOGPT = _family(
    "nanogpt",
    hints=("iter ",),
    lines={
        "eval": (rf"^step {_STEP}: train loss {_FLOAT}, val loss {_LOSS}",),
        "checkpoint_save_start": (r"^saving checkpoint to ",),
        "progress": (rf"^iter {_STEP}: loss {_LOSS}, time {_MS}ms",),
        "compile": (r"^compiling the model\.\.\.",),
        "init": (r"^(?:Initializing|Resuming training) ",),
    },
)
LITGPT = _family(
    "litgpt",
    hints=("| iter ",),
    lines={
        "end": (r"^\| Performance",),
        "eval": (r"^Validating \.\.\.", rf"^iter {_STEP}: val loss {_LOSS}"),
        "checkpoint_save_start": (rf"^Saving checkpoint to .*step-{_STEP}/",),
        "progress": (
            rf"^Epoch {_EPOCH} \| iter \d+ step {_STEP} \| loss train: {_LOSS},"
            rf"(?:.*?iter time: {_MS} ms)?",
        ),
        "init": (r"^Verifying settings \.\.\.",),
    },
)
ULTRALYTICS = _family(
    "ultralytics",
    "yolo",
    hints=("% ",),
    lines={
        "end": (r"\b\d{1,7} epochs completed in", r"^Optimizer stripped from"),
        "eval": (rf"^\s*Class +Images +Instances .*?\d+% \S+ {_STEP}/{_TOTAL} ",),
        "progress": (rf"^\s*{_EPOCH}/\d+ +\d\S*[GM]\b.*?: +\d+% .*? {_STEP}/{_TOTAL} ",),
        "init": (r"^Starting training for \d+ epochs",),
    },
)
KERAS = _family(
    "keras",
    hints=("/step",),
    lines={
        "checkpoint_save_start": (rf"^Epoch {_EPOCH}: saving model to ",),
        "progress": (
            rf"^ *{_STEP}/(?P<total>\d+|Unknown) (?:[━ ]+ )?(?:- )?\S+ (?:- )?\d+\S*/step"
            rf"(?:.*? - loss: {_LOSS})?",
        ),
        "compile": (r"Compiled cluster using XLA",),
        "init": (rf"^Epoch {_EPOCH}/\d+$",),
    },
)
PADDLE = _family(
    "paddle",
    "paddleformers",
    "paddlenlp",
    hints=("global_step:", "trainprocess"),
    lines={
        "end": (r"Training completed\.",),
        "eval": (r"\*{5} Running Evaluation \*{5}", rf"\beval_loss: {_LOSS},"),
        "checkpoint_save_start": (rf"Saving model checkpoint to .*?checkpoint-{_STEP}",),
        "progress": (
            rf"- loss: {_LOSS}, learning_rate: .*?global_step: {_STEP},"
            rf"(?:.*?interval_runtime: {_SECONDS})?"
            rf"(?:.*?\b(?:progress_or_epoch|epoch): (?P<epoch>{_FLOAT}))?",
            rf"^\s*TrainProcess: *{_BAR}",
        ),
        "init": (r"\*{5} Running training \*{5}",),
    },
)
MAXTEXT = _family(
    "maxtext",
    hints=("completed",),
    lines={
        "eval": (
            rf"Starting eval after train step {_STEP}",
            rf"Completed eval step: {_STEP}, .*?running loss={_LOSS}",
            rf"Completed eval after train step {_STEP}, loss={_LOSS}",
        ),
        "checkpoint_save_end": (rf"Saved a checkpoint at step {_STEP}",),
        "checkpoint_save_start": (
            rf"Started an asynchronous checkpoint save for step {_STEP}",
            rf"Waiting for step {_STEP} to finish before checkpoint",
        ),
        "progress": (
            r"(?:^|\] )(?:\[Rampup Batch Size Phase\], )?"
            rf"completed (?:profiler activation/deactivation )?step: {_STEP}"
            rf"(?:, seconds: {_SECONDS})?.*?, loss: {_LOSS}",
        ),
        "compile": (r"Total memory size: .* GB, Output size",),
        "init": (r"Attempting to initialize the jax distributed system",),
    },
)
XTUNER = _family(
    "xtuner",
    hints=("step",),
    lines={
        "checkpoint_save_end": (r"\[DCP (?:async_)?save for ",),
        "checkpoint_save_start": (r"\[DCP Collect Model State Dict\]",),
        "progress": (
            rf"\] Epoch {_EPOCH} Step {_STEP}/{_TOTAL} data_time: .*? time: {_SECONDS} "
            rf".*?\bloss: {_LOSS}",
            rf"\] Train step {_STEP}/{_TOTAL} start",
        ),
        "init": (
            r"\[Build Datasets\]",
            r"No checkpoint to resume from",
            r"Resume from checkpoint:",
        ),
    },
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
    rf"(?=[gctis])(?<![\w/.-]){_NO_COUNT}{_WORD}\b[\"']?\s*[:=]?\s*[\[(]?\s*{_STEP}(?![\w%]|\.\d|:\d|/s)"
    rf"(?:\s*(?:/|of)\s*{_TOTAL})?"
)
_EPOCH_WORD = r"(?:(?<![\w/.-])epoch\b[\"']?\s*[:=]?\s*[\[(]?\s*(?P<epoch>\d+(?:\.\d+)?).{0,60}?)?"
_LOSS_WORD = rf"(?:.*?\bloss\b[\"']?\s*[:=]?\s*{_LOSS})?"
STEP = _family(
    "step",
    hints=("step", "iter"),
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
FAMILIES: tuple[Family, ...] = (*SPECIFIC, HF, STEP)

# Any bar. What stands before the percentage is its description.
TQDM_BAR = re.compile(rf"(?i)^(?P<about>[^|]*?){_BAR}{_BAR_LOSS}")
# Bars that never count training steps, by description or by unit.
TQDM_OTHER = re.compile(
    r"(?i)\b(?:load|map|download|fetch|filter|token|convert|generat|sanity|valid|eval|test|resolv|"
    r"extract|sav|group|pack|captur|predict|infer|upload|cach|flatten|creat|comput|check)\w*"
    r"|examples?/s|[kMGT]i?B/s|\dB/s"
)
