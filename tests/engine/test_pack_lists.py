"""The frame lists of the built-in pack: no function is in two of them."""

from __future__ import annotations

import pytest

from whyhang.engine.positions import MAIN_THREADS, Positions
from whyhang.rules.catalogue import catalogue
from whyhang.rules.load import load_ruleset
from whyhang.rules.patterns import is_regex
from whyhang.schemas.frame import Frame
from whyhang.schemas.stack import Stack

# It sharpens: its frames are walked over like those of `transparent`, of which it is a part.
SHARPENING = frozenset({"condition_waits"})
SITE = "/opt/venv/lib/python3.12/site-packages/"


def frame_of(name: str) -> Frame:
    """The frame of ``module.function``."""
    module, _, function = name.rpartition(".")
    path = module.replace(".", "/") + ".py"
    return Frame(function, SITE + path, path, 1)


def names() -> list[str]:
    """The known functions of torch, and what the lists' own patterns spell out."""
    lists = load_ruleset().lists.values()
    spelled = [
        pattern.replace("*", "some")
        for entry in lists
        if entry.name != MAIN_THREADS
        for pattern in entry.patterns
        if not is_regex(pattern) and "[" not in pattern
    ]
    return [name for name in (*catalogue().functions, *spelled) if "." in name]


def test_lists_are_disjoint() -> None:
    """No known function is claimed by two lists: which of them decides would be chance."""
    positions = Positions(load_ruleset().lists)
    double = {
        name: claims
        for name in names()
        if len(claims := positions.claims(frame_of(name)) - SHARPENING) > 1
    }
    assert len(names()) > 1000
    assert not double


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("torch.distributed.distributed_c10d.all_reduce", "communication"),
        ("torch.distributed.checkpoint.utils.all_gather", "checkpointing"),
        ("torch.distributed.distributed_c10d.destroy_process_group", "teardown"),
        ("torch.cuda.synchronize", "device_wait"),
        ("megatron.core.pipeline_parallel.p2p_communication._communicate", "point_to_point"),
        ("deepspeed.runtime.zero.stage3.fetch_sub_module", "behind_communication"),
        ("zmq.sugar.socket.recv_multipart", "external_wait"),
        ("wandb.sdk.wandb_run.log", "logging_service"),
        ("torch.utils.data._utils.worker._worker_loop", "idle"),
    ],
)
def test_what_is_claimed(name: str, expected: str) -> None:
    """Frames of known frameworks stand in the list that they are meant for."""
    positions = Positions(load_ruleset().lists)
    frame = frame_of(name)
    assert positions.claims(frame) == {expected}
    assert positions.top(Stack((frame,))) == frame
