"""The pages for people: their links lead somewhere, and what they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from whyhang.engine.cli.schema import SCHEMAS

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
ENTRIES = ("README.md", "ARCHITECTURE.md")


def _links(page: Path) -> set[Path]:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text())
    return {(page.parent / target).resolve() for target in targets}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    """Each relative link of a page names a file that is there."""
    assert [str(target) for target in _links(page) if not target.exists()] == []


def test_every_page_is_found() -> None:
    """A reader comes to each page of docs from the README or the architecture."""
    linked = {target for name in ENTRIES for target in _links(ROOT / name)}
    assert set((ROOT / "docs").glob("*.md")) <= linked


def test_the_architecture_names_what_exists() -> None:
    """Each file that the architecture names is there, wherever it gives no folder."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    names = set(re.findall(r"[\w/]+\.(?:py|lark|md|yaml|toml)\b", text))
    assert "engine/watcher.py" in names
    missing = [name for name in names if not any(ROOT.glob(name)) and not _somewhere(name)]
    assert missing == []


def _somewhere(name: str) -> bool:
    return "/" not in name and any(
        any((ROOT / room).rglob(name)) for room in ("schemas", "rules", "collectors", "engine")
    )


def test_every_schema_has_a_file_and_a_word() -> None:
    """The page on incidents names the option that prints each schema of an incident's files."""
    assert {path.name for path in (ROOT / "schemas").glob("*.json")} == set(SCHEMAS.values())
    page = (ROOT / "docs/incidents.md").read_text()
    for name in SCHEMAS:
        option = f"whyhang schema --{name.replace('_', '-')}"
        assert name.startswith("hang") or option in page, name
