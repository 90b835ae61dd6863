"""The wheel must hold exactly our packages and data files, and nothing that pollutes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
ROOMS = ("schemas", "rules", "collectors", "renderers", "engine")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS: dict[str, Any] = PROJECT["tool"]["setuptools"]


def package_of(path: Path) -> str:
    """The package that a file of a room belongs to."""
    return "whyhang." + ".".join(path.parent.relative_to(ROOT).parts)


def source_files() -> list[Path]:
    """Every file of the five rooms that git would track."""
    return [
        path
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]


def test_every_package_is_listed() -> None:
    """A package that is not listed works in an editable install and is absent from the wheel."""
    found = {package_of(path) for path in source_files() if path.name == "__init__.py"}
    assert found == set(SETUPTOOLS["packages"])


def test_every_data_file_is_shipped() -> None:
    """Every file that is not Python matches a glob of its package."""
    data: dict[str, list[str]] = SETUPTOOLS["package-data"]
    missing = []
    for path in source_files():
        if path.suffix == ".py":
            continue
        package = package_of(path)
        while package not in SETUPTOOLS["packages"]:
            package = package.rpartition(".")[0]
        below = path.relative_to(ROOT / Path(*package.split(".")[1:])).as_posix()
        if not any(fnmatch(below, glob) for glob in data["*"] + data.get(package, [])):
            missing.append(str(path.relative_to(ROOT)))
    assert missing == []


def test_links_lead_to_the_rooms() -> None:
    """Editors and checkers see the namespace right after a clone."""
    for room in ROOMS:
        assert (ROOT / ".dev" / "whyhang" / room).resolve() == (ROOT / room).resolve()


@pytest.mark.integration
def test_wheel_holds_exactly_our_files(tmp_path: Path) -> None:
    """The built wheel contains every file of the rooms under `whyhang/` and nothing else."""
    # A build leaves its folder beside the sources, and a stale one would end up in the wheel.
    source = tmp_path / "source"
    source.mkdir()
    for room in ROOMS:
        shutil.copytree(ROOT / room, source / room, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", str(source)]
    subprocess.run([*build, "-w", str(tmp_path)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == {f"whyhang/{path.relative_to(ROOT).as_posix()}" for path in source_files()}
