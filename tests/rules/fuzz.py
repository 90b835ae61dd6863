"""Damages good and bad rule files and checks that nothing but findings comes of it.

``python tests/rules/fuzz.py 10000 [SEED]`` tries so many mutations. What still loads is formatted,
too: the second time must change nothing, and the meaning must stay.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from whyhang.rules.findings import format_findings
from whyhang.rules.fmt import format_text
from whyhang.rules.load import check_files
from whyhang.schemas.errors import UsageError

HERE = Path(__file__).parent
GOOD = (HERE / "example.yaml", HERE.parents[1] / "hang.yaml")
BAD = tuple(sorted((HERE / "bad").glob("*.yaml")))
PIECES = (
    b"", b"\n", b":", b": ", b"  ", b"{", b"}", b"[", b"]", b"- ", b'"', b"'", b"|", b">", b"#",
    b" #", b"&a ", b"*a", b"!t ", b"null", b"?", b"%", b"\t", b"\0", b"\xff", b"\xc2\x85",
    b"\xe2\x80\xa8", b"\r\n", b"<<", b"---\n", b"...\n", b"$still", b"10s", b"90%", b"/(/",
    b"not ", b" and ", b" or ", b"(", b")", b"any rank is ", b"ranks", b"count(odd)", b"override",
    b"replace", b"disabled: true", b"9" * 400, b"1e999", b"- - - ", "\U0001f600".encode(),
    b"\xef\xbb\xbf",
)  # fmt: skip
Mutation = Callable[[random.Random, bytes], bytes]


def mutate_bytes(chance: random.Random, text: bytes) -> bytes:
    """Put a piece in place of a few bytes."""
    start = chance.randint(0, len(text))
    return text[:start] + chance.choice(PIECES) + text[start + chance.choice((0, 1, 1, 3, 20)) :]


def mutate_lines(chance: random.Random, text: bytes) -> bytes:
    """Drop, double, swap or indent lines."""
    lines = text.split(b"\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    kind = chance.randrange(4)
    if kind == 0:
        del lines[one]
    elif kind == 1:
        lines.insert(other, lines[one])
    elif kind == 2:
        lines[one], lines[other] = lines[other], lines[one]
    else:
        lines[one] = b" " * chance.randint(0, 8) + lines[one].lstrip()
    return b"\n".join(lines)


def mutate_tokens(chance: random.Random, text: bytes) -> bytes:
    """Drop, double or swap words and marks."""
    tokens = re.findall(rb"\w+|\s+|[^\w\s]", text)
    if not tokens:
        return text
    one, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
    kind = chance.randrange(3)
    if kind == 0:
        del tokens[one]
    elif kind == 1:
        tokens.insert(one, tokens[other])
    else:
        tokens[one], tokens[other] = tokens[other], tokens[one]
    return b"".join(tokens)


MUTATIONS: tuple[Mutation, ...] = (mutate_bytes, mutate_lines, mutate_tokens)


def damaged(chance: random.Random) -> bytes:
    """One of the files, damaged in a few places."""
    text = chance.choice(chance.choice((GOOD, BAD))).read_bytes()
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        text = chance.choice(MUTATIONS)(chance, text)
    return text


def attempt(text: bytes, directory: Path) -> str:
    """What comes of a file: ``findings``, ``unreadable``, ``clean`` or ``formatted``.

    Anything else is an exception, and a fault.
    """
    path = directory / "hang.yaml"
    path.write_bytes(text)
    try:
        findings = check_files([path])
    except UsageError:
        return "unreadable"
    for finding in findings:
        assert finding.span.line >= 1 and finding.span.column >= 1, finding
    assert list(format_findings(findings)) or not findings
    if any(finding.severity == "error" for finding in findings):
        return "findings"
    plain = path.read_text(encoding="utf-8")
    once = format_text(plain)
    assert format_text(once) == once
    return "clean" if once == plain else "formatted"


def fuzz(count: int, seed: int) -> Counter[str]:
    """How many of so many damaged files came to what; raises at the first fault."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "included").symlink_to(HERE / "bad" / "included")
        for number in range(count):
            text = damaged(random.Random(f"{seed}-{number}"))
            try:
                outcomes[attempt(text, Path(name))] += 1
            except Exception as error:
                raise AssertionError(f"mutation {seed}-{number} of {text!r}") from error
    return outcomes


def main(arguments: list[str]) -> int:
    """Run from the command line: 0 no fault, 1 a traceback."""
    count = int(arguments[0]) if arguments else 1000
    seed = int(arguments[1]) if len(arguments) > 1 else 0
    started = time.monotonic()
    try:
        outcomes = fuzz(count, seed)
    except AssertionError:
        traceback.print_exc()
        return 1
    shown = ", ".join(f"{number} {outcome}" for outcome, number in outcomes.most_common())
    print(f"{count} mutations, no traceback: {shown} ({time.monotonic() - started:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
