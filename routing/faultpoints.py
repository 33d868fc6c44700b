"""Places where a run ends at once if it is told to: for tests of what a killed run leaves behind.

The environment variable SBROUTE_FAULT names one of them, such as ``before runs`` or ``after resolved_routes``.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "SBROUTE_FAULT"


def reached(point: str) -> None:
    """Kill this very process, as ``kill -9`` would, where the environment names this point."""
    if os.environ.get(VARIABLE) == point:
        os.kill(os.getpid(), signal.SIGKILL)
