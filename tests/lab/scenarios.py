"""The scenarios of the lab, by name."""

from __future__ import annotations

from tests.lab.harness import Scenario


def _fault(name: str) -> tuple[str, ...]:
    return ("--fault", name)


SCENARIOS = {
    "worker_block": Scenario(options=_fault("worker_block")),
    "user_sleep": Scenario(options=_fault("user_sleep"), output="pipe", looks=True),
    "d_state": Scenario(options=_fault("d_state"), act="freeze"),
    "sigstop": Scenario(act="sigstop"),
    "all_data_block": Scenario(options=_fault("all_data_block")),
    "mismatch": Scenario(options=_fault("mismatch")),
    "kill9": Scenario(act="kill9", ends=True),
    "kill9_plain": Scenario(act="kill9", ends=True, under="nothing"),
    # Two epochs together are longer than the stall time.
    "three_epochs": Scenario(
        options=("--report", "bar", "--epochs", "3", "--steps", "60"), output="pipe", ends=True
    ),
    "slow": Scenario(
        options=(*_fault("slow"), "--steps", "13", "--fault-step", "12"), ends=True, looks=True
    ),
    "collect_worker_block": Scenario(options=_fault("worker_block"), under="collect"),
    "collect_user_sleep": Scenario(options=_fault("user_sleep"), under="collect"),
    "collect_sigstop": Scenario(act="sigstop", under="collect"),
    "collect_without_log": Scenario(options=_fault("worker_block"), under="collect", output="null"),
}
