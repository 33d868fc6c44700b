"""`explain` gives the same answer for DataFrames, files that Spark wrote, and Arrow tables (tests/unit)."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from routing.cases.question_source import ExplainSource
from routing.cases.questions import QuestionError, StoredMessage
from routing.errors import InputError
from routing.views.explain.explaining import explain
from tests.crowded import BROKEN, OF_CONVERSATIONS, QUESTIONS, WRONG, crowded, handle
from tests.estate_rows import conversation, message, small_estate
from tests.frames import arrow, frame_of, frames, rows_of
from tests.stored import config_of, save_estate, store_estate
from tests.unit.explained_rows import columns_of_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from routing.config import TableLocation


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, DataFrame]:
    return frames(spark, crowded())


def test_explain_over_frames_equals_explain_over_arrow(spark: SparkSession, tables: dict[str, DataFrame]) -> None:
    """The dialog of m2 is bound, m1 has several stored statuses, and the next message has the first possible time.

    A test below covers the last possible time and a request, with tables that only Spark reads.
    """
    for question in (StoredMessage("m2"), StoredMessage("m1"), StoredMessage("early"), QUESTIONS[-1]):
        answer = explain(tables, question)
        assert answer == explain(arrow(crowded()), question), question
    for rows in (answer.verdict, answer.steps):
        assert rows_of(rows.to_spark(spark)) == [dict(row) for row in rows]
        assert rows.to_arrow().to_pylist() == [dict(row) for row in rows]


def test_conversations_are_found_in_frames(tables: dict[str, DataFrame]) -> None:
    """The same messages are found and the same questions refused, also with tables of an older release."""
    arrow_tables = arrow(crowded())
    # These questions cover each source of a conversation. The notation of its id is parsed before tables are read.
    for place in (1, 3, 5, 7, 8):
        question, message_id, others = OF_CONVERSATIONS[place]
        answer = explain(tables, question)
        [verdict] = answer.verdict
        assert (verdict["message_id"], answer.others) == (message_id, others), question
        assert answer == explain(arrow_tables, question), question
    older = {**tables, "observed_routing": tables["observed_routing"].drop("conversation_handle")}
    assert explain(older, StoredMessage(conversation=conversation(2))).others == 0
    for name in ("unknown conversation", "handle of messages that are gone", "both ends", "two instances"):
        texts = []
        for each in (tables, arrow_tables):
            with pytest.raises(QuestionError) as caught:
                explain(each, WRONG[name])
            texts.append(str(caught.value))
        assert texts[0] == texts[1]
    with pytest.raises(QuestionError, match="is stored"):
        explain(older, StoredMessage(conversation=handle(20)))


def test_files_that_spark_wrote_are_read_without_it(spark: SparkSession, tmp_path: Path) -> None:
    """Spark stores times in another form. Times of all years stay the same."""
    tables = crowded()
    timed = {key: tables.pop(key) for key in ("routes", "messages", "observed_routing", "imports")}
    settings = config_of(save_estate(tables, store_estate(spark, timed, tmp_path / "in")), tmp_path)
    arrow_tables = arrow(crowded())
    for question in QUESTIONS:
        assert explain(settings, question, spark=spark) == explain(arrow_tables, question), question
    # Spark reads the tables that delta-rs cannot read correctly.
    _set(spark, settings.tables["messages"], "delta.enableDeletionVectors", "true")
    spark.sql(f"DELETE FROM delta.`{settings.tables['messages']}` WHERE message_id = 'm3'")
    for location in (settings.tables["routes"], settings.import_tables["observed_routing"]):
        _set(spark, location, "delta.columnMapping.mode", "name")
    # m9 finds the request of m4 pending.
    for question in (StoredMessage("m9"), StoredMessage("late")):
        assert explain(settings, question, spark=spark) == explain(arrow_tables, question), question
    with pytest.raises(QuestionError, match="no message 'm3' is stored"):
        explain(settings, StoredMessage("m3"), spark=spark)


def _set(spark: SparkSession, location: TableLocation, name: str, value: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{location}` SET TBLPROPERTIES ('{name}' = '{value}')")


def test_invalid_questions_raise_the_same_error_in_both_engines(tables: dict[str, DataFrame]) -> None:
    for name in ("on two instances", "unknown database"):
        texts = []
        for input_tables in (tables, arrow(crowded())):
            with pytest.raises(QuestionError) as caught:
                explain(input_tables, WRONG[name])
            texts.append(str(caught.value))
        assert texts[0] == texts[1]


def test_faults_that_concern_the_message_stop_it(tables: dict[str, DataFrame]) -> None:
    with pytest.raises(InputError) as caught:
        explain(tables, StoredMessage("m4", BROKEN))
    assert str(caught.value).startswith("the input tables have 3 faulty rows: routes (broken, Sales, , NULL):")


@pytest.mark.parametrize("as_of", [None, 0])
def test_other_messages_come_in_order_with_any_part_size(spark: SparkSession, as_of: int | None) -> None:
    """Some rows have equal times and ids, and two parts are needed."""
    from routing.schemas import MESSAGES

    rng = random.Random(7)
    rows = [
        message(
            n % 9,
            "//nowhere",
            enqueue_time=f"2026-01-05T12:00:0{rng.randint(0, 3)}Z",
            database_name=rng.choice(["Sales", "Stock", None]),
            is_initiator=rng.choice([True, False]),
            to_broker_instance=rng.choice([None, "", "b"]),
        )
        for n in range(60)
    ]
    tables = {**frames(spark, small_estate()), "messages": frame_of(spark, rows, MESSAGES)}
    parts = list(replace(ExplainSource.of(tables), first_part=7).chunks(as_of)("hub", "//nowhere"))
    assert len(parts) == 2
    assert len(parts[0]["messages"]) == 7
    found = [row for part in parts for row in part["messages"].dicts()]
    times = [(row["enqueue_time"] if as_of is None else as_of, row["message_id"]) for row in found]
    assert times == sorted(times)
    # Only rows with the same deciding values as others may be left out at the end of a part.
    decides = ["message_id", "database_name", "is_initiator"] + (["enqueue_time"] if as_of is None else [])
    kinds = [
        {(*(row[name] for name in decides), row["to_broker_instance"] or "") for row in group}
        for group in (columns_of_rows(rows, MESSAGES).dicts(), found)
    ]
    assert kinds[0] == kinds[1]
    dialogs = {found for part in parts for found in part["dialogs"].values["conversation_id"]}
    assert dialogs == {conversation(2)}
