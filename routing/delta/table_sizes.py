"""How much data tables hold, as far as that is known before there is a session."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path

from routing.config import TableLocation
from routing.delta import local_disks
from routing.delta.commits import is_local

# Some hundred thousand messages: less than it takes for compiled code to be worth its compiling.
LITTLE = 16 * 1024**2


def are_small(
    inputs: Iterable[TableLocation], outputs: Iterable[TableLocation], settings: Mapping[str, str] | None = None
) -> bool:
    """Return whether all tables are local and hold at most `LITTLE` bytes of files, old versions included.

    An output that is not there yet takes nothing; an input has to be there. By the settings of the session to be
    a path may be another disk's. Not more is looked at than it takes to know.
    """
    inputs = [local_disks.place(location, None) for location in inputs]
    tables = [*inputs, *(local_disks.place(location, None) for location in outputs)]
    if any(local_disks.is_open(location, settings or {}) for location in tables):
        return False
    if not all(is_local(location) for location in tables) or not all(Path(one.text).is_dir() for one in inputs):
        return False
    sizes = (size for location in tables for size in _sizes(location.text))
    return all(total <= LITTLE for total in accumulate(sizes))


def _sizes(folder: str) -> Iterator[int]:
    for place, _, files in os.walk(folder):
        for file in files:
            try:
                yield os.stat(os.path.join(place, file)).st_size  # noqa: PTH116, PTH118 - many files
            except FileNotFoundError:
                # Removed meanwhile, by VACUUM say.
                continue
