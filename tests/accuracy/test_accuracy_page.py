"""``docs/accuracy.md``: its table is what the command prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.accuracy.__main__ import CASES, answer_all
from tests.accuracy.questions import find_questions
from tests.accuracy.table import markdown

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
BEGIN, END = "<!-- begin accuracy -->\n", "<!-- end accuracy -->\n"


def test_the_table_is_up_to_date(pytestconfig: pytest.Config) -> None:
    """What stands between the markers is what the rules reach; --snapshot-update writes it."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    lines = "\n".join(markdown(tuple(answer_all(find_questions([CASES])))))
    filled = f"{before}{BEGIN}\n{lines}\n\n{END}{after}"
    if pytestconfig.getoption("update_snapshots"):
        PAGE.write_text(filled, encoding="utf-8")
        text = filled
    assert text == filled
