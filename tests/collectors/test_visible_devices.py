"""Which devices an environment shows, in the drivers' own reading of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.collectors.visible_devices import NO_DEVICE, Device, device_of, visible_devices
from whyhang.schemas.missing import Missing

SLICE = "MIG-7e0c9a3d-1111-2222-3333-444444444444"


@pytest.mark.parametrize(
    ("visible", "local_rank", "device"),
    [
        ("3", 0, Device(index=3)),
        ("3", 5, Device(index=3)),
        ("2, 3", 1, Device(index=3)),
        ("0,1", 2, NO_DEVICE),
        ("0,1", None, NO_DEVICE),
        ("GPU-8932f937,GPU-0a", 1, Device(uuid="GPU-0a")),
        (SLICE, 0, Device(uuid=SLICE)),
        ("", 0, NO_DEVICE),
        ("-1", 0, NO_DEVICE),
        ("NoDevFiles", 0, NO_DEVICE),
        ("0,-1,1", 0, Device(index=0)),
        ("0,-1,1", 1, Device(index=0)),
        ("1,oops,0", 2, Device(index=1)),
        ("1,1", 0, NO_DEVICE),
        ("01,1", 1, NO_DEVICE),
        ("9" * 40, 0, NO_DEVICE),
    ],
)
def test_the_device_of_a_local_rank(visible: str, local_rank: int | None, device: Device) -> None:
    """A list ends at the first name that is none; one with a name twice shows nothing."""
    assert device_of(visible, local_rank) == device


@pytest.mark.parametrize(
    ("environ", "visible"),
    [
        ({}, None),
        ({"CUDA_VISIBLE_DEVICES": ""}, ""),
        ({"HIP_VISIBLE_DEVICES": "1"}, "1"),
        ({"ROCR_VISIBLE_DEVICES": "2"}, "2"),
        ({"ASCEND_RT_VISIBLE_DEVICES": "3"}, "3"),
        ({"CUDA_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "1"}, "1"),
    ],
)
def test_the_list_that_is_shown(environ: dict[str, str], visible: str | None) -> None:
    """Each vendor has its variable; without any all devices are shown."""
    assert visible_devices({"SECRET": "x", **environ}) == visible


@pytest.mark.parametrize(
    "environ",
    [
        {"CUDA_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "2"},
        {"ROCR_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "2,3"},
    ],
)
def test_lists_that_contradict_each_other_are_unknown(environ: dict[str, str]) -> None:
    """HIP counts what ROCR left over, so that equal lists mean different devices."""
    assert isinstance(visible_devices(environ), Missing)


@given(st.text(max_size=60), st.integers(0, 9))
def test_any_text_may_stand_there(visible: str, local_rank: int) -> None:
    """Never an error, and never a device that the list does not name."""
    device = device_of(visible, local_rank)
    assert device.index is None or str(device.index) in visible
    assert device.uuid is None or device.uuid in visible
