"""Frameworks for language models; patterns as in :mod:`whyhang.collectors.preset_family`."""

from __future__ import annotations

from whyhang.collectors.preset_family import (
    BAR,
    BAR_LOSS,
    EPOCH,
    FLOAT,
    LOSS,
    MS,
    SECONDS,
    STEP,
    TOTAL,
    family,
)

MEGATRON = family(
    "megatron",
    "flagscale",
    "mindspeed",
    "nvrx",
    "nvrx_ft",
    hints=("iteration",),
    lines={
        "end": (
            rf"^\[exiting program (?:at iteration {STEP}|after)",
            r"^\[after training is done\]",
        ),
        "eval": (
            rf"^ validation\S* loss at iteration {STEP}(?: on \w+ set)? \| lm loss value: {LOSS}",
            rf"^ ?validation results at iteration {STEP} \| lm_loss value: {LOSS}",  # GPT-NeoX
            rf"^Evaluating (?:on \d+ samples|iter {STEP}/{TOTAL})",
        ),
        "checkpoint_save_end": (
            rf"successfully saved checkpoint (?:from|at) iteration +{STEP} to ",
        ),
        "checkpoint_save_start": (rf"saving checkpoint at iteration +{STEP} to ",),
        "progress": (
            rf"(?:^|[\s\]>])iteration +{STEP}/ *{TOTAL} \|"
            rf".*?elapsed time per iteration \(ms\): +{MS}\b"
            rf"(?:.*?\b(?:lm|policy) loss: +{LOSS}\b)?",
            # Megatron-DeepSpeed tells seconds.
            rf"(?:^|[\s\]>])iteration +{STEP}/ *{TOTAL} \|"
            rf".*?elapsed time per iteration \(s\): +{SECONDS}\b(?:.*?\blm loss: +{LOSS}\b)?",
            # The FSDP2 trainers of MindSpeed.
            rf"(?:^|[\s\]>])iteration:? +{STEP}(?:/ *{TOTAL})? \| *consumed ",
            rf"(?:^|[\s\]>])iteration: +{STEP} \|(?:.*?\bloss: +{LOSS})?",
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
NEMO = family(
    "nemo",
    hints=("training epoch",),
    lines={
        "end": (r"^`Trainer\.fit` stopped",),
        "eval": (rf"\b(?:Sanity checking )?Validation: iteration {STEP}/{TOTAL}",),
        "checkpoint_save_end": (rf"Successfully saved checkpoint from iteration +{STEP}",),
        "checkpoint_save_start": (rf"Global Checkpoint Save : Rank: \d+ : Iteration: {STEP}",),
        "progress": (
            rf"Training epoch {EPOCH}, iteration {STEP}/{TOTAL} \|"
            rf"(?:.*?\breduced_train_loss: {LOSS})?"
            rf"(?:.*?\btrain_step_timing in s: {SECONDS})?",
        ),
    },
)
COLOSSALAI = family(
    "colossalai",
    hints=("epoch", "step:"),
    lines={
        "checkpoint_save_end": (rf"^Saved checkpoint at epoch {EPOCH} step {STEP}",),
        "checkpoint_save_start": (r"^Start saving (?:final )?model checkpoint",),
        "progress": (rf"^\s*(?:Epoch {EPOCH}(?:/\d+)?|Step):{BAR}{BAR_LOSS}",),
        "init": (r"Distributed environment is initialized",),
    },
)
DEEPSPEED = family(
    "deepspeed",
    hints=("step=", "steps:"),
    lines={
        "end": (r"\[launch\.py:\d+:main\] Process \d+ exits successfully",),
        "checkpoint_save_end": (rf"Checkpoint global_step{STEP} is ready now",),
        "checkpoint_save_start": (
            rf"\[Torch\] Checkpoint global_step{STEP} is about to be saved",
            r"Saving model checkpoint: ",
        ),
        "progress": (
            rf"\[Rank \d+\] step={STEP}, skipped=",
            rf"^steps: {STEP} loss: {LOSS}.* iter time \(s\): {SECONDS}",
            rf"epoch={EPOCH}/micro_step=\d+/global_step={STEP}, RunningAvg",
        ),
        "compile": (r"^Emitting ninja build file", r"^Building extension module"),
        "init": (r"Initializing TorchBackend in DeepSpeed",),
    },
)
TORCHTITAN = family(
    "torchtitan",
    hints=("step:",),
    lines={
        "end": (r"INFO - (?:Training completed|Process group destroyed)",),
        "eval": (rf"INFO - validate step: +{STEP}  loss: +{LOSS}",),
        "checkpoint_save_end": (
            r"INFO - (?:Finished (?:saving|staging) the checkpoint\b|"
            r"Last step checkpoint completed)",
        ),
        "checkpoint_save_start": (
            r"INFO - (?:Saving|Staging) the checkpoint(?:\.| \(or staging)",
            r"Saving a (?:full|model only) checkpoint",
        ),
        "progress": (rf"INFO - step: +{STEP}  loss: +{LOSS}",),
        "compile": (r"Compiling each TransformerBlock with torch\.compile",),
        "init": (
            rf"Trainer is initialized with .*total steps {TOTAL}",
            r"Training starts at step",
        ),
    },
)
TORCHTUNE = family(
    "torchtune",
    hints=("loss:",),
    lines={
        "checkpoint_save_end": (r"Saving checkpoint took ",),
        "checkpoint_save_start": (r"Saving checkpoint\. This may take some time",),
        "progress": (
            rf"^\s*{EPOCH}\|{STEP}\|Loss: {LOSS}:",
            rf"^Step {STEP} \| loss:{LOSS} ",
        ),
        "init": (r"Instantiating model and loading checkpoint took",),
    },
)
OPENRLHF = family(
    "openrlhf",
    hints=("global step", "train step of"),
    lines={
        "eval": (r"Evaluation start time:", rf"Evaluation completed in .*?global_step {STEP}"),
        "checkpoint_save_end": (r"Saved best checkpoint",),
        "progress": (rf"Global step {STEP}: \{{", rf"^\s*Train step of epoch {EPOCH}: {BAR}"),
        "compile": (r"[Cc]apturing (?:CUDA|cuda) graph",),
    },
)
VERL = family(
    "verl",
    hints=("step:", "training progress:"),
    lines={
        "end": (r"Final validation metrics",),
        "eval": (
            rf"^step:{STEP} - (?!.*(?:actor/|critic/|train/))val(?:-\w+)?/(?:loss:{LOSS})?",
            r"^test_gen_batch meta info",
            r"^validation generation end",
            r"Initial validation metrics",
        ),
        "checkpoint_save_end": (r"^Updated checkpoint tracker",),
        "checkpoint_save_start": (
            rf"^(?:local_global_step_folder|Saving checkpoint to): .*global_step_{STEP}",
        ),
        "progress": (
            # NumPy 2 prints its numbers as np.float64(…).
            rf"^step:{STEP} - (?=.*(?:actor/|critic/|train/))"
            rf"(?:.*?(?:actor/pg_loss|train/loss):(?:np\.float\d+\()?{LOSS})?"
            rf"(?:.*?training/epoch:(?:np\.\w+\()?{EPOCH})?"
            rf"(?:.*?timing_s/step:(?:np\.float\d+\()?{SECONDS})?",
            rf"^\s*Training Progress:{BAR}",
        ),
        "compile": (r"[Cc]apturing (?:CUDA|cuda) graph",),
        "init": (rf"^Total training steps: {TOTAL}", r"^Training from scratch"),
    },
)
# Hydra, where it sets the logs up, writes names in brackets.
_TRAIN_INNER = r"\btrain_inner(?: \||\]\[INFO\] -)"
FAIRSEQ = family(
    "fairseq",
    hints=("train_inner",),
    lines={
        "end": (r"\bdone training in ",),
        "eval": (
            r'begin validation on "',
            r"valid on '\w+' subset \|",
            rf'\| valid \| \{{"epoch": {EPOCH}, "valid_loss": "{LOSS}"',
        ),
        "checkpoint_save_end": (r"(?:Finished saving|Saved) checkpoint ",),
        "checkpoint_save_start": (
            r"Preparing to save checkpoint for epoch",
            r"Saving checkpoint to ",
        ),
        "progress": (
            rf"{_TRAIN_INNER} epoch {EPOCH}:.*?\bloss={LOSS}.*?\bnum_updates={STEP}\b",
            rf'{_TRAIN_INNER} \{{"epoch": {EPOCH},.*?"loss": "{LOSS}".*?"num_updates": "{STEP}"',
        ),
        "init": (r"begin training epoch",),
    },
)
COMPOSER = family(
    "composer",
    "llm_foundry",
    hints=("[batch=", "[token=", "[sample=", "[epoch="),
    lines={
        "eval": (rf"\[Eval batch={STEP}(?:/{TOTAL})?\] Eval on ",),
        "checkpoint_save_start": (r"checkpoint_saver: Saving checkpoint to ",),
        "progress": (
            rf"^(?:\[epoch={EPOCH}\])?\[(?:batch|token|sample|iteration)={STEP}(?:/{TOTAL})?\]:",
        ),
        "init": (r"composer\.trainer\.trainer: Starting training",),
    },
)
NANOGPT = family(
    "nanogpt",
    hints=("iter ",),
    lines={
        "eval": (rf"^step {STEP}: train loss {FLOAT}, val loss {LOSS}",),
        "checkpoint_save_start": (r"^saving checkpoint to ",),
        "progress": (rf"^iter {STEP}: loss {LOSS}, time {MS}ms",),
        "compile": (r"^compiling the model\.\.\.",),
        "init": (
            r"^Initializing ",
            r"^Resuming training ",
        ),
    },
)
LITGPT = family(
    "litgpt",
    hints=("| iter ",),
    lines={
        "end": (r"^\| Performance",),
        "eval": (r"^Validating \.\.\.", rf"^iter {STEP}: val loss {LOSS}"),
        "checkpoint_save_start": (rf"^Saving checkpoint to .*step-{STEP}/",),
        "progress": (
            rf"^Epoch {EPOCH} \| iter \d+ step {STEP} \| loss train: {LOSS},"
            rf"(?:.*?iter time: {MS} ms)?",
        ),
        "init": (r"^Verifying settings \.\.\.",),
    },
)
_NAMED_EPOCH = rf"(?:.*?\b(?:progress_or_epoch|epoch): (?P<epoch>{FLOAT}))?"
PADDLE = family(
    "paddle",
    "paddleformers",
    "paddlenlp",
    hints=("global_step:", "trainprocess"),
    lines={
        "end": (r"Training completed\.",),
        "eval": (r"\*{5} Running Evaluation \*{5}", rf"\beval_loss: {LOSS},{_NAMED_EPOCH}"),
        "checkpoint_save_start": (rf"Saving model checkpoint to .*?checkpoint-{STEP}",),
        "progress": (
            rf"- loss: {LOSS}, learning_rate: .*?global_step: {STEP},"
            rf"(?:.*?interval_runtime: {SECONDS})?"
            rf"{_NAMED_EPOCH}",
            rf"^\s*TrainProcess:{BAR}",
        ),
        "init": (r"\*{5} Running training \*{5}",),
    },
)
MAXTEXT = family(
    "maxtext",
    hints=("completed",),
    lines={
        "eval": (
            rf"Starting eval after train step {STEP}",
            rf"Completed eval step: {STEP}, .*?running loss={LOSS}",
            rf"Completed eval after train step {STEP}, loss={LOSS}",
        ),
        "checkpoint_save_end": (rf"Saved a checkpoint at step {STEP}",),
        "checkpoint_save_start": (
            rf"Started an asynchronous checkpoint save for step {STEP}",
            rf"Waiting for step {STEP} to finish before checkpoint",
        ),
        "progress": (
            r"(?:^|\] )(?:\[Rampup Batch Size Phase\], )?"
            rf"completed (?:profiler activation/deactivation )?step: {STEP}"
            rf"(?:, seconds: {SECONDS})?.*?, loss: {LOSS}",
        ),
        "compile": (r"Total memory size: .* GB, Output size",),
        "init": (r"Attempting to initialize the jax distributed system",),
    },
)
XTUNER = family(
    "xtuner",
    hints=("step",),
    lines={
        "checkpoint_save_end": (r"\[DCP (?:async_)?save for ",),
        "checkpoint_save_start": (r"\[DCP Collect Model State Dict\]",),
        "progress": (
            rf"\] Epoch {EPOCH} Step {STEP}/{TOTAL} data_time: .*? time: {SECONDS} "
            rf".*?\bloss: {LOSS}",
            rf"\] Train step {STEP}/{TOTAL} start",
        ),
        "init": (
            r"\[Build Datasets\]",
            r"No checkpoint to resume from",
            r"Resume from checkpoint:",
        ),
    },
)
