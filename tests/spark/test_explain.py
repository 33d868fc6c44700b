"""What `explain` reads: DataFrames and Arrow tables say the same, and only what concerns the message matters."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import routing
from routing.analysis.explain.asked import Described, Question, QuestionError, Stored
from routing.analysis.explain.explaining import Explanation, explain
from routing.analysis.explain.reading import Source
from routing.analysis.explain.verdicts import RUN_ID
from routing.errors import InputError
from tests.frames import Tables, frame_of, frames, moment, rows_of
from tests.golden_texts import assert_golden
from tests.stored import STORE, config_of, conversation, message, route, small_estate
from tests.unit.explained_rows import columns_of_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
BROKEN = "broken"


def arrow(tables: Tables) -> dict[str, Any]:
    """Rows as Arrow tables; columns left out are null."""
    from routing.schemas import INPUTS
    from routing.storage.arrow import table_of

    rows = {key: [{name: moment(value) for name, value in row.items()} for row in tables[key]] for key in tables}
    return {key: table_of(rows[key], INPUTS[key]) for key in tables}


def _crowded() -> Tables:
    """The small estate with a message that asks after m4, one on two instances, and all times there are.

    The rows of an instance of their own are faulty.
    """
    tables = small_estate()
    twin = message(1, "//far", message_id="twin")
    tables["messages"] += [
        message(9, "//nowhere", enqueue_time="2026-01-05T12:00:01Z"),
        message(4, "//nowhere", instance_name=BROKEN),
        message(1, "//old", message_id="early", enqueue_time="0001-01-01T00:00:00Z"),
        message(1, "//old", message_id="late", enqueue_time="9999-12-31T23:59:59.999999Z"),
        twin,
        {**twin, "instance_name": "spoke"},
    ]
    tables["routes"] += [
        route("Bad", "a", "no address", instance_name=BROKEN),
        route("", None, "", instance_name=BROKEN),
        route("Old", "//old", "LOCAL", valid_from="0001-01-01T00:00:00.000001Z"),
        route("New", "//old", "tcp://new:4022", lifetime="9999-12-31T23:59:59.999999Z"),
    ]
    return tables


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, DataFrame]:
    return frames(spark, _crowded())


def both(tables: dict[str, DataFrame], question: Question) -> Explanation:
    """The explanation by DataFrames, held to be that by Arrow tables."""
    found, by_arrow = explain(tables, question), explain(arrow(_crowded()), question)
    assert found == by_arrow
    return found


def test_one_message_as_resolve_decides_it(spark: SparkSession, tables: dict[str, DataFrame]) -> None:
    """What concerns the message is enough: other instances may even be faulty."""
    sound = {**tables, "routes": tables["routes"].where("instance_name = 'hub'")}
    done = routing.resolve(spark, sound, run_id=RUN_ID)
    expected = {row["message_id"]: row for row in rows_of(done.resolved_routes.where("instance_name = 'hub'"))}
    done.unpersist()
    assert expected["m9"]["matching_step"] == 7
    # m9 finds that m4 has asked; m2 is bound by its dialog.
    for name in ("m9", "m2", "early"):
        answer = both(tables, Stored(name, "hub"))
        assert answer.verdict.rows == (expected[name],)
        if name == "m9":
            told = [(row["finding"], row["name"]) for row in answer.steps if row["item"] == "REQUEST"]
            assert told == [("OPEN", "m4")]
        if name == "early":
            assert [row["at"].year for row in answer.steps if row["at"] is not None] == [1, 1]


def test_the_last_moment_there_is(tables: dict[str, DataFrame]) -> None:
    answer = both(tables, Stored("late"))
    [verdict] = answer.verdict
    assert (verdict["route_name"], verdict["decided_at"]) == ("Old", verdict["enqueue_time"])
    assert verdict["decided_at"] == datetime(9999, 12, 31, 23, 59, 59, 999999, timezone.utc)
    assert [(row["name"], row["at"].year) for row in answer.steps if row["reasons"]] == [("New", 9999)]


def test_a_described_message_uses_the_dialog_and_the_time(tables: dict[str, DataFrame]) -> None:
    answer = both(tables, Described("hub", "Sales", "//stock", NOON, conversation_id=conversation(2)))
    [verdict] = answer.verdict
    assert (verdict["broker_instance"], verdict["matching_step"], verdict["decided_at"]) == (STORE, 1, NOON)


def test_a_configuration_is_read_as_it_says(spark: SparkSession, stored: Path, tmp_path: Path) -> None:
    settings = config_of(stored, tmp_path, "resolve.as_of=2026-01-05T12:30:00Z")
    for answer in (explain(settings, Stored("m2"), spark=spark), explain(settings, Stored("m2"))):
        assert [row["finding"] for row in answer.steps if row["item"] == "TIME"] == ["AS_OF"]
        [verdict] = answer.verdict
        assert verdict["broker_instance"] == STORE


def test_both_forms_of_an_answer(spark: SparkSession, tables: dict[str, DataFrame]) -> None:
    answer = explain(tables, Stored("m4", "hub"))
    for rows in (answer.verdict, answer.steps):
        assert rows_of(rows.to_spark(spark)) == [dict(row) for row in rows]
        assert rows.to_arrow().to_pylist() == [dict(row) for row in rows]


WRONG: dict[str, Question] = {
    "unknown message": Stored("m77"),
    "on two instances": Stored("twin"),
    "no guid": Stored("m6"),
    "unknown instance": Described("Hub", None, "S", NOON),
    "unknown database": Described("hub", "sales", "S", NOON),
    "dialog id that is no guid": Described("hub", None, "S", NOON, conversation_id="42"),
}


def test_what_cannot_be_answered(tables: dict[str, DataFrame]) -> None:
    texts, by_arrow = [], arrow(_crowded())
    for name, question in WRONG.items():
        for given in (tables, by_arrow):
            with pytest.raises(QuestionError) as caught:
                explain(given, question)
            assert caught.value.exit_code == 2
            texts.append(f"{name}: sbroute: {caught.value}\n")
    assert texts[::2] == texts[1::2]
    assert_golden("explain_refused.txt", "".join(texts[::2]))


def test_faults_that_concern_the_message_stop_it(tables: dict[str, DataFrame]) -> None:
    with pytest.raises(InputError) as caught:
        explain(tables, Stored("m4", BROKEN))
    text = str(caught.value)
    assert text.startswith("the input tables have 3 faulty rows: routes (broken, Sales, , NULL):")
    with pytest.raises(InputError, match="input tables are missing: routes "):
        explain({key: tables[key] for key in ("databases", "services", "instances", "messages")}, Stored("m1"))


@pytest.mark.parametrize("as_of", [None, 0])
def test_other_messages_come_in_their_order_whatever_their_parts(spark: SparkSession, as_of: int | None) -> None:
    """Rows of equal times and ids among them, and as many parts as it takes."""
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
    parts = list(Source(tables, first_part=7).chunks(as_of)("hub", "//nowhere"))
    assert len(parts) == 2
    assert len(parts[0]["messages"]) == 7
    found = [row for part in parts for row in part["messages"].dicts()]
    times = [(row["enqueue_time"] if as_of is None else as_of, row["message_id"]) for row in found]
    assert times == sorted(times)
    # Rows that are equal in all that decides may be left out at the end of a part, and no others.
    decides = ["message_id", "database_name", "is_initiator"] + (["enqueue_time"] if as_of is None else [])
    kinds = [
        {(*(row[name] for name in decides), row["to_broker_instance"] or "") for row in group}
        for group in (columns_of_rows(rows, MESSAGES).dicts(), found)
    ]
    assert kinds[0] == kinds[1]
    dialogs = {found for part in parts for found in part["dialogs"].values["conversation_id"]}
    assert dialogs == {conversation(2)}
