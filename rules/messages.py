"""The ``message:`` of a rule: a sandboxed template over what was found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import SandboxedEnvironment

from whyhang.rules.message_names import MESSAGE_NAMES
from whyhang.rules.suggest import did_you_mean

# A message is a sentence or two; a template that loops must not fill the report.
MAX_LENGTH = 20_000


def render_message(template: str, values: Mapping[str, object]) -> str:
    """The message with its values filled in.

    A template that cannot be rendered says so in its place: a bad message must not cost the
    verdict.
    """
    try:
        text = compile_message(template).render(values)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        return f"(the rule's message could not be rendered: {error})"
    return text[:MAX_LENGTH]


@lru_cache(maxsize=512)
def compile_message(template: str) -> Template:
    """The compiled template. Raises jinja2.TemplateSyntaxError."""
    return _environment().from_string(template)


def message_faults(template: str) -> tuple[tuple[str, int], ...]:
    """What is wrong with a template, each with the line of it, from 1."""
    try:
        compile_message(template)
        asked = find_undeclared_variables(_environment().parse(template))
    except TemplateSyntaxError as error:
        return ((error.message or "not a template", error.lineno),)
    return tuple(
        (f"unknown name `{name}`; {_hint(name)}", _line_of(name, template))
        for name in sorted(asked - {*MESSAGE_NAMES})
    )


def _hint(name: str) -> str:
    return did_you_mean(name, MESSAGE_NAMES) or f"there is {', '.join(MESSAGE_NAMES)}"


def _line_of(name: str, template: str) -> int:
    """The line in which a name first stands, from 1."""
    match = re.search(rf"\b{re.escape(name)}\b", template)
    return 1 if match is None else template.count("\n", 0, match.start()) + 1


@cache
def _environment() -> SandboxedEnvironment:
    return SandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
