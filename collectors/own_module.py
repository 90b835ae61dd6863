"""The command that runs one of our own modules as a process."""

from __future__ import annotations

import json
import sys

# -I: a training repository's own `queue.py` or `types.py` must not shadow the library's.
# -B: on a full disk CPython takes a cut .pyc for a whole one, and no later import gets past it.
_OPTIONS = ("-I", "-B")
_RUN_MODULE = (
    "import sys, json; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from importlib import import_module; "
    "sys.exit(import_module(sys.argv.pop(1)).main(sys.argv[1:]))"
)


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs ``main(arguments)`` of one of our modules, whatever the directory."""
    path = json.dumps([entry for entry in sys.path if entry])
    return [sys.executable, *_OPTIONS, "-c", _RUN_MODULE, path, module, *arguments]
