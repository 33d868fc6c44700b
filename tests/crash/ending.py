"""``python -m tests.crash.ending NUMBER SCENARIO FOLDER``: an import, ended by ``os._exit`` at one of its moments.

A moment is each commit that was made, and each change of a file or folder that Python is about to make among the
tables. Writes how many there were, where the import came to its end.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tests.half_imports import MORE_SCENARIOS, SCENARIOS, watched
from tests.imports import no_spark

ENDED = 9
ALL_SCENARIOS = {**SCENARIOS, **MORE_SCENARIOS}
_CHANGES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir")


def main() -> int:
    """Import until the moment has come."""
    number, scenario, folder = int(sys.argv[1]), ALL_SCENARIOS[sys.argv[2]], sys.argv[3]
    moments = 0

    def come_to(_: str) -> None:
        nonlocal moments
        if moments == number:
            os._exit(ENDED)
        moments += 1

    def listen(event: str, values: tuple[Any, ...]) -> None:
        is_write = event == "open" and isinstance(values[2], int) and bool(values[2] & (os.O_WRONLY | os.O_RDWR))
        if (is_write or event in _CHANGES) and str(values[0]).startswith(str(Path(folder, "data"))):
            come_to(event)

    sys.addaudithook(listen)
    with watched(come_to):
        scenario.ended(no_spark(), Path(folder))
    sys.stdout.write(str(moments))
    return 0


if __name__ == "__main__":
    sys.exit(main())
