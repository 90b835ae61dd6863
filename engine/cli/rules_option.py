"""``-c FILE``: the rules of a command; without it those of the working directory."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whyhang.rules.ruleset import Ruleset

DEFAULT_PATH = "hang.yaml"


def add_rules_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``-c``."""
    parser.add_argument(
        "-c",
        "--config",
        type=Path,
        metavar="FILE",
        help=f"the rules (default: ./{DEFAULT_PATH} if there is one, else the built-in pack)",
    )


def find_rules(named: Path | None) -> Path | None:
    """The file named, else the working directory's; None stands for the built-in pack."""
    default = Path(DEFAULT_PATH)
    return named or (default if default.is_file() else None)


def read_rules(
    options: argparse.Namespace,
    *,
    overrides: Mapping[str, str] | None = None,
    lenient: bool = False,
) -> Ruleset:
    """The rules of a command. Raises UsageError and RuleErrors as ``load_ruleset`` does.

    ``lenient`` goes on with the built-in pack where nobody named the broken file: what is urgent
    must not wait until it is mended.
    """
    from whyhang.rules.load import load_ruleset
    from whyhang.schemas.errors import WhyhangError

    try:
        return load_ruleset(find_rules(options.config), overrides=overrides)
    except WhyhangError as error:
        if options.config or not lenient:
            raise
        print(f"whyhang: {error.message}", file=sys.stderr)
        print(f"whyhang: WARNING: {DEFAULT_PATH} is not used; built-in rules", file=sys.stderr)
        return load_ruleset(None)
