"""``python -m whyhang.engine``: the same as the console script."""

from whyhang.engine.cli.main import main

raise SystemExit(main())
