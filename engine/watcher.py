"""The watcher process: follows the log, samples when steps stop, judges, reports.

Its input is a pipe of JSON lines from the supervisor: the settings, then what happens to the job.
It is a bystander: whatever goes wrong here is written to its log and changes nothing for the job.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyhang.engine.configure import config_from
from whyhang.engine.early import EarlyLooks
from whyhang.engine.log_watch import LogWatch
from whyhang.engine.modesty import Foreground, at_once
from whyhang.engine.orders import Orders, read_settings
from whyhang.engine.streams import LogFile
from whyhang.engine.sweep import sweep, sweep_spools, sweep_stagings
from whyhang.engine.voice import Voice
from whyhang.engine.watch import Transition

if TYPE_CHECKING:
    from whyhang.engine.aftermath import Aftermath
    from whyhang.engine.attempt import Attempt
    from whyhang.engine.flight_pickup import FlightPickup
    from whyhang.engine.stall import Stall
    from whyhang.schemas.diagnosis import Diagnosis
    from whyhang.schemas.process import Process
    from whyhang.schemas.progress import Progress

POLL_SECONDS = 1.0
# The relay's copy of the last lines may still be on its way.
LAST_LINES_SECONDS = 0.3
# How often the trainers are looked after: a few reads of /proc, and all of it once they are gone.
TRAINERS_SECONDS = 5.0
SUCCESSORS_SECONDS = 15.0
# At the job's end, for those who tell of it.
NOTIFY_SECONDS = 5.0


class Watcher:
    """The loop and what it knows. ``requests`` is the descriptor towards the supervisor.

    ``urgently`` does what must not wait for a CPU.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        requests: int,
        *,
        urgently: Callable[[Callable[[], object]], None] = at_once,
    ) -> None:
        self._urgently = urgently
        self._settings = settings
        self._requests = requests
        self._config = config_from(settings["config"])
        self._pid = int(settings["pid"])
        logs = [LogFile(path=path, start=start) for path, start in settings["logs"]]
        self._log = LogWatch(logs, self._config, time.monotonic())
        self._voice = Voice([Path(path) for path in settings["scratch"]], self._config.on_hang)
        self._stall: Stall | None = None
        self._early = EarlyLooks(self._open)
        self._aftermath: Aftermath | None = None
        self._known: tuple[Process, ...] | None = None
        self._attempt: Attempt | None = None
        self._flight: FlightPickup | None = None
        self._trainers_due = 0.0
        self._announced = False
        self._orders = Orders(
            self._pid, self._voice.note, supervised=bool(settings.get("supervised", True))
        )
        self._failures = 0

    def run(self) -> int:
        """Watch until the job has ended, then tell how; our exit status."""
        return self.finish(self.watch())

    def watch(self) -> Mapping[str, Any]:
        """Watch until the job has ended; how it did."""
        self._voice.note(f"watching process {self._pid}")
        expired = time.time() - self._config.store.keep
        for directory in self._settings["scratch"]:
            sweep(Path(directory).parent, expired)
        sweep_spools(expired)
        sweep_stagings(Path(self._settings["store"]), time.time())
        while True:
            ending = self._orders.wait(POLL_SECONDS)
            if ending is not None:
                return ending
            try:
                self._step()
                self._failures = 0
            except Exception:  # noqa: BLE001 (nothing may end the watch)
                self._failures += 1
                # What fails at each poll is noted less and less often.
                if self._failures & (self._failures - 1) == 0:
                    self._voice.note(traceback.format_exc())

    def finish(self, ending: Mapping[str, Any]) -> int:
        """Report how the job ended; our exit status."""
        try:
            self._finish(ending)
        except Exception:  # noqa: BLE001 (a bystander to the last)
            self._voice.note(traceback.format_exc())
            return 1
        return 0

    def prime(self, past: Progress, gaps: Sequence[float], *, stepped: bool) -> None:
        """Begin with what the log of a job that already runs tells of its past."""
        self._log.prime(past, gaps, time.monotonic(), stepped=stepped)

    def leave(self) -> None:
        """Give up the watch; a verdict that was given stays."""
        self._early.drop()
        if self._stall is not None:
            (self._stall.release if self._stall.is_concluded else self._stall.discard)()

    def _catch_up(self) -> float:
        """Read the log and act on what it tells; answer the time (monotonic)."""
        now = time.monotonic()
        self._log.poll(now)
        for change in self._log.transitions(now):
            self._react(change, now)
        return now

    def _step(self) -> None:
        now = self._catch_up()
        self._look_after_trainers(now)
        if self._stall is None:
            self._sample_early(now)
        elif self._stall.is_concluded:
            self._look_again(self._stall, now)
        elif self._is_due(now):
            self._conclude(self._stall)

    def _react(self, change: Transition, now: float) -> None:
        self._voice.note(
            f"{change.previous} -> {change.state}: silent {change.silent_seconds:.0f} s, "
            f"threshold {change.threshold_seconds:.0f} s, phase {change.phase}"
        )
        if change.state == "advancing" and self._known is None:
            self._take_census()
        if self._by_log_alone:
            self._tell_of_log(change)
        elif change.state == "suspect" and not self._orders.blind:
            try:
                self._stall = self._open()
                self._stall.look(self._log, deep=False)
            except OSError as error:
                self._voice.say(f"the job stands still, but no evidence can be written: {error}")
        elif change.state == "healed" and self._stall is not None:
            if self._stall.is_concluded:
                self._voice.say("the job makes progress again")
                self._stall.release()
            else:
                self._stall.discard()
            self._stall = self._aftermath = None

    @property
    def _by_log_alone(self) -> bool:
        """``detect: {mode: log}``: tell that steps stop and go on; look at no process."""
        return self._config.detect.mode == "log"

    def _tell_of_log(self, change: Transition) -> None:
        if change.state == "suspect":
            self._voice.say(
                f"no step for {change.silent_seconds:.0f} s "
                f"(threshold {change.threshold_seconds:.0f} s)"
            )
        elif change.state == "healed":
            self._voice.say("the job makes progress again")

    def _is_due(self, now: float) -> bool:
        stall = self._stall
        return (
            stall is not None
            and not stall.is_concluded
            and self._log.watch.state == "confirmed"
            and now >= stall.deep_due
        )

    def _conclude(self, stall: Stall) -> None:
        # Once only, whatever happens: a deep sample stops processes for a moment. Before the first
        # step they are still importing and joining, and none is stopped.
        stall.deep_due = math.inf
        try:
            self._look(stall, deep=self._log.has_steps)
            self._catch_up()
            if self._stall is not stall:
                return  # a step came while we sampled
            diagnosis = stall.conclude(self._log, "stall")
        except Exception:
            self._voice.say(
                f"the job stands still, but the diagnosis failed; evidence: {stall.directory}"
            )
            raise
        from whyhang.engine.aftermath import Aftermath

        self._aftermath = Aftermath(time.monotonic())
        self._early.drop()
        self._act_on(stall, diagnosis, event="hang")
        self._voice.say(f"reports: {stall.publish(self._log, keep=True)}")

    def _look(self, stall: Stall, *, deep: bool) -> None:
        """Take a sample; one that stops processes holds them no longer than it must."""
        if deep:
            self._urgently(lambda: stall.look(self._log, deep=True))
        else:
            stall.look(self._log, deep=False)

    def _act_on(self, stall: Stall, diagnosis: Diagnosis, *, event: str) -> None:
        """Tell of a verdict; the store, which may hang, comes after this."""
        self._tell(stall, diagnosis)
        if event != "hang" or diagnosis.verdict.verdict != "no_hang":
            self._voice.notify(stall, diagnosis, event=event)
        if not stall.trouble and self._wants_stop(diagnosis):
            os.write(self._requests, json.dumps({"stop": stall.print_id}).encode() + b"\n")

    def _tell(self, stall: Stall, diagnosis: Diagnosis) -> None:
        if stall.trouble:
            self._voice.say(stall.trouble)
        self._voice.tell(diagnosis)

    def _look_again(self, stall: Stall, now: float) -> None:
        """Sample what still stands, later and later; people are told of another verdict only."""
        from whyhang.engine.aftermath import gist

        aftermath, told = self._aftermath, stall.diagnosis
        look = None if aftermath is None else aftermath.due(now)
        if look is None or aftermath is None or told is None:
            return
        self._look(stall, deep=look == "deep" and self._log.has_steps)
        self._catch_up()
        if look == "light" or self._stall is not stall:
            return
        diagnosis = stall.conclude(self._log, "stall")
        self._voice.note(f"looked again: {diagnosis.verdict.verdict}, {diagnosis.verdict.headline}")
        if gist(diagnosis.verdict) != gist(told.verdict):
            self._act_on(stall, diagnosis, event="changed")
        stall.publish(self._log, keep=not aftermath.is_over)

    def _look_after_trainers(self, now: float) -> None:
        """Notice that one has ended, or that others took the place of all."""
        if self._log.announced_restart():
            self._announced = True
            self._begin_attempt(now)
        if self._attempt is None or now < self._trainers_due:
            return
        self._trainers_due = now + TRAINERS_SECONDS
        if self._attempt.has_lost:
            self._log.watch.hasten()
        if self._attempt.has_ended:
            self._trainers_due = now + SUCCESSORS_SECONDS
            following = self._attempt.replaced_by(self._list_processes())
            if following is not None:
                if not self._announced:
                    self._begin_attempt(now)
                self._attempt, self._announced = following, False

    def _begin_attempt(self, now: float) -> None:
        """The ranks were started again: what stood still has ended, the watch begins anew."""
        self._voice.note("another attempt of the job has begun")
        stall = self._stall or self._early.take()
        self._stall = self._aftermath = None
        # Who trains now is counted at their first step, as ever.
        self._known = None
        try:
            self._early.drop()
            if stall is not None and stall.is_concluded:
                stall.release()
            elif stall is not None:
                self._report_end(stall)
        finally:
            self._log.restart(now)

    def _report_end(self, stall: Stall) -> None:
        """What was collected before the ranks ended says why they stood still."""
        diagnosis = stall.end(self._log)
        self._tell(stall, diagnosis)
        if diagnosis.verdict.is_hang:
            self._voice.notify(stall, diagnosis, event="hang")
        self._voice.say(f"reports: {stall.publish(self._log)}")

    def _wants_stop(self, diagnosis: Diagnosis) -> bool:
        """Only a hang that is certain, and that nothing has moved since."""
        return (
            self._config.on_hang.action == "stop"
            and diagnosis.verdict.is_hang
            and diagnosis.verdict.confidence == "high"
            and self._log.watch.phase != "load"
            and self._log.watch.state == "confirmed"
        )

    def _sample_early(self, now: float) -> None:
        """Keep evidence of a long silence that is not suspect yet: the job may end in it."""
        if not self._by_log_alone and not self._orders.blind:
            self._early.look(self._log.watch.silent_for(now), self._log)

    def _finish(self, ending: Mapping[str, Any]) -> None:
        """The job has ended: a failure is an incident of its own."""
        code = ending["exit"]
        self._voice.note(f"the job ended with exit code {'unknown' if code is None else code}")
        self._catch_up()
        try:
            self._report_ending(code, interrupted=bool(ending.get("interrupted")))
        finally:
            self._early.drop()
            self._voice.wait(NOTIFY_SECONDS)

    def _report_ending(self, code: int | None, *, interrupted: bool) -> None:
        if self._by_log_alone:
            return
        stall = self._stall
        if stall is not None and stall.diagnosis is not None:
            stall.release()
            if stall.diagnosis.verdict.is_hang:
                return
            # What stood still then was no hang; that the job failed is a story of its own.
            stall = self._stall = None
        # An interrupted job is no incident, unless it stood still at that time.
        if code == 0 or ((interrupted or code is None) and stall is None):
            if stall is not None:
                stall.discard()
            self._drop_copies()
            return
        time.sleep(LAST_LINES_SECONDS)
        self._log.poll(time.monotonic())
        trained = self._known or self._log.events() or self._log.has_steps
        if stall is None:
            stall = self._early.take()
        if stall is None and not trained:
            # A command that failed before it trained: its own words say all there is to say.
            return
        self._report_end(stall or self._open())

    def _take_census(self) -> None:
        """Remember who trains here: a rank that is gone later was one of them."""
        self._remember(self._list_processes())
        self._log.watch.worked(time.monotonic())

    def _remember(self, processes: tuple[Process, ...]) -> None:
        from whyhang.engine.attempt import Attempt
        from whyhang.engine.flight_pickup import FlightPickup
        from whyhang.engine.group_timeout import group_timeout

        self._early.expect(group_timeout(process.cmdline or () for process in processes))
        self._known = processes
        self._attempt, self._announced = Attempt(processes), False
        self._flight = FlightPickup()
        self._flight.know(processes)

    def _list_processes(self) -> tuple[Process, ...]:
        from whyhang.collectors.process_table import list_processes

        return list_processes(
            node=platform.node() or "localhost",
            root=self._pid,
            exclude=(os.getppid(), os.getpid()),
            marker=self._settings["marker"],
        )

    def _open(self) -> Stall:
        from whyhang.engine.stall import Stall

        rules = self._settings["rules"]
        return Stall(
            config=self._config,
            rules=Path(rules) if rules else None,
            store=Path(self._settings["store"]),
            root=self._pid,
            marker=self._settings["marker"],
            exclude=(os.getppid(), os.getpid()),
            known=self._known or (),
            flight=None if self._flight is None else self._flight.fresh(),
        )

    def _drop_copies(self) -> None:
        """A job that went well needs no copy of its output."""
        for directory in map(Path, self._settings["scratch"]):
            for copy in directory.glob("std*.log*"):
                with contextlib.suppress(OSError):
                    copy.unlink()


def main(arguments: list[str]) -> int:
    """Run the watcher; the argument is the descriptor towards the supervisor."""
    foreground = Foreground()
    watcher = Watcher(read_settings(), int(arguments[0]), urgently=foreground.do)
    ending = foreground.host(watcher.watch)
    # Nobody trains any more, and the supervisor does not wait for long.
    return watcher.finish(ending)
