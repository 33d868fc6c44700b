"""``make demo-import``: check a folder of exports, import it, resolve its messages, then apply the correction."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from routing import cli

HERE = Path(__file__).parent
# import.yaml puts its tables there.
TABLES = HERE.parents[1] / "build" / "demo-import"
EXPORTS, HUB, FIX = "exports", "scripts/hub.sql", "scripts/shop-fix.sql"
CONFIG = ("--config", "import.yaml")
# The exports were made at 18:00, and the correction an hour later.
COMMANDS = (
    ("check", EXPORTS, HUB, "--then", FIX),
    # The same with tables, which keep the history of routes and hold messages by the million.
    ("import", "catalog", EXPORTS, *CONFIG),
    ("import", "tsql", HUB, "--instance", "HUB", "--scripted-at", "2025-06-01T08:00Z", *CONFIG),
    ("resolve", "--quiet", *CONFIG),
    ("messages", "--now", "2026-01-05T18:00Z", *CONFIG),
    ("import", "tsql", FIX, "--instance", "SHOP", "--scripted-at", "2026-01-05T19:00Z", *CONFIG),
    ("resolve", "--quiet", "--as-of", "2026-01-05T19:05Z", *CONFIG),
    ("messages", "--now", "2026-01-05T19:05Z", *CONFIG),
)


def main() -> int:
    """Run the commands one after another; the first that fails ends the demo."""
    shutil.rmtree(TABLES, ignore_errors=True)
    for command in COMMANDS:
        words = [os.path.relpath(HERE / word) if (HERE / word).exists() else word for word in command]
        sys.stdout.write(f"\n$ sbroute {' '.join(words)}\n")
        sys.stdout.flush()
        if status := cli.main(words):
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
