"""One stall from suspicion to verdict: two samples, on disk before anybody judges them.

Imported only once a stall is suspected: while steps advance, the watcher needs none of it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Container, Iterable
from dataclasses import replace
from pathlib import Path

from whyhang.engine.cli.main import VERSION
from whyhang.engine.collection import Collection
from whyhang.engine.conclude import conclude, publish
from whyhang.engine.flight_pickup import FlightPickup
from whyhang.engine.log_watch import LogWatch
from whyhang.engine.store import IncidentWriter
from whyhang.rules.load import load_ruleset
from whyhang.rules.ruleset import Ruleset
from whyhang.schemas.config import Config
from whyhang.schemas.diagnosis import Diagnosis
from whyhang.schemas.errors import WhyhangError
from whyhang.schemas.incident import Source
from whyhang.schemas.process import Process
from whyhang.schemas.progress import Progress
from whyhang.schemas.words import Trigger

# Rules ask for two samples this far apart, and a little more.
BETWEEN_SAMPLES_SECONDS = 10.5


class Stall:
    """The evidence of one stall. ``rules`` is the hang.yaml, None for the built-in rules.

    ``trouble`` says why a verdict rests on others than these.
    """

    def __init__(
        self,
        *,
        config: Config,
        rules: Path | None,
        store: Path,
        root: int,
        marker: str,
        exclude: Container[int] = (),
        known: Iterable[Process] = (),
        flight: FlightPickup | None = None,
    ) -> None:
        self._config = config
        self._rules = rules
        self._collection = Collection(
            config=config.collect,
            checkpoint=config.progress.checkpoint,
            root=root,
            marker=marker,
            exclude=exclude,
            known=known,
            flight=flight,
        )
        self.print_id = self._collection.print_id
        self._writer = IncidentWriter(store, self.print_id)
        self._progress = Progress()
        self.deep_due = 0.0
        self.diagnosis: Diagnosis | None = None
        self.trouble = ""

    @property
    def is_concluded(self) -> bool:
        """Whether a verdict was given."""
        return self.diagnosis is not None

    @property
    def directory(self) -> Path:
        """Where the evidence stands until it is published."""
        return self._writer.directory

    @property
    def final(self) -> Path:
        """Where it will stand once it is published."""
        return self._writer.final

    @property
    def samples(self) -> int:
        """How many samples were taken."""
        return len(self._collection.samples)

    def look(self, log: LogWatch, *, deep: bool) -> None:
        """Take a sample and write it; the first one fixes what the log says."""
        now = time.monotonic()
        if not self._collection.samples:
            self._progress = log.progress(now)
            self.deep_due = now + BETWEEN_SAMPLES_SECONDS
        self._collection.take(deep=deep, writer=self._writer, stepped=log.has_steps)
        log.watch.worked(time.monotonic())

    def conclude(self, log: LogWatch, trigger: Trigger) -> Diagnosis:
        """Judge what was collected and write the reports, both into the spool."""
        if not self._collection.samples:
            self._progress = log.progress(time.monotonic())
            # Nobody is left, but which ranks there were is known.
            self._collection.find()
        progress = self._progress
        if trigger == "stall" and progress.state == "advancing":
            # Sampled before the threshold; a collective has timed out since: it did stand still.
            progress = replace(progress, state="stalled")
        with contextlib.suppress(OSError):
            self._collection.pick_up_dumps(
                self._writer,
                stalled_seconds=progress.stalled_seconds,
                may_ask=log.has_steps,
            )
        incident = self._collection.incident(
            trigger=trigger,
            progress=progress,
            log=_log_source(progress),
            job=self._config.job,
            history=log.watch.history(),
            events=log.events(),
            log_excerpt=log.excerpt,
            version=VERSION,
        )
        # On disk first, whatever the rules do.
        with contextlib.suppress(OSError):
            self._writer.write_index(incident)
        self.diagnosis = conclude(incident, self._load_rules(), self._writer, version=VERSION)
        log.watch.worked(time.monotonic())
        return self.diagnosis

    def end(self, log: LogWatch) -> Diagnosis:
        """Judge what is left when the ranks have ended.

        Where they had stood still before, that is the story (their end may be its consequence: a
        collective's timeout, an impatient person); else it is their end.
        """
        stood = self.samples and (self._progress.state == "stalled" or log.has_timed_out)
        return self.conclude(log, "stall" if stood else "exit")

    def publish(self, log: LogWatch, *, keep: bool = False) -> Path:
        """Move it into the store, which may take its time; answer where it stands.

        With ``keep`` more samples may follow, until :meth:`release`.
        """
        place = publish(self._writer, self._config.store, keep=keep)
        log.watch.worked(time.monotonic())
        return place

    def release(self) -> None:
        """No sample follows: what stands in the store need not stand in the spool."""
        self._writer.release()

    def discard(self) -> None:
        """Forget it: the job went on by itself."""
        self._writer.discard()

    def _load_rules(self) -> Ruleset:
        try:
            return load_ruleset(self._rules)
        except WhyhangError as error:
            # It was valid when the job started and has been edited since.
            self.trouble = f"judged by the built-in rules: {error.message}"
            return load_ruleset(None)


def _log_source(progress: Progress) -> Source:
    if progress.step is None and progress.last_line is None:
        return Source(ok=False, reason="no progress line was seen in the log")
    return Source(ok=True)
