"""How many examples Hypothesis tries: a part of them in `make test`, all in `make test-rules`."""

from __future__ import annotations

import os

TRIES_ALL = os.environ.get("SBROUTE_EXAMPLES") == "all"


def count_examples(whole: int) -> int:
    """Return how many of so many examples are tried."""
    return whole if TRIES_ALL else whole // 5
