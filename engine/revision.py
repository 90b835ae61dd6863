"""Files as they stood at a revision of git: ``main:hang.yaml``."""

from __future__ import annotations

import posixpath
import subprocess
from pathlib import Path, PosixPath

from whyhang.schemas.errors import UsageError

TIMEOUT_SECONDS = 30.0


class GitPath(PosixPath):
    """``REVISION:/path/in/the/repository``: a path that is read from git, neighbours included."""

    def read_text(
        self, encoding: str | None = None, errors: str | None = None, newline: str | None = None
    ) -> str:
        """The file's text at that revision. Raises FileNotFoundError."""
        revision, _, path = str(self).partition(":/")
        name = f"{revision}:{posixpath.normpath(path)}"
        answer = _git("cat-file", "blob", name)
        if answer.returncode != 0:
            reason = answer.stderr.decode(errors="replace").strip().splitlines() or ["git failed"]
            raise FileNotFoundError(2, reason[0].removeprefix("fatal: "), name)
        return answer.stdout.decode(encoding or "utf-8", errors or "strict")


def locate(text: str) -> Path:
    """A file, or ``REVISION:path``; a file that exists by the whole name comes first.

    A path that starts with a dot is relative to the current directory, as git has it. Raises
    UsageError outside a repository.
    """
    revision, colon, path = text.partition(":")
    if not colon or not revision or not path or Path(text).exists():
        return Path(text)
    if path.startswith("."):
        answer = _git("rev-parse", "--show-prefix")
        path = posixpath.join(answer.stdout.decode().strip(), path)
    if _git("rev-parse", "--git-dir").returncode != 0:
        raise UsageError(f"{text}: this is no git repository", hint="give two files instead")
    return GitPath(f"{revision}:/{posixpath.normpath(path)}")


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", *arguments], capture_output=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"cannot run git: {error}", hint="give two files instead") from error
