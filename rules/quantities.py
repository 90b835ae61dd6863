"""Durations, sizes and other literals as people write them in YAML."""

from __future__ import annotations

import re

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}

DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+\Z")
SIZE = re.compile(r"(\d+(?:\.\d+)?) ?((?:[KMGT]i?)?)B?\Z", re.IGNORECASE)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_PERCENT = re.compile(r"\d+(?:\.\d+)?%\Z")


def parse_duration(text: str) -> float:
    """Seconds of ``20s``, ``1h30m``, ``500ms`` or ``30d``. Raises ValueError."""
    if DURATION.match(text) is None:
        raise ValueError(f"not a duration: {text!r}")
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(text))


def parse_size(text: str) -> int:
    """Bytes of ``5GB``, ``512MiB`` or ``1000``. Raises ValueError."""
    match = SIZE.match(text)
    if match is None:
        raise ValueError(f"not a size: {text!r}")
    unit = match[2].capitalize()
    return int(float(match[1]) * (_BINARY[unit] if unit in _BINARY else _BYTES[unit]))


def parse_percent(text: str) -> float:
    """The fraction that ``90%`` stands for (0.9). Raises ValueError."""
    if _PERCENT.match(text) is None:
        raise ValueError(f"not a percentage: {text!r}")
    # Divided as decimals would be: 0.07 rather than 0.07000000000000001.
    return float(text[:-1]) / 100
