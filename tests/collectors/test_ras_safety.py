"""When NCCL RAS may be asked, release by release."""

from __future__ import annotations

import pytest

from whyhang.collectors.ras_client import RasAnswer, RasFailure
from whyhang.collectors.ras_safety import (
    Policy,
    RasBudget,
    RasSituation,
    permit,
    refusal_meaning,
)
from whyhang.collectors.ras_version import LoadedNccl, Version
from whyhang.schemas.missing import Missing

STEPPING = RasSituation(stepped=True, creating_communicator=False)
ALIVE = RasSituation(stepped=True, creating_communicator=False, all_alive=True, leaving=False)
LEAVING = RasSituation(stepped=True, creating_communicator=False, all_alive=True, leaving=True)
LONELY = RasSituation(stepped=True, creating_communicator=False, single_communicator=True)
UNREAD = RasSituation(stepped=True, all_alive=True)
ANSWER = RasAnswer(data=b"x", form="json", address="a:1")


def nccl(*versions: Version) -> LoadedNccl:
    """A process that has these loaded."""
    return LoadedNccl(versions=versions, method="library")


@pytest.mark.parametrize(
    ("version", "situation", "form"),
    [
        ((2, 21, 5), ALIVE, None),
        ((2, 24, 3), STEPPING, "text"),
        ((2, 25, 1), STEPPING, "text"),
        ((2, 26, 2), STEPPING, None),
        ((2, 26, 2), ALIVE, "text"),
        ((2, 26, 2), UNREAD, None),
        ((2, 27, 3), UNREAD, "text"),
        ((2, 27, 5), STEPPING, None),
        ((2, 27, 5), LEAVING, None),
        ((2, 27, 5), LONELY, "text"),
        ((2, 28, 3), ALIVE, "text"),
        ((2, 28, 7), ALIVE, "json"),
        ((2, 28, 9), STEPPING, None),
        ((2, 29, 2), STEPPING, "json"),
        ((2, 32, 3), STEPPING, "json"),
    ],
)
def test_the_table(version: Version, situation: RasSituation, form: str | None) -> None:
    """Each release is asked only where nothing is known to go wrong."""
    found = permit("auto", nccl(version), situation, RasBudget())
    assert found == form if form is not None else isinstance(found, Missing)


@pytest.mark.parametrize("policy", ["auto", "force"])
@pytest.mark.parametrize(
    "situation",
    [RasSituation(stepped=False), RasSituation(stepped=True, creating_communicator=True)],
)
def test_never_during_creation(policy: Policy, situation: RasSituation) -> None:
    """No release and no policy allows a question while communicators are created."""
    found = permit(policy, nccl((2, 32, 3)), situation, RasBudget())
    assert isinstance(found, Missing)


def test_two_questions_a_hang() -> None:
    """The third question of a hang is refused, also under force."""
    budget = RasBudget()
    for _ in range(2):
        assert permit("force", nccl((2, 30, 7)), STEPPING, budget) == "json"
        budget.note(ANSWER)
    found = permit("force", nccl((2, 30, 7)), STEPPING, budget)
    assert isinstance(found, Missing)
    assert "2 times" in found.reason


def test_none_after_a_death() -> None:
    """A question that ended the answering process is the last one."""
    budget = RasBudget()
    budget.note(RasFailure(kind="died", reason="gone"))
    assert isinstance(permit("force", nccl((2, 30, 7)), STEPPING, budget), Missing)


def test_a_refused_connection_does_not_close() -> None:
    """A refusal counts as a question, but another one may follow."""
    budget = RasBudget()
    budget.note(RasFailure(kind="refused", reason="no"))
    assert permit("auto", nccl((2, 30, 7)), STEPPING, budget) == "json"


def test_policies() -> None:
    """`never` forbids all, `force` overrides doubts about release and processes."""
    assert isinstance(permit("never", nccl((2, 30, 7)), STEPPING, RasBudget()), Missing)
    assert permit("force", nccl((2, 27, 5)), STEPPING, RasBudget()) == "text"
    unknown = Missing("not mapped")
    assert isinstance(permit("auto", unknown, ALIVE, RasBudget()), Missing)
    assert permit("force", unknown, ALIVE, RasBudget()) == "json"


def test_two_libraries_take_the_lower_safety() -> None:
    """Where a process maps two releases, both must be safe."""
    assert isinstance(permit("auto", nccl((2, 27, 5), (2, 30, 7)), STEPPING, RasBudget()), Missing)
    assert permit("auto", nccl((2, 25, 1), (2, 30, 7)), STEPPING, RasBudget()) == "text"


def test_rccl_is_not_asked_unforced() -> None:
    """AMD's library carries NCCL's numbers, but its RAS was never tried."""
    rccl = LoadedNccl(versions=((2, 30, 7),), method="library", is_rccl=True)
    assert isinstance(permit("auto", rccl, STEPPING, RasBudget()), Missing)


def test_what_a_refusal_means() -> None:
    """An old release has no RAS; a newer one is switched off or elsewhere; no verdict follows."""
    assert "no RAS" in refusal_meaning(nccl((2, 21, 5)))
    assert "NCCL_RAS_ENABLE=0" in refusal_meaning(nccl((2, 27, 5)))
    assert "before 2.24" in refusal_meaning(Missing("unread"))
