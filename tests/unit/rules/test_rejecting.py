"""Which message rows cannot be judged: a truth table, and the order of several reasons."""

from __future__ import annotations

from typing import Any

import pytest

from routing.rules.estate import Database, SqlInstance
from routing.rules.rejecting import REQUIRED, TEXTS, is_sound, rejections
from routing.rules.text import decode_utf8
from routing.schemas import MESSAGES, ColumnKind
from tests.message_forms import PLACES, REJECTIONS, SOUND

INSTANCES = {
    name: SqlInstance(name, databases={database: Database(database, None, is_enabled=False)})
    for name, database in PLACES.items()
}
IDS = [str(other) for other, _ in REJECTIONS]


def _row(other: dict[str, Any]) -> dict[str, Any]:
    """A row as tables are read."""
    row = {**SOUND, **other}
    return {name: decode_utf8(value) if isinstance(value, bytes) else value for name, value in row.items()}


@pytest.mark.parametrize(("other", "codes"), REJECTIONS, ids=IDS)
def test_each_faulty_row_has_its_rejections(other: dict[str, Any], codes: list[str]) -> None:
    row = _row(other)
    assert rejections(row, INSTANCES.get(row["instance_name"])) == codes


@pytest.mark.parametrize(("other", "codes"), REJECTIONS, ids=IDS)
def test_the_fast_check_has_the_same_rejections(other: dict[str, Any], codes: list[str]) -> None:
    """The fast check, which ignores instance and database, has the same result."""
    row = _row(other)
    row_codes = [
        code for code in codes if "INSTANCE" not in code and "DATABASE" not in code and "UTF8" not in code
    ]
    names = ("message_id", "conversation_id", "is_initiator", "enqueue_time", "to_service_name", "hops_remaining")
    assert is_sound(*(row[name] for name in names)) is (not row_codes)


def test_required_values_are_those_of_the_table() -> None:
    assert list(REQUIRED) == [field.name for field in MESSAGES if not field.nullable]
    assert list(TEXTS) == [field.name for field in MESSAGES if field.kind == ColumnKind.STRING]
