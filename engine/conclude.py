"""The end of a collection: evidence on disk first, then the verdict, then the reports."""

from __future__ import annotations

import time
import traceback
from pathlib import Path

from whyhang.engine.diagnose import diagnose
from whyhang.engine.reports import VERDICT, render_reports
from whyhang.engine.store import IncidentWriter, prune
from whyhang.rules.ruleset import Ruleset
from whyhang.schemas.config import StoreConfig
from whyhang.schemas.diagnosis import Diagnosis
from whyhang.schemas.incident import Incident
from whyhang.schemas.verdict_codec import encode_verdict

LOG_NAME = "train"


def conclude(
    incident: Incident, ruleset: Ruleset, writer: IncidentWriter, *, version: str | None = None
) -> Diagnosis:
    """Write the evidence into the spool, judge it, write the reports beside it."""
    writer.write_index(incident)
    if incident.log_excerpt:
        writer.write_log(LOG_NAME, incident.log_excerpt)
    diagnosis = diagnose(incident, ruleset, version=version)
    for name, text in _reports(diagnosis).items():
        writer.write_report(name, text)
    return diagnosis


def _reports(diagnosis: Diagnosis) -> dict[str, str]:
    """The reports; a fault of ours in a picture costs the pictures, never the verdict."""
    try:
        return render_reports(diagnosis)
    except Exception:  # noqa: BLE001 (it is told in a file of its own)
        verdict = encode_verdict(diagnosis.verdict).decode()
        return {VERDICT: verdict, "error.txt": traceback.format_exc()}


def publish(writer: IncidentWriter, config: StoreConfig, *, keep: bool = False) -> Path:
    """Move the incident into the store and prune what is too old there; where it now stands.

    The store may lie on the file system that does not answer: tell the verdict before you call.
    With ``keep`` the spool stays, for samples that are still to come.
    """
    place = writer.publish(keep=keep)
    prune(
        writer.final.parent,
        now_ns=time.time_ns(),
        keep_seconds=config.keep,
        max_bytes=config.max_size,
    )
    return place
