"""One stack frame and the names it goes by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_PACKAGE_ROOT = re.compile(r"^.*/(?:site-packages|dist-packages)/")
_STDLIB_ROOT = re.compile(r"^.*/lib(?:64)?/python\d[\d.]*/")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+\Z")


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame as py-spy prints it.

    ``module`` is the library of a native frame and None for a Python frame. ``line`` is 0 where
    it is unknown, ``filename`` None where the report gives none.
    """

    name: str
    filename: str | None = None
    short_filename: str | None = None
    line: int = 0
    module: str | None = None

    @property
    def is_native(self) -> bool:
        """Whether this is a frame of C or C++ code."""
        return self.module is not None

    @property
    def function(self) -> str:
        """The bare function name (see :func:`bare_function`); native names stay whole."""
        return self.name if self.is_native else bare_function(self.name)

    @property
    def module_name(self) -> str:
        """The dotted module below the package root, such as ``torch.autograd.graph``."""
        return module_name(self.filename, self.short_filename)

    @property
    def id(self) -> str:
        """``module.function``, the name that frame patterns match; native: the demangled name."""
        if self.is_native:
            return self.name
        module = self.module_name
        return f"{module}.{self.function}" if module else self.function

    @property
    def qualified_id(self) -> str:
        """``module.Class.function`` as newer Pythons report it; equal to :attr:`id` elsewhere."""
        if self.is_native:
            return self.name
        module = self.module_name
        return f"{module}.{self.name}" if module else self.name

    @property
    def in_package(self) -> bool:
        """Whether the file lies below an installed package's root."""
        return self.filename is not None and _PACKAGE_ROOT.match(self.filename) is not None

    @property
    def in_stdlib(self) -> bool:
        """Whether the file lies in Python's own library (and in no installed package)."""
        return (
            self.filename is not None
            and not self.in_package
            and _STDLIB_ROOT.match(self.filename) is not None
        )

    @property
    def place(self) -> str:
        """``path:line`` for people: the short path, the line only where it is known."""
        path = self.short_filename or self.filename or self.module or "?"
        return f"{path}:{self.line}" if self.line else path

    def __str__(self) -> str:
        return f"{self.function} {self.place}"


@lru_cache(maxsize=65536)
def bare_function(name: str) -> str:
    """The function's own name: what follows the last ``.<locals>.``, then the last dotted part.

    A name in angle brackets (``<lambda>``, ``<listcomp>``) is never cut.
    """
    local = name.rpartition(".<locals>.")[2]
    if local.startswith("<"):
        return local
    return local.rpartition(".")[2] or local


@lru_cache(maxsize=65536)
def module_name(filename: str | None, short_filename: str | None) -> str:
    """The dotted module of a file: its path below the package root, else its short path."""
    path = filename or ""
    for root in (_PACKAGE_ROOT, _STDLIB_ROOT):
        match = root.match(path)
        if match is not None:
            path = path[match.end() :]
            break
    else:
        path = short_filename or filename or ""
    path = path.removesuffix(".py").removesuffix("/__init__")
    return path.strip("/").replace("/", ".")


def is_address(name: str) -> bool:
    """Whether a native name is an unresolved address, which differs in every process."""
    return _ADDRESS.match(name) is not None
