"""Whether and how RAS is asked in a situation."""

from __future__ import annotations

import pytest

from whyhang.collectors.ras_client import RasAnswer, RasFailure
from whyhang.collectors.ras_safety import RasBudget, RasSituation
from whyhang.collectors.ras_version import LoadedNccl
from whyhang.engine import ras_query
from whyhang.engine.ras_query import RasRefusal, RasTaken, ask, ask_by_hand, situation_of
from whyhang.schemas.frame import Frame
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.stack import Stack, Thread

SAFE = LoadedNccl(versions=((2, 30, 7),), method="library")
STEPPING = RasSituation(stepped=True, creating_communicator=False)


def trainer(rank: int, function: str | None = "backward", state: str | None = "S") -> Process:
    """A trainer that stands in a function, or whose stack is unread."""
    stack = Stack((Frame(function or "", "/x/train.py", "train.py", 1),))
    thread = Thread(name="MainThread", tid=1, stack=stack)
    if function is None:
        return Process(pid=100 + rank, node="n", kind="trainer", rank=rank, state=state)
    return Process(
        pid=100 + rank, node="n", kind="trainer", rank=rank, state=state, threads=(thread,)
    )


@pytest.mark.parametrize(
    ("trainers", "creating", "alive", "leaving"),
    [
        ([trainer(0), trainer(1)], False, True, False),
        ([trainer(0), trainer(1, "new_group")], True, True, False),
        ([trainer(0), trainer(1, None)], None, True, None),
        ([trainer(0), trainer(1, "destroy_process_group")], False, True, True),
        ([trainer(0), trainer(1, state="T")], False, False, False),
        ([trainer(0), trainer(1, state=None)], False, None, False),
        ([trainer(0)], False, None, False),
    ],
)
def test_situation(
    trainers: list[Process], creating: bool | None, alive: bool | None, leaving: bool | None
) -> None:
    """Only a whole and read job is known to be alive; one stack in creation is enough to know."""
    found = situation_of(trainers, stepped=True, world_size=2)
    assert (found.creating_communicator, found.all_alive, found.leaving) == (
        creating,
        alive,
        leaving,
    )


class Service:
    """Stands in for process and network."""

    def __init__(self, outcome: RasAnswer | RasFailure, environ: dict[str, str]) -> None:
        self.outcome, self.environ = outcome, environ
        self.asked: list[tuple[str, str, float]] = []

    def ask(self, address: str, *, form: str, limits: object) -> RasAnswer | RasFailure:
        """Note the question."""
        self.asked.append((address, form, getattr(limits, "factor", 1.0)))
        return self.outcome


def install(monkeypatch: pytest.MonkeyPatch, service: Service) -> None:
    """Put the service in the place of the real ones."""
    monkeypatch.setattr(ras_query, "detect_nccl", lambda pid: SAFE)
    monkeypatch.setattr(ras_query, "read_environ", lambda pid: service.environ)
    monkeypatch.setattr(ras_query, "ask_ras", service.ask)


def test_the_trainers_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Address and time factor come from the trainer's environment; the question is counted."""
    answer = RasAnswer(data=b"{}", form="json", address="x", cut="longer than 1 bytes")
    service = Service(answer, {"NCCL_RAS_ADDR": "a:5", "NCCL_RAS_TIMEOUT_FACTOR": "2"})
    install(monkeypatch, service)
    budget = RasBudget()
    taken = ask([trainer(0)], policy="auto", situation=STEPPING, budget=budget)
    assert isinstance(taken, RasTaken)
    assert taken.note is not None and "not complete" in taken.note
    assert (service.asked, budget.asked) == ([("a:5", "json", 2.0)], 1)


def test_switched_off_in_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """With RAS off in the job nobody is asked."""
    service = Service(RasFailure(kind="refused", reason="no"), {"NCCL_RAS_ENABLE": "0"})
    install(monkeypatch, service)
    found = ask([trainer(0)], policy="auto", situation=STEPPING, budget=RasBudget())
    assert isinstance(found, RasRefusal)
    assert service.asked == []


