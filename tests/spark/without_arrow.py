"""Run sbroute in a separate process for test_without_arrow. The first argument lists packages to hide."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from typing import Any

MISSING = sys.argv[1].split(",")


class Without(PathFinder):
    """Finds all packages except these, as if they were not installed."""

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> Any:
        return None if fullname.partition(".")[0] in MISSING else super().find_spec(fullname, path, target)


if __name__ == "__main__":
    sys.meta_path[:] = [Without if finder is PathFinder else finder for finder in sys.meta_path]
    from routing import cli

    sys.exit(cli.main(sys.argv[2:]))
