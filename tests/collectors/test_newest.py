"""What is read of a flood of lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from whyhang.collectors.newest import Newest


def test_the_newest_lines_with_a_literal() -> None:
    """However much noise comes after it, the last progress is found, and one line from before."""
    steps = b"".join(b"step %d\n" % number for number in range(1000))
    lines = Newest((b"step",)).lines(steps + b"noise\n" * 100_000).split(b"\n")
    assert lines == [b"step 984", *(b"step %d" % number for number in range(993, 1000)), b""]


def test_states_of_a_bar_are_lines() -> None:
    """A bar that is redrawn within one physical line gives its last states."""
    bars = b"".join(b"\r%d%%| |" % number for number in range(100))
    assert Newest((b"%|",)).lines(b"noise\n" + bars).split(b"\n")[-2] == b"99%| |"


def test_colours_within_words() -> None:
    """A colour in the midst of a literal hides nothing."""
    assert Newest((b"INFO - step:",)).lines(b"INFO - \x1b[31mstep: 1\n") == b"INFO - step: 1\n"


def test_each_writer_is_heard() -> None:
    """Where many ranks print, the last line of each is kept: none looks as if it lagged."""
    data = b"".join(b"%d: step %d\n" % (n % 100, n) for n in range(5000)) + b"0: step 9\n" * 200
    kept = Newest((b"step",)).lines_of_all(data).split(b"\n")
    assert {line.partition(b":")[0] for line in kept[:-1]} == {b"%d" % n for n in range(100)}
    assert kept[0] == b"1: step 4901"


def test_a_writer_who_fell_silent_costs_one_look() -> None:
    """Once all are heard who wrote before, older lines are left; who fell silent is let go."""
    newest = Newest((b"step",))
    both = b"1: step 1\n" + b"0: step 2\n" * 50
    assert newest.lines_of_all(both).startswith(b"1: step 1\n")
    assert newest.lines_of_all(both).startswith(b"1: step 1\n")
    assert b"1:" not in newest.lines_of_all(b"0: step 3\n" * 50)
    assert newest.lines_of_all(both) == b"0: step 2\n" * 7


@given(
    st.lists(st.sampled_from((b"step 1", b"st", b"\n", b"\r", b"ep", b"x" * 3000, b"\x1b[1m"))),
)
def test_any_bytes(parts: list[bytes]) -> None:
    """Of any data only whole lines with a literal are given, the last ones among them."""
    data = b"".join(parts)
    bare = data.replace(b"\x1b[1m", b"").replace(b"\r", b"\n").split(b"\n")
    telling = [line for line in bare if b"step" in line]
    kept = Newest((b"step",)).lines(data).split(b"\n")[:-1]
    assert kept == telling[-16:-7][:1] + telling[-7:]
