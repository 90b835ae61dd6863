"""What a file of rules is expected to say of recorded incidents (``whyhang replay --expect``)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from whyhang.rules.sources import read_source
from whyhang.rules.suggest import did_you_mean
from whyhang.schemas.errors import UsageError
from whyhang.schemas.rankset import RankSet

PARTS = ("verdict", "category", "confidence", "suspects", "rule")


def read_expectations(path: Path) -> dict[str, dict[str, str]]:
    """The expected parts by incident, from YAML or from what ``replay --format json`` printed.

    Raises UsageError for a file that cannot be read or says something else.
    """
    text = read_source(path).text
    try:
        # Everything as text: a rank list `61` and a print ID are no numbers here.
        data = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: {str(error).splitlines()[0]}") from error
    if isinstance(data, Mapping) and isinstance(data.get("incidents"), list):
        data = {
            entry.get("incident"): {part: entry[part] for part in PARTS if part in entry}
            for entry in data["incidents"]
            if isinstance(entry, Mapping)
        }
    if not isinstance(data, Mapping):
        raise UsageError(f"{path}: expected incidents, each with the parts {', '.join(PARTS)}")
    return {str(name): _parts(path, str(name), parts) for name, parts in data.items()}


def _parts(path: Path, incident: str, parts: object) -> dict[str, str]:
    if not isinstance(parts, Mapping) or not parts:
        raise UsageError(
            f"{path}: {incident} expects nothing",
            hint='write, for example, {verdict: local_hang, suspects: "40-47"}',
        )
    found: dict[str, str] = {}
    for part, value in parts.items():
        if part not in PARTS:
            help = did_you_mean(str(part), PARTS) or f"there are {', '.join(PARTS)}"
            raise UsageError(f"{path}: {incident}: unknown part `{part}`", hint=help)
        # As text, `null` is a word: an earlier replay writes it where no rule decided.
        found[part] = "" if value in (None, "null", "~") else str(value)
    try:
        if "suspects" in found:
            found["suspects"] = RankSet.parse(found["suspects"]).format()
    except ValueError as error:
        raise UsageError(f"{path}: {incident}: {error}") from error
    return found
