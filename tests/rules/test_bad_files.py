"""Bad files: each stands in ``bad/`` with the diagnostics that it must get beside it.

``pytest --snapshot-update`` writes the diagnostics anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from whyhang.rules.codes import CODES
from whyhang.rules.findings import format_findings
from whyhang.rules.load import check_files

BAD = Path(__file__).parent / "bad"
FILES = sorted(BAD.glob("*.yaml"))


def diagnostics(path: Path) -> str:
    """What ``whyhang check`` says of a file, without the directory."""
    text = "\n".join(format_findings(check_files([path])))
    return text.replace(f"{BAD}/", "") + "\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_bad_file_gets_its_diagnostics(path: Path, pytestconfig: pytest.Config) -> None:
    """Code, message, position and remedy are exactly those of the text beside the file."""
    expected = path.with_suffix(".txt")
    found = diagnostics(path)
    if pytestconfig.getoption("update_snapshots"):
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")


def test_every_code_has_a_bad_file() -> None:
    """The table is complete: there is no code that no file shows."""
    shown = "".join(path.with_suffix(".txt").read_text(encoding="utf-8") for path in FILES)
    assert len(FILES) >= 60
    codes = [each.code for each in CODES if not each.code.startswith("H5")]  # those of tests
    assert [code for code in codes if f"[{code}]" not in shown] == []
