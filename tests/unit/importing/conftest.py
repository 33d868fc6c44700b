"""Fixtures of the importers' tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timezone

import pytest

from routing.importing.tsql.script_reader import ReadScript, read_script


@pytest.fixture(autouse=True, scope="package")
def _no_session_is_given() -> Iterator[None]:
    """Hide the sessions of other tests in this process from commands."""
    from routing.sessions import session

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "is_given", lambda: False)
        yield


@pytest.fixture
def read() -> Callable[..., ReadScript]:
    """Reads a script written at the start of May 2024, in database db."""

    def read_text(text: str, **options: object) -> ReadScript:
        settings: dict[str, object] = {
            "file": "f.sql",
            "scripted_at": datetime(2024, 5, 1, tzinfo=timezone.utc),
            "database": "db",
        }
        return read_script(text, **{**settings, **options})  # type: ignore[arg-type]

    return read_text
