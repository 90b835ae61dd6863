"""What the job and those who look at it must both know; needs no PyTorch."""

# Files of the job's directory: which situations are wanted, and which have begun.
ORDER = "order"
SO_FAR = "situations"
# Before the first of them.
STARTING = "start"

SITUATIONS = (
    "steady training",
    "epoch change",
    "evaluation",
    "checkpoint",
    "retried exception",
    "straggler",
    "compilation",
    "long steps",
    "index building",
    "background checkpoint",
    "gradient accumulation",
)

# Their work shows, however long the log is silent.
VISIBLE = ("evaluation", "checkpoint", "compilation", "background checkpoint", "epoch change")
