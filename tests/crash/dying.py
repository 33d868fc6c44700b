"""Run sbroute and kill it by ``kill -9`` at a point: ``python -m tests.crash.dying POINT ARGUMENT…``."""

from __future__ import annotations

import os
import signal
import sys

from routing import cli
from tests.hooks import hooked


def main() -> int:
    """Run the command until the point is reached."""
    point, *arguments = sys.argv[1:]

    def hook(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    with hooked(hook):
        return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
