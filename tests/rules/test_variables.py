"""The literals of ``vars:`` and ``--set``."""

from __future__ import annotations

import pytest

from whyhang.rules.document import plain_value
from whyhang.rules.names import TypedVariable
from whyhang.rules.variables import read_variable, with_overrides
from whyhang.schemas.errors import UsageError


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("10s", "duration", 10.0),
        ("90%", "percent", 0.9),
        ("100%", "percent", 1.0),
        ("3", "int", 3),
        ("0.5", "num", 0.5),
        ("true", "bool", True),
        ("no", "str", "no"),
        ("1e999", "str", "1e999"),
    ],
)
def test_how_it_is_written_is_its_type(text: str, type_: str, value: object) -> None:
    """Percentages are floats and counts integers, so that amounts can be told apart."""
    variable = read_variable(plain_value(text), text)
    assert (variable.type, variable.value) == (type_, value)
    assert type(variable.value) is type(value)


def test_set_replaces_a_value_of_the_same_type() -> None:
    """The other variables stay."""
    known = {
        "still": TypedVariable(type="duration", value=10.0),
        "n": TypedVariable(type="int", value=3),
    }
    changed = with_overrides(known, {"still": "1m"})
    assert (changed["still"].value, changed["n"].value) == (60.0, 3)


@pytest.mark.parametrize(("name", "text"), [("stil", "1m"), ("still", "60"), ("still", "90%")])
def test_set_refuses_unknown_names_and_other_types(name: str, text: str) -> None:
    """A slip on the command line is no silent change."""
    known = {"still": TypedVariable(type="duration", value=10.0)}
    with pytest.raises(UsageError) as caught:
        with_overrides(known, {name: text})
    assert caught.value.exit_status == 2
