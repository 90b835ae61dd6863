"""Damaged files, some two hundred; ``python tests/rules/fuzz.py 10000`` tries more."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def test_damaged_files_end_in_findings() -> None:
    """Whatever is done to a file, checking it ends in findings and formatting it is safe."""
    spec = spec_from_file_location("fuzz", Path(__file__).parent / "fuzz.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    outcomes = module.fuzz(200, 7)
    assert sum(outcomes.values()) == 200
    assert {"findings", "formatted"} <= set(outcomes)
