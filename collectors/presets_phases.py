"""What loops of all kinds print about their phases, and loops that count epochs alone; patterns as
in :mod:`whyhang.collectors.preset_family`.
"""

from __future__ import annotations

from dataclasses import replace

from whyhang.collectors.preset_family import LOSS, STEP, TOTAL, Family, family, in_order

# Where a message begins: behind what the logger has put before it.
_HEAD = r"(?:^|[\]:>*|▶] |- |\t)"
# A score that stands alone; others stand in a line of progress.
_ALONE = r"(?:^|[\]>] |[A-Z] - |\t)"
_BEGUN = r"\b(?:[Rr]unning|[Ss]tart(?:ing|ed)?|[Bb]egin(?:ning)?|[Cc]omputing) (?:the |\w+ )?"
# `Training finished iteration 3` ends nothing.
_NOT_A_PART = r"(?! (?:it|iteration|epoch|step|batch|phase|stage)\b)"
_DONE = r"(?:[Cc]ompleted?|[Ff]inished|[Dd]one|[Oo]ver|[Ee]nded)\b"
_WHAT = r"(?:checkpoints?|ckpts?|models?|weights|states?|snapshot)\b"
_AT_STEP = rf"(?:.{{0,80}}?\b(?:step|iteration)[-_ =:]{{1,2}}{STEP}\b)?"
_SCORE = rf"(?:loss|acc(?:uracy)?|perplexity|ppl|bpb)\b\W{{1,3}}{LOSS}"
PHASES = family(
    "phases",
    hints=(),
    lines={
        "end": (
            rf"\b[Tt]raining (?:is |has |was |of experiment is )?{_DONE}{_NOT_A_PART}",
            rf"\b[Tt]rainer (?:is |has )?{_DONE}{_NOT_A_PART}",
            rf"\b(?:[Ee]nd of|[Ff]inished|[Cc]ompleted) [Tt]raining\b{_NOT_A_PART}",
            r"\bOverall training speed: \d",
            r"\bTraining time:? \d+[:.]",
            r"(?:^|\] )Done!$",
        ),
        "eval": (
            rf"{_BEGUN}validati",
            rf"{_BEGUN}evaluati",
            rf"{_BEGUN}inference on ",
            rf"\b[Ee]nd of epoch .{{0,80}}?\bvalid loss\W{{1,3}}{LOSS}",
            rf"{_HEAD}Validating\b(?!.*%\|)",
            rf"{_HEAD}Evaluating\b(?!.*%\|)",
            rf"\bInference done {STEP}/{TOTAL}\.",
            rf"{_ALONE}[Vv]alidation (?:[Rr]esults\b|{_SCORE})",
            rf"{_ALONE}(?:[Vv]al|[Ee]val|[Dd]ev|[Tt]est)[_ ]loss\b\W{{1,3}}{LOSS}",
            rf"(?:{_ALONE}|\d )(?:DEV|TEST|[Dd]ev|[Tt]est|[Vv]al) ?: loss:? {LOSS}",
        ),
        "checkpoint_save_end": (
            rf"\b[Ss]aved (?:\S+ ){{0,3}}?{_WHAT}{_AT_STEP}",
            rf"\b[Cc]heckpoint (?:(?:at|for|of) step {STEP} )?(?:\S+ ){{0,3}}?saved\b",
            r"\b(?:[Mm]odel|[Ww]eights|[Ss]tate) (?:\S+ ){0,3}?saved\b",
        ),
        "checkpoint_save_start": (
            rf"\b[Ss]aving (?:\S+ ){{0,3}}?{_WHAT}{_AT_STEP}",
            r"\bSaving to: ",
            rf"\b[Ww]riting (?:the )?{_WHAT} to ",
            rf"\b[Ss]ave (?:the )?{_WHAT} to ",
        ),
    },
)


def with_phases(loop: Family) -> Family:
    """The family, which also reads what every loop may print about its phases."""
    if loop.literals is None or PHASES.literals is None:
        return loop
    return replace(
        loop,
        literals=tuple(dict.fromkeys((*loop.literals, *PHASES.literals))),
        patterns=in_order((*loop.patterns, *PHASES.patterns)),
    )


_METRIC = r"(?:loss|acc|accuracy|perplexity|ppl|auc|f1|error|reward|[rm]?mse|mae)"
# The weakest of all: loops that print one line an epoch and no steps.
EPOCHS = with_phases(
    family(
        "epoch",
        hints=("epoch",),
        ignored=r"%\||[a-z]Warning: ",
        lines={
            "eval": (r"^\W*(?:[Ee]val|[Vv]al|[Tt]est)\w*\b.*?[Ee]poch\b\W{0,4}(?P<epoch>\d+)",),
            "progress": (
                rf"(?<![\w/.-])[Ee]poch\b[\"']?\W{{0,4}}(?P<epoch>\d+)(?![\w%.])"
                rf"(?=.{{0,300}}?(?i:(?<![a-z])(?:[a-z]{{2,9}}_)?{_METRIC}\b\W{{1,4}}[-+]?\d))"
                rf"(?:.*?(?<![a-z])(?:(?:train(?:ing)?|avg|total)_)?[Ll]oss\b\W{{1,4}}{LOSS})?",
                r"={2,5}> Epoch: (?P<epoch>\d+)(?:, cost |$)",
                r"^[|│]\s{1,60}[Ee]poch\s{1,60}[|│]\s{1,60}(?P<epoch>\d+)\s{1,60}[|│]",
                r"\bfps step: .{0,200}\bepoch: (?P<epoch>\d+)/\d+ frames: ",  # RL Games
            ),
        },
    )
)
