"""Run an import and end it by ``os._exit``: ``python -m tests.crash.ending NUMBER SCENARIO FOLDER``.

NUMBER counts the moments after each commit, and before each change of a file or folder of the tables by Python. A
completed import prints the number of its moments.
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
    """Import until the moment is reached."""
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
