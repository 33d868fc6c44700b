"""Spark handles bytes that are not UTF-8 like Arrow: it rejects the message, or reports a fault."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

import routing
from routing.cases.questions import QuestionError, StoredMessage
from routing.errors import InputError
from routing.messages import validate
from routing.rules.text import UndecodedText, decode_utf8
from routing.schemas import INPUTS, MESSAGES, ColumnKind
from routing.tables import frames as storage_frames
from routing.tables.spark_forms import is_utf8, readable
from routing.views.explain.explaining import explain
from tests.estate_rows import conversation, message, small_estate
from tests.frames import frame_of, frames, rows_of
from tests.hostile import UNDECODABLE
from tests.random_estates import Row, assert_runs_agree, spoil_messages
from tests.reference.estates import draw_estates, joined
from tests.stored import config_of, save_estate, store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.core
NOW = datetime(2026, 1, 5, 13, tzinfo=timezone.utc)
# The first and last byte of each kind that UTF-8 distinguishes, and ASCII.
_BYTES = bytes.fromhex("41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff 0a")


@pytest.fixture(params=[True, False], ids=["as this Spark has it", "as Spark 3.5 has it"])
def _either_form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param and hasattr(F, "is_valid_utf8"):
        monkeypatch.delattr(F, "is_valid_utf8")


def _sequences() -> Iterator[bytes]:
    yield from (data for data, _ in UNDECODABLE)
    yield from (b"", b"x" * 100_000, b"\xe9" * 10_000, "caf\u00e9\U0001f600\ufffd".encode())
    rng = random.Random(1)
    yield from (bytes([one, other]) for one in _BYTES for other in _BYTES)
    yield from (bytes(rng.choices(_BYTES, k=rng.randint(3, 9))) for _ in range(3000))


@pytest.mark.usefixtures("_either_form")
def test_spark_sees_and_writes_the_same_as_python(spark: SparkSession) -> None:
    texts = list(_sequences())
    rows = spark.createDataFrame(
        [(place, bytearray(data)) for place, data in enumerate(texts)], "place int, x binary"
    )
    text = F.col("x").cast("string")
    found = rows.select("place", is_utf8(text).alias("is_utf8"), readable(text).alias("readable")).collect()
    assert len(found) == len(texts)
    for row in found:
        expected = decode_utf8(texts[row["place"]])
        assert (row["is_utf8"], row["readable"]) == (not isinstance(expected, UndecodedText), expected)


def set_properties(spark: SparkSession, inputs: Path, properties: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{inputs / 'messages'}` SET TBLPROPERTIES ({properties})")


@pytest.mark.long
def test_new_rows_that_are_not_utf_8_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    tables = small_estate()
    inputs = save_estate(tables, tmp_path / "in", files=1)
    set_properties(spark, inputs, "'delta.columnMapping.mode' = 'name', 'delta.enableChangeDataFeed' = 'true'")
    pending = f"output.pending_messages={tmp_path / 'pending_messages'}"
    config = config_of(inputs, tmp_path, "resolve.mode=incremental", pending)
    routing.run(spark, config, run_id="r0", now=NOW)
    # U+FFFD itself is allowed, as long as no text is undecodable.
    for number, name in ((20, "\ufffd"), (21, b"\x81")):
        new = frame_of(spark, [message(number, "//stock", from_service_name=name)], MESSAGES).coalesce(1)
        store(new, inputs / "messages", "append")
        if number == 20:
            routing.run(spark, config, run_id="r20", now=NOW)
    with pytest.raises(InputError, match=r"bytes that are no UTF-8.*full"):
        routing.run(spark, config, run_id="r21", now=NOW)


@pytest.mark.matrix
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    "is_local",
    [
        pytest.param(True, id="read by Arrow"),
        # Arrow cannot read these messages. The tests with random estates cover this case for Spark too.
        pytest.param(False, id="read by Spark", marks=pytest.mark.long),
    ],
)
def test_a_full_and_an_incremental_run_reject_the_same(
    spark: SparkSession, tmp_path: Path, written_plans: list[tuple[str, str]], is_local: bool
) -> None:
    rng = random.Random(9)
    tables = joined(draw_estates(rng, 3, 40))
    halves = [{**tables, "messages": tables["messages"][half::2]} for half in (0, 1)]
    parts = [spoil_messages(rng, half)["messages"] for half in halves]
    inputs = save_estate({**tables, "messages": []}, tmp_path / "in", files=1)
    if not is_local:
        set_properties(spark, inputs, "'delta.enableDeletionVectors' = 'true'")
    config = config_of(
        inputs, tmp_path, "resolve.mode=incremental", f"output.pending_messages={tmp_path / 'pending_messages'}"
    )

    def run(number: int, part: list[Row], now: datetime) -> dict[str, list[Row]]:
        store(frame_of(spark, part, MESSAGES).coalesce(1), inputs / "messages", "append")
        routing.run(spark, config, run_id=f"run{number}", now=now)
        keys = ("rejected_messages", "resolved_routes", "pending_messages") if number else ()
        return {key: rows_of(spark.read.format("delta").load(str(tmp_path / key))) for key in keys}

    expected = assert_runs_agree(run, tables, parts, [NOW] * len(parts))
    assert any("NOT_UTF8_MESSAGE_ID" in row["reasons"] for row in expected.rejected_messages)
    # These runs have duplicates, and requests in databases and in msdb. The plan of a kept frame includes all kept
    # frames that it reads. Nested in each other, they once made a plan of 14 million characters.
    assert {key for key, _ in written_plans} >= {"rejected_messages", "resolved_routes", "pending_messages"}
    for key, plan in written_plans:
        assert (len(plan) < 150_000, plan.count("InMemoryRelation") < 20) == (True, True), (key, len(plan))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("has_arrow", [True, False])
@pytest.mark.parametrize("key", ["routes", "databases", "services", "instances", "dialogs", "route_requests"])
def test_every_text_of_a_configuration_row_is_a_fault(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, key: str, has_arrow: bool
) -> None:
    if has_arrow and not storage_frames.has_arrow():
        pytest.skip("this Spark gives no rows by Arrow")
    monkeypatch.setattr(storage_frames, "has_arrow", lambda: has_arrow)
    names = [field.name for field in INPUTS[key] if field.kind == ColumnKind.STRING]
    tables = small_estate()
    tables[key] = [{**tables[key][0], **dict.fromkeys(names, b"caf\xe9")}]
    with pytest.raises(InputError) as caught:
        validate.check(validate.read(frames(spark, tables)))
    text = str(caught.value)
    assert [name for name in names if rf"{name} 'caf\xe9' is not UTF-8" not in text] == []


def test_explain_by_spark_says_why_a_run_rejects_it(spark: SparkSession) -> None:
    tables = small_estate()
    tables["messages"][0]["from_service_name"] = b"\x81"
    tables["messages"][1]["database_name"] = b"\x81"
    spark_tables = frames(spark, tables)
    for number, code in ((1, "NOT_UTF8_FROM_SERVICE_NAME"), (2, "NOT_UTF8_DATABASE_NAME")):
        with pytest.raises(QuestionError, match=code):
            explain(spark_tables, StoredMessage(conversation=conversation(number)))
