"""Reads pickles of plain data and nothing else: no name is looked up, nothing is called.

A machine of its own, not a restricted ``pickle.Unpickler``: that one can be made to allocate
gigabytes by a few bytes (a memo index), and its list of harmless names has to be right.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

MAX_STEPS = 20_000_000
MAX_INTEGER_BYTES = 64
MAX_CONTAINERS = 4_000_000  # an empty set of one byte takes 200 here
# Integers up to here have hashes of their own: larger ones can be chosen to have all the same.
_MAX_KEY = (1 << 61) - 2


class PickleRefused(ValueError):
    """Not a pickle of plain data: it names code, is cut, or is built to exhaust us."""


class _Mark:
    """Where a sequence of items starts on the stack."""


_MARK = _Mark()
_I4, _U2, _U4, _U8, _F8 = (struct.Struct(f) for f in ("<i", "<H", "<I", "<Q", ">d"))

_FORBIDDEN = {
    ord("c"): "a global",
    0x93: "a global",
    ord("i"): "a global",
    ord("o"): "an object",
    0x81: "an object",
    0x92: "an object",
    ord("R"): "a call",
    ord("b"): "a call",
    0x82: "an extension",
    0x83: "an extension",
    0x84: "an extension",
    ord("P"): "a persistent id",
    ord("Q"): "a persistent id",
}


def load_plain(data: bytes, *, max_steps: int = MAX_STEPS) -> object:
    """The value of a pickle made of dicts, lists, tuples, sets, text, bytes and numbers.

    Raises PickleRefused. Values may share parts with themselves: walk them with a limit.
    """
    machine = _Machine(data)
    try:
        for _ in range(max_steps):
            code = machine.data[machine.place]
            machine.place += 1
            if code == 0x2E:
                return machine.stack.pop()
            step = _STEPS.get(code)
            if step is None:
                what = _FORBIDDEN.get(code, f"opcode 0x{code:02x}")
                raise PickleRefused(f"refused: it holds {what} at byte {machine.place - 1}")
            step(machine)
    except PickleRefused:
        raise
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, struct.error) as error:
        raise PickleRefused("cut or damaged") from error
    except (MemoryError, OverflowError, RecursionError) as error:
        raise PickleRefused("too large") from error
    raise PickleRefused("too long")


class _Machine:
    """The stack machine's state."""

    __slots__ = ("containers", "data", "memo", "place", "stack")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0
        self.containers = 0
        self.stack: list[object] = []
        self.memo: dict[int, object] = {}

    def take(self, size: int) -> bytes:
        end = self.place + size
        if size < 0 or end > len(self.data):
            raise PickleRefused("cut or damaged")
        piece = self.data[self.place : end]
        self.place = end
        return piece

    def line(self) -> bytes:
        end = self.data.index(b"\n", self.place)
        piece = self.data[self.place : end]
        self.place = end + 1
        return piece

    def number(self, form: struct.Struct) -> int:
        (value,) = form.unpack_from(self.data, self.place)
        self.place += form.size
        return int(value)

    def keep(self, container: object) -> None:
        """Put a new list, tuple, dict or set on the stack."""
        self.containers += 1
        if self.containers > MAX_CONTAINERS:
            raise PickleRefused("too large")
        self.stack.append(container)

    def items(self) -> list[object]:
        """What stands above the last mark, which goes with it."""
        stack = self.stack
        place = len(stack) - 1
        while stack[place] is not _MARK:
            place -= 1
            if place < 0:
                raise PickleRefused("cut or damaged")
        found = stack[place + 1 :]
        del stack[place:]
        return found


def _push(value: object) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(value)


def _integer(form: struct.Struct) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(machine.number(form))


def _byte(machine: _Machine) -> None:
    machine.stack.append(machine.take(1)[0])


def _long(size: Callable[[_Machine], int]) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        piece = machine.take(size(machine))
        if len(piece) > MAX_INTEGER_BYTES:
            raise PickleRefused("too large")
        machine.stack.append(int.from_bytes(piece, "little", signed=True))

    return step


def _text(size: Callable[[_Machine], int]) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(
        machine.take(size(machine)).decode("utf-8", "replace")
    )


def _bytes(size: Callable[[_Machine], int]) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(machine.take(size(machine)))


def _size1(machine: _Machine) -> int:
    return machine.take(1)[0]


def _size4(machine: _Machine) -> int:
    return machine.number(_U4)


def _size8(machine: _Machine) -> int:
    return machine.number(_U8)


def _written_int(machine: _Machine) -> None:
    piece = machine.line().rstrip(b"L")
    if len(piece) > MAX_INTEGER_BYTES:
        raise PickleRefused("too large")
    machine.stack.append({b"00": False, b"01": True}.get(piece, int(piece)))