def test_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused connection says what it means for this release."""
    service = Service(RasFailure(kind="refused", reason="no"), {})
    install(monkeypatch, service)
    found = ask([trainer(0)], policy="auto", situation=STEPPING, budget=RasBudget())
    assert isinstance(found, RasRefusal)
    assert "2.30.7 has RAS" in found.meaning


def test_died(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a death the budget is closed."""
    service = Service(RasFailure(kind="died", reason="gone"), {})
    install(monkeypatch, service)
    budget = RasBudget()
    for _ in range(2):
        found = ask([trainer(0)], policy="auto", situation=STEPPING, budget=budget)
        assert isinstance(found, RasRefusal)
    assert len(service.asked) == 1


def test_no_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a trainer on this host there is nobody to ask, and nothing is said of its age."""
    monkeypatch.setattr(ras_query, "list_processes", lambda **_: ())
    for force in (False, True):
        found = ask_by_hand(None, force=force)
        assert isinstance(found, RasRefusal)
        assert found.reason == "no training job was found on this host"
        assert "--address" in found.meaning and "minutes" not in found.meaning


def test_a_young_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that may still create communicators is not asked, and the way out is told."""
    service = Service(RasAnswer(data=b"{}", form="json", address="x"), {})
    install(monkeypatch, service)
    monkeypatch.setattr(ras_query, "list_processes", lambda **_: (trainer(0),))
    monkeypatch.setattr(ras_query, "settled", lambda trainers: False)
    found = ask_by_hand(None, force=False)
    assert isinstance(found, RasRefusal)
    assert "ten minutes" in found.meaning and "--force" in found.meaning
    assert service.asked == []


def test_an_unknown_release_is_not_taken_for_youth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the release alone forbids the question, nothing is said of the job's age."""
    install(monkeypatch, Service(RasAnswer(data=b"{}", form="json", address="x"), {}))
    monkeypatch.setattr(ras_query, "detect_nccl", lambda pid: Missing("no NCCL is loaded"))
    monkeypatch.setattr(ras_query, "list_processes", lambda **_: (trainer(0),))
    monkeypatch.setattr(ras_query, "settled", lambda trainers: False)
    found = ask_by_hand(None, force=False)
    assert isinstance(found, RasRefusal)
    assert ("no NCCL is loaded" in found.reason, found.meaning) == (True, "")


def test_an_address_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address given by hand is asked where no trainer tells its release, and that is said."""
    service = Service(RasAnswer(data=b"{}", form="json", address="x"), {})
    monkeypatch.setattr(ras_query, "list_processes", lambda **_: ())
    monkeypatch.setattr(ras_query, "ask_ras", lambda address: service.outcome)
    found = ask_by_hand("127.0.0.1:5", force=False)
    assert isinstance(found, RasTaken)
    assert found.note is not None and "without knowing the NCCL release" in found.note


def test_an_address_by_hand_keeps_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a trainer of this host tells its release, the rules hold for an address too."""
    service = Service(RasAnswer(data=b"{}", form="json", address="x"), {"WORLD_SIZE": "2"})
    install(monkeypatch, service)
    risky = LoadedNccl(versions=((2, 27, 5),), method="library")
    monkeypatch.setattr(ras_query, "detect_nccl", lambda pid: risky)
    monkeypatch.setattr(ras_query, "list_processes", lambda **_: (trainer(0),))
    monkeypatch.setattr(ras_query, "settled", lambda trainers: True)
    found = ask_by_hand("127.0.0.1:5", force=False)
    assert isinstance(found, RasRefusal)
    assert "can crash" in found.reason
    assert service.asked == []
    assert isinstance(ask_by_hand("127.0.0.1:5", force=True), RasTaken)
