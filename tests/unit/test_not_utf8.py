"""Bytes that are no UTF-8 in tables that Arrow reads: a message is set aside, a configuration row is a fault."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from routing.cases.questions import QuestionError, StoredMessage
from routing.errors import InputError
from routing.lint.linting import lint
from routing.messages import validate
from routing.rules.rejecting import TEXTS
from routing.rules.text import UndecodedText, decode_utf8
from routing.schemas import INPUTS, KEYS, RESOLVED_ROUTES, ColumnKind
from routing.views.diff.diffing import diff
from routing.views.explain.explaining import explain
from routing.views.messages.message_filter import ask
from routing.views.messages.message_list import list_messages
from tests.arrow_keys import check_tables, count_keys
from tests.estate_rows import conversation, small_estate
from tests.frames import Tables, arrow, arrow_of
from tests.hostile import UNDECODABLE
from tests.lint_drafts import NOW
from tests.listed_messages import RESOLVED
from tests.random_estates import spoil_messages
from tests.reference.estates import draw_estates
from tests.reference.resolver import resolve as reference


@pytest.mark.parametrize(("data", "shown"), UNDECODABLE)
def test_each_byte_that_cannot_be_decoded_is_written_as_its_number(data: bytes, shown: str) -> None:
    read = decode_utf8(data)
    assert (read, type(read)) == (shown, UndecodedText)
    assert type(decode_utf8(shown.encode())) is str


def test_keys_and_rejected_messages_are_those_of_the_rules() -> None:
    rng = random.Random(6)
    for estate in draw_estates(rng, 30, 60):
        tables = spoil_messages(rng, estate)
        arrow_tables = arrow(tables)
        checked = check_tables(arrow_tables)
        counts = count_keys(arrow_tables["messages"], checked.dialogs, checked, None)
        theirs = reference(tables, None).rejected_messages
        assert any("NOT_UTF8" in code for row in theirs for code in row["reasons"])
        assert (counts.rows_read, counts.rows_rejected) == (len(tables["messages"]), len(theirs))


def _spoilt_settings() -> Iterator[tuple[str, str]]:
    for key in KEYS:
        for field in INPUTS[key]:
            if str(field.kind) in (str(ColumnKind.STRING), "array<string>"):
                yield key, field.name


def _spoil(tables: Tables, key: str, name: str) -> dict[str, Any]:
    """Arrow tables of which one table's first row has bytes in a column that are no UTF-8."""
    import pyarrow

    first, *rest = tables[key]
    if name != "addresses":
        return arrow({**tables, key: [{**first, name: b"tcp://\x81"}, *rest]})
    arrow_tables = arrow(tables)
    bytes_of = [[b"tcp://fine:1", b"tcp://\x81"], *([None] * len(rest))]
    spoilt = pyarrow.array(bytes_of, pyarrow.list_(pyarrow.binary())).cast(pyarrow.list_(pyarrow.binary()))
    texts = pyarrow.ListArray.from_arrays(spoilt.offsets, spoilt.values.view(pyarrow.string()))
    place = arrow_tables[key].column_names.index(name)
    return {**arrow_tables, key: arrow_tables[key].set_column(place, name, texts)}


@pytest.mark.parametrize(("key", "name"), list(_spoilt_settings()), ids=lambda value: value)
def test_a_row_of_the_configuration_is_a_fault(key: str, name: str) -> None:
    spoiled = _spoil(small_estate(), key, name)
    with pytest.raises(InputError) as caught:
        validate.check(validate.read(spoiled))
    assert f"{name} 'tcp://\\x81' is not UTF-8" in str(caught.value)
    faults = [
        row for row in lint({name: spoiled[name] for name in KEYS}, now=NOW).findings if row["code"] == "SBR010"
    ]
    assert any(f"{name} 'tcp://\\x81' is not UTF-8" in str(text) for row in faults for text in row.values())


def test_duplicate_dialogs_are_reported_once() -> None:
    first, *_ = small_estate()["dialogs"]
    rows = [{**first, "far_service": b"\x81"}, {**first, "far_service": "x"}]
    arrow_tables = arrow({**small_estate(), "dialogs": rows})
    with pytest.raises(InputError, match="2 faulty rows"):
        validate.check(validate.read(arrow_tables))


@pytest.mark.parametrize("name", TEXTS)
def test_explain_gives_the_reason_of_the_rejection(name: str) -> None:
    tables = small_estate()
    tables["messages"][0][name] = tables["messages"][0].get(name, "").encode() + b"\x81"
    asked = StoredMessage(conversation=conversation(1)) if name != "conversation_id" else StoredMessage("m1")
    with pytest.raises(QuestionError) as caught:
        explain(arrow(tables), asked)
    assert f"NOT_UTF8_{name.upper()}" in str(caught.value)


def test_explain_decides_other_messages() -> None:
    """Message 4 asks for a route. An earlier rejected message does not."""
    tables = small_estate()
    early = {**tables["messages"][3], "message_id": b"m0\x81", "enqueue_time": "2026-01-05T11:00:00Z"}
    tables["messages"].append(early)
    [verdict] = explain(arrow(tables), StoredMessage("m4")).verdict
    assert verdict["reason"] == "ROUTE_REQUESTED"
    assert [
        row["name"] for row in explain(arrow(tables), StoredMessage("m4")).steps if row["item"] == "REQUEST"
    ] == []


def test_diff_counts_undecodable_messages_as_rejected() -> None:
    tables = small_estate()
    tables["messages"][2]["from_service_name"] = b"\x81"
    moved = {**tables, "routes": [row for row in tables["routes"] if row["name"] != "Far"]}
    spoilt = diff(arrow(tables), arrow(moved), at=NOW)
    tables["messages"][2]["from_service_name"] = "//sender"
    assert (spoilt.changed, diff(arrow(tables), arrow(moved), at=NOW).changed) == (0, 1)


@pytest.mark.parametrize("limit", [1, 2, 50])
def test_messages_of_an_older_release_are_listed(limit: int) -> None:
    others = [row for row in RESOLVED if row["attempt"] == 1]
    texts = [{"message_id": b"%d\xff" % number, "to_service_name": b"//\x81"} for number in (1, 2)]
    rows = [{**row, **text} for row, text in zip(others, texts, strict=False)]
    arrow_tables = {"resolved_routes": arrow_of([*rows, *RESOLVED], RESOLVED_ROUTES)}
    whole = list_messages(arrow_tables, ask(), now=NOW)
    assert sum(row["to_service_name"] == r"//\x81" for row in whole.messages) == 2
    some = list_messages(arrow_tables, ask(limit=limit), now=NOW)
    assert [row["message_id"] for row in some.messages] == [row["message_id"] for row in whole.messages][:limit]
