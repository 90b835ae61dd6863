"""Is a document shaped as its JSON Schema says? Findings in words of our own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, cast

from jsonschema import Draft7Validator

from whyhang.rules.document import Document, Path
from whyhang.rules.findings import Finding
from whyhang.rules.suggest import closest
from whyhang.rules.valid_texts import HANG_SCHEMA

_TYPES = {
    "object": "a mapping of keys",
    "array": "a list",
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "empty",
}


@cache
def schema(name: str = HANG_SCHEMA) -> Mapping[str, Any]:
    """A JSON Schema that ships with whyhang, that of hang.yaml by default."""
    loaded: Mapping[str, Any] = json.loads(
        (files("whyhang.schemas") / name).read_text(encoding="utf-8")
    )
    return loaded


@cache
def _validator(name: str) -> Draft7Validator:
    return Draft7Validator(schema(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fault:
    """What jsonschema found, in definite types."""

    keyword: str
    expected: Any
    schema: Mapping[str, Any]
    value: Any
    path: Path
    is_name: bool


def validate(document: Document, name: str = HANG_SCHEMA) -> Iterator[Finding]:
    """What is wrong with the shape of a document (H010 value, H011 unknown key, H014 missing)."""
    for error in _validator(name).iter_errors(document.data):
        yield from _findings(
            _Fault(
                keyword=str(error.validator),
                expected=error.validator_value,
                schema=cast("Mapping[str, Any]", error.schema),
                value=error.instance,
                path=tuple(error.absolute_path),
                is_name="propertyNames" in error.absolute_schema_path,
            ),
            document,
        )


def _findings(fault: _Fault, document: Document) -> Iterator[Finding]:
    path = fault.path
    if fault.keyword == "additionalProperties":
        yield from _unknown_keys(fault, path, document)
    elif fault.keyword == "required":
        for name in fault.expected:
            if name not in fault.value and not any(closest(given, [name]) for given in fault.value):
                yield _missing_key(name, path, document)
    elif fault.keyword == "enum":
        yield _not_one_of(fault, path, document)
    elif fault.is_name:
        path = (*path, str(fault.value))
        message = f"`{fault.value}` is not {_expected(fault)}"
        yield Finding(code="H010", message=message, span=document.key_span(path))
    else:
        yield _bad_value(fault, path, document)


def _unknown_keys(fault: _Fault, path: Path, document: Document) -> Iterator[Finding]:
    known = fault.schema.get("properties", {})
    for name in fault.value:
        if name not in known:
            match = closest(name, known)
            hint = f"; did you mean `{match}`?" if match else ""
            help = "" if match else f"known here: {', '.join(known)}"
            yield Finding(
                code="H011",
                message=f"unknown key `{name}`{hint}",
                span=document.key_span((*path, name)),
                help=help,
            )


def _missing_key(name: str, path: Path, document: Document) -> Finding:
    where = f"`{path[0]}`" if path else "the file"
    if name == "version":
        help = "begin the file with `version: 1`" if not path else ""
    else:
        help = f"`{name}` names it" if name == "id" else ""
    return Finding(
        code="H014",
        message=f"missing key `{name}` in {where}",
        span=document.span(path) if path else document.span(()),
        help=help,
    )


def _not_one_of(fault: _Fault, path: Path, document: Document) -> Finding:
    values = [str(value) for value in fault.expected]
    text = document.texts.get(path, _shown(fault.value))
    match = closest(text, values)
    if len(values) == 1:
        message = f"'{text}' is not {values[0]}"
    else:
        message = f"'{text}' is not one of [{', '.join(values)}]"
    if match:
        message += f"; did you mean `{match}`?"
    help = "this release reads files of version 1" if path == ("version",) else ""
    return Finding(code="H010", message=message, span=document.span(path), help=help)


def _bad_value(fault: _Fault, path: Path, document: Document) -> Finding:
    span = document.span(path)
    if fault.value is None:
        name = f"`{path[-1]}`" if path else "the file"
        return Finding(
            code="H010", message=f"{name} is empty; expected {_expected(fault)}", span=span
        )
    text = document.texts.get(path, _shown(fault.value))
    if fault.keyword == "minimum":
        message = f"`{text}` is less than {fault.expected}"
    else:
        message = f"`{text}` is not {_expected(fault)}"
    help = ""
    if fault.keyword in ("type", "pattern") and text.isdigit() and "duration" in message:
        help = f"give the unit: did you mean `{text}s`?"
    return Finding(code="H010", message=message, span=span, help=help)


def _expected(fault: _Fault) -> str:
    title = fault.schema.get("title")
    if title and fault.path:
        return str(title)
    if fault.keyword == "pattern":
        return f"of the form {fault.expected}"
    types = fault.schema.get("type", "string")
    names = [types] if isinstance(types, str) else [name for name in types if name != "null"]
    words = dict.fromkeys(_TYPES[name] for name in names)
    return " or ".join(words)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "{…}" if value else "{}"
    if isinstance(value, list):
        return "[…]" if value else "[]"
    return str(value)
