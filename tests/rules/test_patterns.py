"""Frame patterns against a slow and simple reading of the same words."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from whyhang.rules.patterns import is_regex, matcher

NAMES = st.text("ab.", max_size=8)
GLOBS = st.text("ab.*?", max_size=6)


def slow_glob(glob: str, name: str) -> bool:
    """Whether a glob without brackets matches the whole name, by the definition."""
    if not glob:
        return not name
    if glob[0] == "*":
        return any(slow_glob(glob[1:], name[cut:]) for cut in range(len(name) + 1))
    return bool(name) and glob[0] in ("?", name[0]) and slow_glob(glob[1:], name[1:])


def slow_match(glob: str, name: str) -> bool:
    """Whether a glob matches a name or one of its dotted suffixes, by the definition."""
    starts = [0, *(number + 1 for number, char in enumerate(name) if char == ".")]
    return any(slow_glob(glob, name[start:]) for start in starts)


@given(st.lists(GLOBS, max_size=3), NAMES)
@example(["a.b"], "b.a.b")
@example(["b*"], "a.b.c")
def test_globs_match_as_defined(globs: list[str], name: str) -> None:
    """The compiled matcher and the definition agree on every name."""
    assert matcher(globs)(name) == any(slow_match(glob, name) for glob in globs)


@given(st.text(max_size=10), st.text(max_size=10))
def test_no_pattern_breaks_the_matcher(glob: str, name: str) -> None:
    """Any text but a broken regex is a pattern."""
    if not is_regex(glob):
        matcher([glob])(name)


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("barrier", "torch.distributed.distributed_c10d.barrier", True),
        ("barrier", "torch.monitored_barrier", False),
        ("torch.*.barrier", "torch.distributed.distributed_c10d.barrier", True),
        ("*dataloader*", "torch.utils.data.dataloader.fetch", True),
        ("*.Barrier", "a.barrier", False),
        ("nccl[AB]*", "ncclAllReduce", True),
        ("nccl[!AB]*", "ncclAllReduce", False),
        ("x[a-c]", "x.xb", True),
        ("x[]]", "x]", True),
        ("x[", "x[", True),
        ("<lambda>", "train.<lambda>", True),
        ("/^torch\\..*barrier$/", "torch.x.barrier", True),
        ("/arri/", "torch.x.barrier", True),
        ("/^arri/", "torch.x.barrier", False),
    ],
)
def test_examples(pattern: str, name: str, matches: bool) -> None:
    """Suffixes, crossing dots, case, brackets and regexes."""
    assert matcher([pattern])(name) is matches


def test_nothing_matches_no_patterns() -> None:
    """An empty list holds nobody, not everybody."""
    assert not matcher([])("a")


def test_a_broken_regex_is_refused() -> None:
    """Two broken regexes that would make a whole one are both refused."""
    with pytest.raises(re.error):
        matcher(["/(a/", "/b)/"])
