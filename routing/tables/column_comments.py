"""Read the comments of columns that catalog tables get, which are the meanings in tables.md."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml


@cache
def _comments() -> dict[str, dict[str, str]]:
    text = files("routing.tables").joinpath("column_comments.yaml").read_text(encoding="utf-8")
    comments: dict[str, dict[str, str]] = yaml.safe_load(text)
    return comments


def comments_of(key: str) -> Mapping[str, str]:
    """Return the comment of each column of a table, by the table's configuration key."""
    return _comments()[key]
