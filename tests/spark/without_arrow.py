"""What test_without_arrow runs as a process of its own: some packages, named first, are not to be had in it."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    # None in place of a module makes its import fail, as where it is not installed.
    for name in sys.argv[1].split(","):
        sys.modules[name] = None  # type: ignore[assignment]
    from routing import cli

    sys.exit(cli.main(sys.argv[2:]))
