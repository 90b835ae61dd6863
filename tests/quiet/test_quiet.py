"""A real healthy job, looked at now: no hang."""

from __future__ import annotations

import random

import pytest

from tests.lab.machine import why_not
from tests.quiet.__main__ import main
from tests.quiet.names import SITUATIONS


@pytest.mark.lab
@pytest.mark.timeout(600)
@pytest.mark.skipif(why_not(["torch"]) is not None, reason="PyTorch is not installed")
def test_three_random_looks_see_no_hang(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the job does just then, no view of it is a hang; the seed repeats the moments."""
    from tests.quiet import situations

    assert tuple(situations.SITUATIONS) == SITUATIONS
    seed = random.randrange(1_000_000)
    status = main(["--moments", "3", "--interval", "3s", "--seed", str(seed)])
    told = capsys.readouterr().out
    assert status == 0, f"seed {seed}\n{told}"
    assert "0 of 3 looks saw a hang" in told


def test_a_wrong_situation_is_refused() -> None:
    """A name that is none ends the command at once."""
    with pytest.raises(SystemExit, match="2"):
        main(["sleeping beauty"])
