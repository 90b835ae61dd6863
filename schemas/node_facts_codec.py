"""Node facts as JSON: ``<node>.facts.json``. Every key is optional; unknown ones are ignored."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from whyhang.schemas.errors import FormatError
from whyhang.schemas.node_facts import NodeFacts

T = TypeVar("T")


def encode_node_facts(facts: NodeFacts) -> bytes:
    """The document of a node; what is unknown is left out."""
    return json.dumps(facts_to_json(facts), ensure_ascii=False, indent=1).encode() + b"\n"


def facts_to_json(facts: NodeFacts) -> dict[str, Any]:
    """The same as plain values."""
    plain = _known(asdict(facts))
    assert isinstance(plain, dict)
    if not plain.get("unread"):
        plain.pop("unread", None)
    return plain


def decode_node_facts(data: bytes) -> NodeFacts:
    """Read a document of any release; a value of the wrong type is unknown. Raises FormatError."""
    try:
        wire = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not node facts: {error}") from error
    return facts_from_json(wire)


def facts_from_json(wire: object) -> NodeFacts:
    """The same from plain values. Raises FormatError where that is no object."""
    if not isinstance(wire, Mapping):
        raise FormatError("not node facts: expected an object")
    return _object(NodeFacts, wire)


def _known(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _known(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, (list, tuple)):
        return [_known(inner) for inner in value]
    return value


def _object(kind: type[T], wire: Mapping[str, Any]) -> T:
    """An instance of a dataclass. Raises TypeError where a required value is missing."""
    hints = get_type_hints(kind)
    found: dict[str, Any] = {}
    for field in fields(kind):  # type: ignore[arg-type]
        value = wire.get(field.name)
        read = _value(hints[field.name], value)
        required = field.default is MISSING and field.default_factory is MISSING
        if read is not None:
            found[field.name] = read
        elif required:
            raise TypeError(field.name)
    return kind(**found)


def _value(hint: Any, value: Any) -> Any:
    """The value as the type says; None where it is not of that type."""
    if value is None:
        return None
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _value(next(arg for arg in arguments if arg is not type(None)), value)
    if origin is tuple:
        return _members(arguments[0], value) if isinstance(value, list) else None
    if isinstance(hint, type) and is_dataclass(hint):
        return _tried(lambda: _object(hint, value)) if isinstance(value, Mapping) else None
    if origin is not None:
        if not isinstance(value, Mapping):
            return None
        pairs = {str(key): _value(arguments[1], inner) for key, inner in value.items()}
        return {key: inner for key, inner in pairs.items() if inner is not None}
    return _scalar(hint, value)


def _members(hint: Any, values: list[Any]) -> tuple[Any, ...]:
    read = (_value(hint, value) for value in values)
    return tuple(value for value in read if value is not None)


def _scalar(hint: Any, value: Any) -> Any:
    if hint is str:
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if hint is float:
        return float(value) if abs(value) < 1e300 else None
    return value if isinstance(value, int) else None


def _tried(make: Callable[[], T]) -> T | None:
    try:
        return make()
    except TypeError:
        return None
