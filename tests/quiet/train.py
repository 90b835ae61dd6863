"""A healthy job that goes from one situation to the next, round after round, until it is ended.

``DIR/order`` names the situations, one a line; ``DIR/situations`` those that have begun so far.
"""

# PyTorch need not be installed where types are checked.
# mypy: disable-error-code="import-not-found"
# mypy: no-warn-unused-ignores

from __future__ import annotations

from itertools import count

from torch import distributed

from tests.lab import train
from tests.quiet.names import ORDER, SO_FAR
from tests.quiet.situations import SITUATIONS, Busy


def go_through(trainer: train.Trainer) -> None:
    """All situations in their order, again and again."""
    busy = Busy(trainer)
    names = (busy.directory / ORDER).read_text().splitlines()
    for busy.round in count():
        for name in names:
            distributed.barrier()
            if busy.rank == 0:
                with (busy.directory / SO_FAR).open("a") as file:
                    file.write(f"{name}\n")
            SITUATIONS[name](busy)


if __name__ == "__main__":
    train.main(go_through)
