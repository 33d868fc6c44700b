"""Fixtures of the tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.platforms.browser import Browser, browser


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for all tests of a module."""
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found
