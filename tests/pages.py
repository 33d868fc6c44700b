"""What the pages show of the program's output."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def excerpt(page: str, name: str) -> str:
    """The text between the marks of an excerpt."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(
        rf"<!-- {name} excerpt -->\n```text\n(.*?)```\n<!-- end of {name} excerpt -->", text, re.DOTALL
    )
    assert found is not None
    return found.group(1)
