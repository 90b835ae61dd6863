"""Which device a process may use, from the variables that show it a part of the machine's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from whyhang.schemas.missing import Missing

# ROCR hides devices before HIP counts them; the others are two names for one list.
_LISTS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES")
_BELOW = "ROCR_VISIBLE_DEVICES"
_UUID_STARTS = ("GPU-", "MIG-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device by its number on the machine or by its UUID, which may be cut; None is unknown."""

    index: int | None = None
    uuid: str | None = None


NO_DEVICE = Device()


def visible_devices(environ: Mapping[str, str]) -> str | Missing | None:
    """The list of devices that an environment shows; None where it shows all of them.

    Lists that renumber each other, or disagree, are Missing.
    """
    lists = {environ[name] for name in _LISTS if name in environ}
    if _BELOW in environ:
        lists = lists | {environ[_BELOW]} if not lists else set()
        return lists.pop() if lists else Missing("one list of visible devices renumbers another")
    if len(lists) > 1:
        return Missing("the lists of visible devices disagree")
    return lists.pop() if lists else None


def device_of(visible: str, local_rank: int | None) -> Device:
    """The device of a local rank in a list of visible ones; NO_DEVICE where that is not known.

    A rank that sees a single device uses it; else PyTorch programs take that of their local rank.
    """
    names = _names(visible)
    if len(set(names)) != len(names):
        return NO_DEVICE  # CUDA shows no device at all then
    if len(names) == 1:
        return _device(names[0])
    if local_rank is None or local_rank >= len(names):
        return NO_DEVICE
    return _device(names[local_rank])


def _names(visible: str) -> list[str]:
    """The devices up to the first name that is none (``-1``, ``NoDevFiles``), as CUDA reads it."""
    names: list[str] = []
    for part in visible.split(","):
        name = part.strip()
        if not (_is_index(name) or name.startswith(_UUID_STARTS)):
            break
        names.append(str(int(name)) if _is_index(name) else name)
    return names


def _device(name: str) -> Device:
    return Device(index=int(name)) if _is_index(name) else Device(uuid=name)


def _is_index(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) <= 6
