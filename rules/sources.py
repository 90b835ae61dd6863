"""Where the text of a ``hang.yaml`` and of what it includes comes from."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from whyhang.schemas.errors import UsageError

DEFAULT = "builtin:pytorch@1"
_BUILTIN = re.compile(r"builtin:([a-z0-9_-]+)@(\d+)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file's name for people and its text; ``directory`` is what relative includes start from.

    ``major`` is the version that the including file asks for, None for files.
    """

    name: str
    text: str
    directory: Path | None = None
    major: str | None = None

    @property
    def is_builtin(self) -> bool:
        """Whether it ships with whyhang."""
        return is_builtin(self.name)


class NotIncluded(Exception):
    """An include that cannot be followed; ``help`` is the remedy."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.help = help


def is_builtin(name: str) -> bool:
    """Whether a source of that name is a pack that ships with whyhang."""
    return name.startswith("builtin:")


def directory() -> Path:
    """Where the packs that ship with whyhang are."""
    return Path(__file__).parent / "packs"


def builtin_names() -> tuple[str, ...]:
    """The packs that ship with whyhang."""
    names = (entry.name for entry in directory().iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml")))


def included(text: str, base: Path | None) -> Source:
    """The source that an item of ``include:`` means. Raises NotIncluded."""
    if is_builtin(text):
        return _builtin(text)
    if "://" in text:
        raise NotIncluded(
            f"`{text}` is an address", "copy the pack into the repository: nothing is fetched"
        )
    # One file has one name, however it is reached: files that include each other are found out.
    joined = Path(text) if base is None else base / text
    path = type(joined)(os.path.normpath(joined))
    try:
        return read_source(path)
    except UsageError as error:
        raise NotIncluded(error.message) from None


def _builtin(text: str) -> Source:
    match = _BUILTIN.match(text)
    if match is None:
        raise NotIncluded(f"`{text}` is not a pinned pack", f"write, for example, `{DEFAULT}`")
    if match[1] not in builtin_names():
        raise NotIncluded(
            f"unknown pack `{match[1]}`", f"there is {', '.join(builtin_names()) or 'none'}"
        )
    content = (directory() / f"{match[1]}.yaml").read_text(encoding="utf-8")
    return Source(name=text, text=content, major=match[2])


def read_source(path: Path) -> Source:
    """A file's text. Raises UsageError if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {path}: not UTF-8 at byte {error.start}") from None
    return Source(name=str(path), text=text, directory=path.parent)
