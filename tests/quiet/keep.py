"""Keeps a look's incident as test data: small, and without what tells of a machine."""

from __future__ import annotations

import gzip
import json
import platform
import re
import sys
from pathlib import Path

from tests.lab.job import ROOT
from tests.quiet.looks import Look

# Beside the index and the samples nothing decides.
_INDEX = "incident.json"
# Packages may lie outside of the environment.
_PACKAGES = re.compile(r"/[^\s\"]*?/site-packages/")
_SITUATIONS = "situations.json"


def keep(look: Look, workdir: Path, directory: Path) -> Path:
    """Write the incident of a look below the directory; the place."""
    name = re.sub(r"[^a-z]+", "_", look.situation.lower())
    target = directory / f"{look.number:02d}_{name.strip('_')}"
    places = _places(workdir)
    target.mkdir(parents=True)
    (target / _INDEX).write_text(_disguise((look.path / _INDEX).read_text(), places))
    for sample in sorted(look.path.glob("samples/*/*.jsonl")):
        inner = target / "samples" / sample.parent.name
        inner.mkdir(parents=True)
        text = _disguise(sample.read_text(), places)
        # Without a name and a time the same sample is the same file.
        (inner / "node0.jsonl.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    (target / _SITUATIONS).write_text(json.dumps(look.situations) + "\n")
    return target


def read_situations(incident: Path) -> tuple[str, ...]:
    """What the job did while a kept incident was collected."""
    return tuple(json.loads((incident / _SITUATIONS).read_text()))


def _places(workdir: Path) -> dict[str, str]:
    """What tells of this machine, longest first, and what stands for it."""
    places = {str(workdir): "/job", str(ROOT): "/repo", sys.prefix: "/venv"}
    places |= {platform.node(): "node0", f"{Path.home()}/": "/home/user/"}
    return dict(sorted(places.items(), key=lambda item: -len(item[0])))


def _disguise(text: str, places: dict[str, str]) -> str:
    for place, other in places.items():
        text = text.replace(place, other)
    return _PACKAGES.sub("/venv/lib/python3/site-packages/", text)
