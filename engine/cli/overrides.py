"""``--set NAME=VALUE``: another value for a variable of the rules."""

from __future__ import annotations

import argparse

from whyhang.schemas.errors import UsageError


def add_set_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--set``."""
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another value for a variable of `vars:`; may be repeated",
    )


def read_overrides(options: argparse.Namespace) -> dict[str, str]:
    """The values by name. Raises UsageError for what is no NAME=VALUE."""
    overrides: dict[str, str] = {}
    for given in options.overrides:
        name, equals, value = given.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UsageError(f"--set {given}: not NAME=VALUE", "for example: --set still=30s")
        overrides[name.strip().removeprefix("$")] = value.strip()
    return overrides
