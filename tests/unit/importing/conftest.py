"""What the tests of the importers share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone

import pytest

from routing.importing.tsql import Script, read_script


@pytest.fixture
def read() -> Callable[..., Script]:
    """Reads a script written at the start of May 2024, in database db."""

    def read_text(text: str, **options: object) -> Script:
        settings: dict[str, object] = {
            "file": "f.sql",
            "scripted_at": datetime(2024, 5, 1, tzinfo=timezone.utc),
            "database": "db",
        }
        return read_script(text, **{**settings, **options})  # type: ignore[arg-type]

    return read_text
