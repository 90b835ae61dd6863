"""What other tools are told of whyhang: pre-commit hooks and the GitHub workflow."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from whyhang.engine.cli.main import build_parser

ROOT = Path(__file__).parents[2]


def commands() -> list[list[str]]:
    """The calls of whyhang in the hooks and the workflow, with their arguments."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    calls = [f"{hook['entry']} hang.yaml" for hook in hooks]
    workflow = yaml.safe_load((ROOT / "docs" / "examples" / "whyhang.yml").read_text())
    for step in workflow["jobs"]["rules"]["steps"]:
        calls += re.findall(r"^whyhang [^>|\n]*", step.get("run", ""), re.MULTILINE)
    return [shlex.split(call)[1:] for call in calls]


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_the_calls_are_real(arguments: list[str]) -> None:
    """Every call that others copy is one that the command line takes."""
    assert build_parser(arguments[0]).parse_args(arguments).command == arguments[0]


def test_the_workflow_checks_tests_and_compares() -> None:
    """The example does all that it promises."""
    assert {"check", "fmt", "test", "diff"} <= {arguments[0] for arguments in commands()}
