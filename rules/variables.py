"""The literals of ``vars:`` and ``--set``, typed by how they are written."""

from __future__ import annotations

import math
from collections.abc import Mapping

from whyhang.rules.document import plain_value
from whyhang.rules.names import TypedVariable
from whyhang.rules.quantities import DURATION, parse_duration, parse_percent
from whyhang.rules.suggest import did_you_mean
from whyhang.rules.wording import TYPE_WORDS
from whyhang.schemas.errors import UsageError


def read_variable(value: object, text: str) -> TypedVariable:
    """A variable from its YAML value and the text it was read from.

    Durations and percentages count as such in quotes too: there is nothing else they could mean.
    """
    if DURATION.match(text):
        return TypedVariable(type="duration", value=parse_duration(text))
    try:
        return TypedVariable(type="percent", value=parse_percent(text))
    except ValueError:
        pass
    if isinstance(value, bool):
        return TypedVariable(type="bool", value=value)
    if isinstance(value, int):
        return TypedVariable(type="int", value=value)
    if isinstance(value, float) and math.isfinite(value):
        return TypedVariable(type="num", value=value)
    return TypedVariable(type="str", value=text)


def with_overrides(
    variables: Mapping[str, TypedVariable], overrides: Mapping[str, str]
) -> dict[str, TypedVariable]:
    """The variables with the values of ``--set``. Raises UsageError for unknown names and types."""
    result = dict(variables)
    for name, text in overrides.items():
        if name not in variables:
            raise UsageError(
                f"--set {name}={text}: there is no variable `{name}`",
                did_you_mean(name, variables) or f"known: {', '.join(variables) or 'none'}",
            )
        new, old = read_variable(plain_value(text), text), variables[name]
        if new.type != old.type and not (new.type == "int" and old.type == "num"):
            raise UsageError(
                f"--set {name}={text}: `{name}` is {TYPE_WORDS[old.type]}, "
                f"`{text}` is {TYPE_WORDS[new.type]}"
            )
        result[name] = new
    return result