def _written_text(machine: _Machine) -> None:
    machine.stack.append(machine.line().decode("utf-8", "replace").strip("'\""))


def _float(machine: _Machine) -> None:
    (value,) = _F8.unpack_from(machine.data, machine.place)
    machine.place += 8
    machine.stack.append(value)


def _get(index: Callable[[_Machine], int]) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(machine.memo[index(machine)])


def _put(index: Callable[[_Machine], int]) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        machine.memo[index(machine)] = machine.stack[-1]

    return step


def _written_index(machine: _Machine) -> int:
    return int(machine.line()[:20])


def _append(machine: _Machine) -> None:
    value = machine.stack.pop()
    _list(machine).append(value)


def _appends(machine: _Machine) -> None:
    items = machine.items()
    _list(machine).extend(items)


def _list(machine: _Machine) -> list[object]:
    target = machine.stack[-1]
    if not isinstance(target, list):
        raise PickleRefused("cut or damaged")
    return target


def _set_item(machine: _Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    _dict(machine)[_simple(key)] = value


def _set_items(machine: _Machine) -> None:
    items = machine.items()
    _dict(machine).update(_pairs(items))


def _dict(machine: _Machine) -> dict[object, object]:
    target = machine.stack[-1]
    if not isinstance(target, dict):
        raise PickleRefused("cut or damaged")
    return target


def _add_items(machine: _Machine) -> None:
    items, target = machine.items(), machine.stack[-1]
    if not isinstance(target, set):
        raise PickleRefused("cut or damaged")
    target.update(map(_simple, items))


def _tuple(size: int) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        stack = machine.stack
        if len(stack) < size:
            raise PickleRefused("cut or damaged")
        items = tuple(stack[-size:])
        del stack[-size:]
        machine.keep(items)

    return step


def _from_items(make: Callable[[list[object]], object]) -> Callable[[_Machine], None]:
    return lambda machine: machine.keep(make(machine.items()))


def _pairs(items: list[object]) -> dict[object, object]:
    return dict(zip(map(_simple, items[::2]), items[1::2], strict=True))


def _frozen(items: list[object]) -> object:
    return frozenset(map(_simple, items))


def _simple(key: object) -> object:
    """A value whose hash takes no time and cannot be chosen to be that of all others."""
    if key is None or isinstance(key, (str, bytes)):
        return key
    if isinstance(key, int) and abs(key) <= _MAX_KEY:
        return key
    raise PickleRefused("refused: a key that is no text and no usual number")


_STEPS: dict[int, Callable[[_Machine], object]] = {
    0x80: lambda machine: machine.take(1),
    0x95: lambda machine: machine.take(8),
    ord("("): _push(_MARK),
    ord("0"): lambda machine: machine.stack.pop(),
    ord("1"): lambda machine: machine.items(),
    ord("2"): lambda machine: machine.stack.append(machine.stack[-1]),
    ord("N"): _push(None),
    0x88: _push(True),
    0x89: _push(False),
    ord("J"): _integer(_I4),
    ord("K"): _byte,
    ord("M"): _integer(_U2),
    ord("I"): _written_int,
    ord("L"): _written_int,
    0x8A: _long(_size1),
    0x8B: _long(_size4),
    ord("F"): lambda machine: machine.stack.append(float(machine.line()[:64])),
    ord("G"): _float,
    ord("S"): _written_text,
    ord("V"): _written_text,
    ord("X"): _text(_size4),
    0x8C: _text(_size1),
    0x8D: _text(_size8),
    ord("T"): _text(_size4),
    ord("U"): _text(_size1),
    ord("B"): _bytes(_size4),
    ord("C"): _bytes(_size1),
    0x8E: _bytes(_size8),
    ord("]"): lambda machine: machine.keep([]),
    ord("}"): lambda machine: machine.keep({}),
    0x8F: lambda machine: machine.keep(set()),
    ord(")"): _push(()),
    ord("a"): _append,
    ord("e"): _appends,
    ord("s"): _set_item,
    ord("u"): _set_items,
    0x90: _add_items,
    ord("l"): _from_items(lambda items: items),
    ord("t"): _from_items(tuple),
    ord("d"): _from_items(_pairs),
    0x91: _from_items(_frozen),
    0x85: _tuple(1),
    0x86: _tuple(2),
    0x87: _tuple(3),
    ord("g"): _get(_written_index),
    ord("h"): _get(_size1),
    ord("j"): _get(_size4),
    ord("p"): _put(_written_index),
    ord("q"): _put(_size1),
    ord("r"): _put(_size4),
    0x94: lambda machine: machine.memo.__setitem__(len(machine.memo), machine.stack[-1]),
}
