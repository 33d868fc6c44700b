"""`sbroute explain` over stored tables: what it prints, what it refuses, and how little of the tables it needs."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import routing
from routing import cli
from routing.analysis.explaining.asked import Described, Question, QuestionError, Stored
from tests.frames import Tables, frames, rows_of
from tests.golden_texts import assert_golden
from tests.stored import STORE, config_text, message, route, small_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)


@pytest.fixture
def config_file(stored: Path, tmp_path: Path) -> str:
    file = tmp_path / "job.yaml"
    file.write_text(config_text(stored, tmp_path / "out"), encoding="utf-8")
    return str(file)


def told(config_file: str, line: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(["explain", "--config", config_file, *line.split()]) == 0
    return capsys.readouterr().out


@pytest.mark.usefixtures("spark")
def test_a_stored_message_as_text(config_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert_golden("explain_table.txt", told(config_file, "--message-id m2", capsys))


@pytest.mark.usefixtures("spark")
def test_a_described_message_as_json(config_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = "--instance hub --database Sales --service //stock --at 2026-01-05T12:00:00Z --format json"
    out = told(config_file, line, capsys)
    assert out.count("\n") == 1
    document = json.loads(out)
    assert_golden("explain.json", json.dumps(document, indent=1, ensure_ascii=False))
    from routing.schemas import RESOLVED_ROUTES

    assert list(document["verdict"]) == RESOLVED_ROUTES.names
    assert all(step["text"] for step in document["steps"])


@pytest.mark.usefixtures("spark")
def test_what_cannot_be_answered_is_one_sentence(config_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "--config", config_file, "--message-id", "m77"]) == 2
    assert capsys.readouterr() == ("", "sbroute: no message 'm77' is stored (ids are compared exactly)\n")


WRONG: dict[str, Question] = {
    "unknown message": Stored("m77"),
    "on two instances": Stored("twin"),
    "no guid": Stored("m6"),
    "unknown instance": Described("Hub", None, "S", NOON),
    "unknown database": Described("hub", "sales", "S", NOON),
    "dialog id that is no guid": Described("hub", None, "S", NOON, conversation_id="42"),
}


def test_what_cannot_be_answered(spark: SparkSession) -> None:
    from routing.analysis.explain import explain

    estate = small_estate()
    twin = message(1, "//far", message_id="twin")
    estate["messages"] += [twin, {**twin, "instance_name": "spoke"}]
    tables, texts = frames(spark, estate), []
    for name, question in WRONG.items():
        with pytest.raises(QuestionError) as caught:
            explain(spark, tables, question)
        assert caught.value.exit_code == 2
        texts.append(f"{name}: sbroute: {caught.value}\n")
    assert_golden("explain_refused.txt", "".join(texts))


def _crowded() -> Tables:
    """The small estate, a message that asks after m4, and an instance whose rows are all faulty."""
    tables = small_estate()
    tables["messages"] += [
        message(9, "//nowhere", enqueue_time="2026-01-05T12:00:01Z"),
        message(4, "//nowhere", instance_name="broken"),
    ]
    tables["routes"] += [
        route("Bad", "a", "no address", instance_name="broken"),
        route("", None, "", instance_name="broken"),
    ]
    return tables


def test_one_message_as_resolve_decides_it(spark: SparkSession) -> None:
    """What concerns the message is enough: other instances may even be faulty."""
    from routing.analysis.explain import RUN_ID, explain

    tables = frames(spark, _crowded())
    sound = {**tables, "routes": tables["routes"].where("instance_name = 'hub'")}
    done = routing.resolve(spark, sound, run_id=RUN_ID)
    expected = {row["message_id"]: row for row in rows_of(done.resolved_routes.where("instance_name = 'hub'"))}
    done.unpersist()
    assert expected["m9"]["matching_step"] == 7
    # m9 finds that m4 has asked; m2 is bound by its dialog.
    for name in ("m9", "m2"):
        answer = explain(spark, tables, Stored(name, "hub"))
        (verdict,) = rows_of(answer.verdict)
        assert {key: value for key, value in verdict.items() if key != "question"} == expected[name]
        if name == "m9":
            path = rows_of(answer.steps)
            assert [(row["finding"], row["name"]) for row in path if row["item"] == "REQUEST"] == [("OPEN", "m4")]
        answer.unpersist()


def test_a_described_message_uses_the_dialog_and_the_time(spark: SparkSession) -> None:
    from routing.analysis.explain import explain
    from tests.stored import conversation

    tables = frames(spark, small_estate())
    answer = explain(spark, tables, Described("hub", "Sales", "//stock", NOON, conversation_id=conversation(2)))
    (verdict,) = rows_of(answer.verdict)
    answer.unpersist()
    assert (verdict["broker_instance"], verdict["matching_step"], verdict["decided_at"]) == (STORE, 1, NOON)
