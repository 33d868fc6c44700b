"""Arrow reads texts and messages as the tables of forms say, and equal to the plain rules for every character."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow
import pyarrow.dataset
import pytest

from routing.engines.arrow.message_keys import MessageRows
from routing.engines.arrow.resolved_batches import MessageScan, RejectedRows
from routing.plan.checked_inputs import DialogSurvey, check_inputs
from routing.schemas import MESSAGES
from routing.tables.arrow_forms import (
    fold_texts,
    hash_dialog_ids,
    is_guid,
    leading_addresses,
    read_brokers,
    split_attempts,
    without,
)
from routing.tables.read_rows import read_settings
from tests.frames import arrow, arrow_of
from tests.message_forms import ATTEMPTS, expected_reasons, rejection_tables
from tests.text_forms import FORMS, ascii_texts, differences, other_texts, random_guids

# By name: as Arrow reads an array of texts.
ARROW: dict[str, Callable[[Any], Any]] = {
    "fold": fold_texts,
    "is_guid": is_guid,
    "broker_id": read_brokers,
    "address_in_name": leading_addresses,
}


@pytest.mark.parametrize("form", ARROW)
def test_each_text_is_read_as_its_table_says(form: str) -> None:
    words, expected = zip(*FORMS[form].table, strict=True)
    for texts, wanted in ((words, expected), *(((word,), (one,)) for word, one in FORMS[form].table)):
        assert ARROW[form](pyarrow.array(texts, pyarrow.string())).to_pylist() == list(wanted)


@pytest.mark.parametrize("form", ARROW)
def test_every_text_is_read_as_the_rules_read_it(form: str) -> None:
    words = [*ascii_texts(), *other_texts()]
    values = ARROW[form](pyarrow.array([*words, None], pyarrow.string())).to_pylist()
    assert values.pop() is None
    assert differences(words, values, list(map(FORMS[form].rule, words))) == []


def test_the_hash_of_dialogs() -> None:
    """Of the GUIDs in the table, and of many more, from anywhere in an array."""
    table = {word.lower(): hashed for word, hashed in FORMS["dialog_id_hash"].table if word and len(word) == 36}
    ids = [*table, *random_guids(random.Random(1), 500)]
    whole = pyarrow.array(ids, pyarrow.string())
    for part in (whole, whole[3:], whole[:0]):
        hashes = hash_dialog_ids(part).to_pylist()
        assert hashes == [FORMS["dialog_id_hash"].rule(one) for one in part.to_pylist()]
    assert hash_dialog_ids(whole).to_pylist()[: len(table)] == list(table.values())
    assert len(table) == 4


def test_rejected_messages_have_their_reasons() -> None:
    tables = rejection_tables()
    messages = arrow_of([{**row, "hops_remaining": None} for row in tables["messages"]], MESSAGES)
    hops = pyarrow.array([row["hops_remaining"] for row in tables["messages"]], pyarrow.int64())
    messages = messages.set_column(messages.column_names.index("hops_remaining"), "hops_remaining", hops)
    checked = check_inputs(read_settings(arrow({**tables, "messages": []})), None, DialogSurvey())
    rejected = RejectedRows(MessageScan.of(MessageRows.of(messages, None), None, checked), "r")
    rows = [row for table in rejected.tables() for row in table.to_pylist()]
    assert {row["message_sequence_number"]: row["reasons"] for row in rows} == expected_reasons()
    assert len(rows) == len(expected_reasons())


@pytest.mark.parametrize("is_tried_again", [True, False])
def test_the_last_attempt_of_a_message(is_tried_again: bool) -> None:
    listed = ATTEMPTS if is_tried_again else [row for row in ATTEMPTS if row[2] == 1]
    names = ["instance_name", "message_id", "attempt"]
    columns = [list(column) for column in zip(*(row[:3] for row in listed), strict=True)]
    rows = pyarrow.dataset.dataset(pyarrow.table(columns, names=names))
    last_attempts = sorted(row[:3] for row in listed if row[3] or not is_tried_again)
    attempts = split_attempts(rows, names)
    if not is_tried_again:
        assert attempts is None
        return
    assert attempts is not None
    last = pyarrow.concat_tables([rows.to_table(filter=attempts.once), attempts.last])
    assert sorted(zip(*last.to_pydict().values(), strict=True)) == last_attempts
    rest = without(rows.to_table(), attempts.replaced)
    assert sorted(zip(*rest.to_pydict().values(), strict=True)) == last_attempts
    assert len(attempts.replaced) == len(listed) - len(last_attempts)
