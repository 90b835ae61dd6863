"""The table of fields."""

from __future__ import annotations

import pytest

from whyhang.rules.fields import EVENT_KINDS, FIELDS, GROUPS_IN_SCOPE, SCOPES
from whyhang.rules.grammar import keywords
from whyhang.rules.parse import parse_expr


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_can_be_written_and_says_what_it_is(name: str) -> None:
    """A field's name parses, is no keyword, and has a scope and a text."""
    parse_expr(f"{name} is known")
    field = FIELDS[name]
    assert name not in keywords()
    assert field.name == name
    assert field.doc and field.scopes
    assert set(field.scopes) <= set(SCOPES)


def test_what_the_log_and_job_say_can_be_asked_everywhere() -> None:
    """Fields of the job have a meaning in a condition about a rank as well."""
    for name, field in FIELDS.items():
        if name.split(".")[0] in ("log", "job"):
            assert field.scopes == SCOPES


def test_each_event_is_a_field() -> None:
    """A kind of log line can be asked of the job, a node and a rank."""
    for kind in EVENT_KINDS:
        field = FIELDS[f"event.{kind}"]
        assert (field.type, set(field.scopes)) == ("bool", {"job", "node", "rank"})


def test_groups_are_known_for_each_scope() -> None:
    """Children are those of one rank or process."""
    assert set(GROUPS_IN_SCOPE) == set(SCOPES)
    assert "child" not in GROUPS_IN_SCOPE["job"]
    assert "child" in GROUPS_IN_SCOPE["rank"]
