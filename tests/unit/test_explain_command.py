"""`sbroute explain` without Spark: its help, and questions that contradict themselves."""

from __future__ import annotations

import argparse
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from routing import cli
from routing.cases.questions import DescribedMessage, Question, QuestionError, StoredMessage
from routing.cli import CommandParser
from routing.commands import explain, trace
from routing.commands.shared_arguments import question_of
from tests.golden_texts import assert_golden
from tests.stored import job_without_tables

GUID = "c0000001-5555-4000-8000-000000000001"


@pytest.fixture
def config_file(tmp_path: Path) -> str:
    """Write a configuration without tables, because no question here opens them."""
    return str(job_without_tables(tmp_path))


WRONG = {
    "nothing": "",
    "described and stored": "--message-id m1 --service S --is-target",
    "both origins": "--instance hub --database D --from-network --service S",
    "no instance": "--database D --service S",
    "no origin": "--instance hub --service S",
    "no service": "--instance hub --database D",
    "only an instance": "--instance hub",
    "a conversation and more of it": "--database D --conversation c0000001-5555-4000-8000-000000000001",
    "a message and its conversation": "--message-id m1 --conversation c0000001-5555-4000-8000-000000000001",
    "a conversation that is no guid": "--conversation-id 42",
    "an empty conversation": "--conversation=",
    "no time": "--message-id m1 --at noon",
}


def test_invalid_arguments_are_one_sentence(
    config_file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Opening a table would fail the test: no question here gets that far.
    monkeypatch.setattr("routing.commands.command_context.opener", None)
    errors = []
    for name, line in WRONG.items():
        assert cli.main(["explain", "--config", config_file, *line.split()]) == 2, name
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        errors.append(f"{name}: {err}")
    assert_golden("explain_wrong_questions.txt", "".join(errors))


def test_invalid_arguments_are_refused_before_a_uri_is_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("routing.commands.command_context.load", None)
    assert cli.main(["explain", "--config", "s3a://bucket/job.yaml"]) == 2
    assert "no message is named" in capsys.readouterr().err


def test_the_old_name_of_an_option_works() -> None:
    command = CommandParser().add_subparsers()
    explain.add(command, argparse.ArgumentParser(add_help=False))
    for name in ("--conversation", "--conversation-id"):
        options = command.choices["explain"].parse_args(["--config", "f", name, GUID])
        assert options.conversation == GUID


def test_a_stored_message_needs_one_valid_id() -> None:
    for message_id, conversation in ((None, None), ("m1", GUID), (None, "m1"), (None, "")):
        with pytest.raises(QuestionError):
            StoredMessage(message_id, conversation=conversation)


def _question_of(*arguments: str) -> Question:
    command = CommandParser().add_subparsers()
    trace.add(command, argparse.ArgumentParser(add_help=False))
    return question_of(command.choices["trace"].parse_args(["--config", "f", *arguments]))


def test_options_become_a_question() -> None:
    at, when = datetime(2026, 1, 1, tzinfo=timezone.utc), ("--at", "2026-01-01T00:00:00Z")
    assert _question_of("--message-id", "m1") == StoredMessage("m1", None, None)
    assert _question_of("--message-id", "m1", "--instance", "hub", *when) == StoredMessage("m1", "hub", at)
    assert _question_of("--conversation", GUID) == StoredMessage(conversation=GUID)
    assert _question_of("--conversation", GUID, "--instance", "hub", *when) == StoredMessage(None, "hub", at, GUID)
    here = ("--instance", "hub", "--service", "S", *when)
    assert _question_of(*here, "--database", "Sales") == DescribedMessage("hub", "Sales", "S", at)
    assert _question_of(*here, "--from-network", "--is-target") == DescribedMessage(
        "hub", None, "S", at, is_target=True
    )
    question = _question_of(
        *here, "--database", "Sales", "--broker-instance", "b", "--conversation", "c", "--hops", "0"
    )
    assert question == DescribedMessage("hub", "Sales", "S", at, "b", "c", hops_remaining=0)
    now = _question_of("--instance", "hub", "--service", "S", "--database", "Sales")
    assert isinstance(now, DescribedMessage)
    assert datetime.now(timezone.utc) - now.at < timedelta(minutes=1)
