"""The functions of PyTorch and NCCL that whyhang knows, to tell patterns that match none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from whyhang.rules.patterns import is_regex, matcher

# Only patterns that begin like this claim to be about PyTorch or NCCL.
_CLAIMS = re.compile(r"torch\.|nccl[A-Z]")
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Functions as ``module.function``, and packages of which only the name is known."""

    functions: tuple[str, ...]
    packages: tuple[str, ...]

    def has_match(self, pattern: str) -> bool:
        """Whether a glob matches a known function, or may match one of a package's."""
        if _in_packages(pattern, self.packages):
            return True
        return any(map(matcher([pattern]), self.functions))


def claims_to_be_known(pattern: str) -> bool:
    """Whether a pattern is about a function that the catalogue must have."""
    return not is_regex(pattern) and _CLAIMS.match(pattern) is not None


@cache
def catalogue() -> Catalogue:
    """The catalogue that ships with whyhang."""
    text = (files("whyhang.rules") / "torch_functions.txt").read_text(encoding="utf-8")
    return read_catalogue(text.splitlines())


def read_catalogue(lines: Iterable[str]) -> Catalogue:
    """A catalogue from lines ``module: function function`` and ``package.*``."""
    functions: list[str] = []
    packages: list[str] = []
    for line in lines:
        module, colon, names = line.partition(":")
        if line.startswith("#") or not line:
            continue
        if colon:
            functions.extend(f"{module}.{name}" if module else name for name in names.split())
        else:
            packages.append(module.removesuffix("*"))
    return Catalogue(functions=tuple(functions), packages=tuple(packages))


def _in_packages(pattern: str, packages: Iterable[str]) -> bool:
    wild = _WILD.search(pattern)
    fixed = pattern if wild is None else pattern[: wild.start()]
    return any(
        fixed.startswith(package) or (wild is not None and package.startswith(fixed))
        for package in packages
    )
