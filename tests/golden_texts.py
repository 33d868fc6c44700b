"""Golden texts: the program's output in files, compared word by word.

``SBROUTE_UPDATE_GOLDEN=1`` rewrites them. Check the difference before you keep it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
UPDATE = "SBROUTE_UPDATE_GOLDEN"
_VALUE_TWICE = re.compile(r" ([A-Z]+), (?=--[a-z-]+ \1\b)")


def assert_golden_help(name: str, text: str) -> None:
    """The help of a command equals the golden file, however this Python's argparse breaks and writes its lines."""
    file = GOLDEN / name
    if os.environ.get(UPDATE) or not file.is_file():
        assert_golden(name, text)
    assert _as_any_python(text) == _as_any_python(file.read_text(encoding="utf-8"))


def _as_any_python(text: str) -> str:
    """Normalise a help text: its usage in one line, and an option's value once, as since Python 3.13."""
    usage, _, options = text.rstrip("\n").partition("\n\n")
    return f"{' '.join(usage.split())}\n\n{_VALUE_TWICE.sub(', ', options)}"


def assert_golden(name: str, text: str) -> None:
    """The text equals the golden file of that name."""
    file = GOLDEN / name
    text = text.rstrip("\n") + "\n"
    if os.environ.get(UPDATE):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert file.is_file(), f"{file} is missing: run the test with {UPDATE}=1 and read what it wrote"
    assert text == file.read_text(encoding="utf-8")
