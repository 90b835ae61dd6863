"""Clean pieces from raw log bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.collectors.normalise import MAX_PIECE_BYTES, Normaliser, normalise


def texts(data: bytes) -> list[str]:
    return [piece.text for piece in normalise(data)]


def test_carriage_returns_cut_pieces() -> None:
    """A bar that is redrawn in one physical line gives one piece per state, blanks dropped."""
    data = b"\r  0%|  | 0/9 [00:00<?]\r 50%|  | 4/9 [00:02<00:02]\r     \rdone\r\n\n"
    assert texts(data) == ["  0%|  | 0/9 [00:00<?]", " 50%|  | 4/9 [00:02<00:02]", "done"]


def test_broken_bytes_become_text() -> None:
    """Bytes that are not UTF-8 are replaced, the hole of a truncated file is stripped."""
    assert texts(b"\0\0\0step 1\n\xff\xfe step 2\n") == ["step 1", "\ufffd\ufffd step 2"]


def test_long_piece_is_capped() -> None:
    """Of a huge line head and tail remain, within 64 KiB."""
    (piece,) = texts(b"head" + b"x" * 5_000_000 + b"tail\n")
    assert len(piece) <= MAX_PIECE_BYTES + 5
    assert piece.startswith("head") and piece.endswith("tail")


def test_colours_and_backspaces_go() -> None:
    """Escape sequences and backspaces leave only the text."""
    assert texts(b"\x1b[31mstep: \x1b[0m7\x08\x08\x1b]0;title\x07 loss\n") == ["step: 7 loss"]


@pytest.mark.parametrize(
    ("raw", "text", "rank", "local"),
    [
        (b"[default3]:step 1", "step 1", 3, True),
        (b"[rank3]: Traceback", "Traceback", 3, False),
        (
            b"[rank12]:[E1129 ProcessGroupNCCL.cpp:684] x",
            "[E1129 ProcessGroupNCCL.cpp:684] x",
            12,
            0,
        ),
        (b"[1,5]<stdout>:step 1", "step 1", 5, False),
        (b"  7: iteration 3", "iteration 3", 7, False),
        (b"\x1b[36m(TaskRunner pid=22, ip=10.0.0.2)\x1b[0m step:1 - x", "step:1 - x", None, False),
        (b"demo-job/0 [default2]:step 1", "step 1", 2, True),
        (b"[pod/train-0/pytorch] [rank4]: oops", "oops", 4, False),
        (b"(W pid=1) hello [repeated 7x across cluster]", "hello", None, False),
    ],
)
def test_prefix_gives_rank(raw: bytes, text: str, rank: int | None, local: bool) -> None:
    """Known prefixes are stripped and the rank they carry is kept, global before local."""
    (piece,) = normalise(raw)
    assert (piece.text, piece.rank, piece.local) == (text, rank, bool(local))


def test_four_prefixes_at_most() -> None:
    """The fifth prefix stays in the text."""
    (piece,) = normalise(b"  1:   2:   3:   4:   5: x")
    assert piece.text == "  5: x"


def test_container_lines_are_joined() -> None:
    """Lines that a container runtime cut are joined, also over two reads, and keep their stamp."""
    reader = Normaliser()
    head = b"2026-11-29T10:00:00.5Z stdout P iteration  1"
    assert list(reader.feed(head + b"\n")) == []
    (piece,) = reader.feed(b"2026-11-29T10:00:01.5Z stdout F 2/ 100 |\n")
    assert piece.text == "iteration  12/ 100 |"
    assert piece.stamp == "2026-11-29T10:00:01.5Z"


def test_text_glued_to_a_bar_is_cut() -> None:
    """A log record written while the bar's line was open becomes a piece of its own."""
    data = b" 2%|#   | 20/1250 [01:17<1:18:55,  3.85s/it][INFO|trainer.py:2957] saving"
    assert texts(data) == [
        " 2%|#   | 20/1250 [01:17<1:18:55,  3.85s/it]",
        "[INFO|trainer.py:2957] saving",
    ]


@given(st.binary(max_size=400))
def test_never_raises(data: bytes) -> None:
    """Whatever bytes come, clean non-blank pieces come out."""
    for piece in normalise(data):
        assert piece.text.strip()
        assert "\n" not in piece.text and "\r" not in piece.text


@given(
    st.lists(
        st.sampled_from(
            [b"[default1]:", b"\x1b[1m", b"  3: ", b"\r", b"\n", b"\0", b"step 1 ", b"9%|"]
        )
    )
)
def test_never_raises_on_likely_bytes(parts: list[bytes]) -> None:
    """Prefixes, escapes and breaks in any order are survived."""
    for piece in normalise(b"".join(parts)):
        assert piece.text.strip()
