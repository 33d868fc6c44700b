"""`sbroute explain` over tables that delta-rs reads: its output, its errors and its optional tables."""

from __future__ import annotations

import json

import pytest

from routing import cli
from tests.crowded import crowded, handle
from tests.estate_rows import conversation, small_estate
from tests.golden_texts import assert_golden
from tests.stored import save_job
from tests.without import EVERYTHING, SPARK, without


@pytest.fixture(scope="module")
def config_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_job(small_estate(), tmp_path_factory.mktemp("job")))


def explained_text(config_file: str, line: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(["explain", "--config", config_file, *line.split()]) == 0
    return capsys.readouterr().out


def test_a_stored_message_as_text(config_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert_golden("explain_table.txt", explained_text(config_file, "--message-id m2", capsys))


def test_a_described_message_as_json(config_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = "--instance hub --database Sales --service //stock --at 2026-01-05T12:00:00Z --format json"
    out = explained_text(config_file, line, capsys)
    assert out.count("\n") == 1
    document = json.loads(out)
    assert_golden("explain.json", json.dumps(document, indent=1, ensure_ascii=False))
    from routing.schemas import RESOLVED_ROUTES

    assert list(document["verdict"]) == RESOLVED_ROUTES.names
    assert all(step["text"] for step in document["steps"])


def test_unanswerable_questions_are_one_sentence(config_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "--config", config_file, "--message-id", "m77"]) == 2
    assert capsys.readouterr() == ("", "sbroute: no message 'm77' is stored (ids are compared exactly)\n")


@pytest.fixture(scope="module")
def crowded_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_job(crowded(), tmp_path_factory.mktemp("crowded")))


def test_the_oldest_message_of_a_conversation_is_explained(
    crowded_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    oldest = "this is the oldest message of that end of the conversation"
    lines = {
        handle(20): f"{oldest}; 4 more of it are stored (--message-id selects one)\n",
        conversation(21): f"{oldest}; 1 more of it is stored (--message-id selects one)\n",
        conversation(2): "",
    }
    for name, note in lines.items():
        assert cli.main(["explain", "--config", crowded_file, "--conversation", name, "--format", "json"]) == 0
        out, err = capsys.readouterr()
        assert err == note
        message_id = json.loads(out)["verdict"]["message_id"]
        assert message_id == {handle(20): "first", conversation(21): "arrived first", conversation(2): "m2"}[name]
    assert cli.main(["explain", "--config", crowded_file, "--conversation-id", conversation(20)]) == 2
    assert capsys.readouterr().err.startswith(
        f"sbroute: conversation '{conversation(20)}' has messages of 2 endpoints: "
    )


def test_neither_spark_nor_pandas_is_needed(config_file: str) -> None:
    """Where they are missing, as on a machine with the extra `light`, the answer is the same."""
    done = without((*SPARK, "pandas"), "explain", "--config", config_file, "--message-id", "m2")
    assert (done.returncode, done.stderr) == (0, "")
    assert_golden("explain_table.txt", done.stdout)


def test_json_output_needs_no_rich(config_file: str) -> None:
    done = without(EVERYTHING, "explain", "--config", config_file, "--message-id", "m2", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["verdict"]["message_id"] == "m2"
