"""The README's examples work as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from whyhang.engine.cli.main import COMMANDS
from whyhang.rules.load import check_files

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_every_hang_yaml_is_right(block: str, tmp_path: Path) -> None:
    """Each hang.yaml that is shown passes the check without a finding."""
    path = tmp_path / "hang.yaml"
    path.write_text(block)
    assert check_files([path]) == ()


def test_every_command_is_listed() -> None:
    """The table of commands names all that there are, and none that there is not."""
    table = README.partition("## Commands")[2].partition("Exit codes")[0]
    first_cells = " ".join(line.split("|")[1] for line in table.splitlines() if line.count("|") > 2)
    assert set(re.findall(r"[a-z]+", first_cells)) >= set(COMMANDS)
    named = re.findall(r"`whyhang ([a-z]+)", table)
    assert set(named) <= set(COMMANDS)


def test_ci_runs_the_test_command_of_the_readme() -> None:
    """The command that CI extracts stands in the README, once."""
    commands = re.findall(r"^python -m pip install -e .*pytest$", README, re.MULTILINE)
    assert len(commands) == 1
