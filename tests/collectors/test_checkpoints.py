"""The newest checkpoint below a directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from whyhang.collectors.checkpoints import newest_checkpoint, step_in
from whyhang.schemas.checkpoint import Checkpoint
from whyhang.schemas.missing import Missing

NOW = 2_000_000_000.0


def write(path: Path, age: float) -> None:
    """A file of this age, and its directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("weights")
    os.utime(path, (NOW - age,) * 2)
    for parent in path.parents[:2]:
        os.utime(parent, (NOW - 1e6,) * 2)


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("global_step100", 100),
        ("checkpoint-100", 100),
        ("iter_0000100", 100),
        ("step-100", 100),
        ("epoch=3-step=900.ckpt", 900),
        ("model_0004999.pth", 4999),
        ("ckpt_7", 7),
        ("1200", 1200),
        ("epoch_12", None),
        ("checkpoint_epoch_3.pt", None),
        ("last.ckpt", None),
        ("model_world_size_8_rank_0.pt", None),
        ("step_" + "9" * 400, None),
    ],
)
def test_steps_in_names(name: str, step: int | None) -> None:
    """Each framework's way of naming; an epoch is no step."""
    assert step_in(name) == step


def test_the_newest_by_its_files(tmp_path: Path) -> None:
    """A directory is as new as what was written into it, whatever its own time says."""
    write(tmp_path / "global_step1000" / "a.pt", 100.0)
    write(tmp_path / "global_step1200" / "a.pt", 60.0)
    write(tmp_path / "global_step900" / "a.pt", 500.0)
    found = newest_checkpoint(tmp_path, NOW)
    assert found == Checkpoint(name="global_step1200", step=1200, age_seconds=60.0)


def test_one_directory_deeper(tmp_path: Path) -> None:
    """`ckpt/run-a/step-5` is found, what is being written under another name is not."""
    write(tmp_path / "run-a" / "step-5" / "a.pt", 300.0)
    write(tmp_path / "run-a" / "step-6.tmp" / "a.pt", 10.0)
    found = newest_checkpoint(tmp_path, NOW)
    assert isinstance(found, Checkpoint)
    assert (found.name, found.step) == ("step-5", 5)


def test_age_without_a_step(tmp_path: Path) -> None:
    """A name without a step still has an age; a clock that is ahead gives none below zero."""
    write(tmp_path / "last.ckpt", -50.0)
    assert newest_checkpoint(tmp_path, NOW) == Checkpoint(name="last.ckpt", age_seconds=0.0)


def test_what_cannot_be_found_is_missing(tmp_path: Path) -> None:
    """An empty directory and none at all have their reasons; logs are no checkpoints."""
    write(tmp_path / "train.log", 5.0)
    assert newest_checkpoint(tmp_path, NOW) == Missing(f"{tmp_path}: no checkpoint was found")
    gone = newest_checkpoint(tmp_path / "gone", NOW)
    assert isinstance(gone, Missing)
    assert "No such file" in gone.reason
