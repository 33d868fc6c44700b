"""Golden texts: what the program says, kept in files and compared word by word.

``SBROUTE_UPDATE_GOLDEN=1`` writes them anew; look at the difference before keeping it.
"""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
UPDATE = "SBROUTE_UPDATE_GOLDEN"


def assert_golden(name: str, text: str) -> None:
    """The text equals the golden file of that name."""
    file = GOLDEN / name
    text = text.rstrip("\n") + "\n"
    if os.environ.get(UPDATE):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert file.is_file(), f"{file} is missing: run the test with {UPDATE}=1 and read what it wrote"
    assert text == file.read_text(encoding="utf-8")
