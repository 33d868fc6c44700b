"""An estate with only hostile names passes through the commands unharmed, in folders with hostile names."""

from __future__ import annotations

import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from routing import cli
from tests.estate_rows import ASK, database, endpoint, estate, instance, message, route, service
from tests.frames import Tables, merged, rows_of
from tests.hostile import CONTROL, NAMES
from tests.stored import config_text, save_estate
from tests.unit.test_hostile_names import UNPRINTABLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = 'it\'s `a` "b" [c] {d,e} %41 #? $x ;-- *\n\u202e\u00df\u0130'
OUTPUTS = ("resolved_routes", "rejected_messages", "new_route_requests")
NAMESPACE = {"m": "https://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice/MissingRoute"}
SUPPRESSED = NAMES[::2]


def hostile_estate() -> Tables:
    """Return an instance for each name, with one database, one service and a route to it, all with that name.

    Each has a message to the service, one to an unknown service (which asks for a route), and a rejected one.
    """
    return merged([_named(number, name) for number, name in enumerate(NAMES)])


def _named(number: int, name: str) -> Tables:
    here, there = {"instance_name": name}, {"instance_name": name, "database_name": name}
    return estate(
        instances=[instance(name)],
        databases=[database(name, f"{number:08d}-aaaa-bbbb-cccc-000000000000", **here, database_id=5)],
        services=[service(name, name, **here)],
        routes=[route(name, name, "LOCAL", **there), route("Ask", ASK, "LOCAL", **there)],
        messages=[
            message(number, name, **there, message_id=f"{name} here"),
            message(number, f"{name}?", **there, message_id=f"{name} asks"),
            message(number, name, **there, message_id=f"{name} faulty", conversation_id="no id"),
        ],
        # The dialog names the hostile name as its broker instance, because an id may be any text.
        dialogs=[endpoint(1_000 + number, **there, far_service=name, far_broker_instance=name)],
    )


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / FOLDER
    # delta-rs cannot write to a folder with such a name.
    stored = save_estate(hostile_estate(), tmp_path_factory.mktemp("stored"), files=1)
    inputs = shutil.copytree(stored, folder / "in")
    file = folder / "job.yaml"
    text = yaml.safe_load(config_text(inputs, folder / "out"))
    text["lint"] = {"suppress": [{"object": name} for name in SUPPRESSED]}
    file.write_text(yaml.safe_dump(text), encoding="utf-8")
    return file


def phrase(capsys: pytest.CaptureFixture[str], job: Path, command: str, *options: str) -> str:
    status = cli.main([command, "--config", str(job), "--quiet", *options])
    out, err = capsys.readouterr()
    assert status == 0, err
    assert err == ""
    return out


def assert_harmless(out: str) -> None:
    """Assert that no character moves the cursor, or changes colours or the direction of text."""
    assert UNPRINTABLE.search(out.replace("\n", "")) is None


def test_resolve(spark: SparkSession, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = phrase(capsys, job, "resolve", "--format", "json")
    assert out.count("\n") == 1
    row = json.loads(out)
    assert row["outcome_counts"] == {"DELIVERED": len(NAMES), "DELAYED": len(NAMES)}
    assert (row["rows_read"], row["rows_rejected"]) == (3 * len(NAMES), len(NAMES))
    columns = ("message_id", "instance_name", "database_name", "to_service_name", "route_name")
    written = {key: rows_of(spark.read.format("delta").load(str(job.parent / "out" / key))) for key in OUTPUTS}

    def found(key: str, *names: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row[name] for name in names) for row in written[key])

    assert found("resolved_routes", *columns, "destination_database", "reason") == sorted(
        line
        for name in NAMES
        for line in (
            (f"{name} here", name, name, name, name, name, "LOCAL_SERVICE"),
            (f"{name} asks", name, name, f"{name}?", None, None, "ROUTE_REQUESTED"),
        )
    )
    assert found("rejected_messages", "message_id", "instance_name", "to_service_name") == sorted(
        (f"{name} faulty", name, name) for name in NAMES
    )
    assert found("new_route_requests", "message_id", "database_name", "service_name") == sorted(
        (f"{name} asks", name, f"{name}?") for name in NAMES
    )
    for request in written["new_route_requests"]:
        body = ET.fromstring(request["body"])
        [service] = body.findall("m:SERVICE_NAME", NAMESPACE)
        assert [child.tag for child in body] == [service.tag]
        assert service.text == as_xml_keeps_it(request["service_name"])


def as_xml_keeps_it(name: str) -> str:
    """Replace characters that XML 1.0 does not allow by U+FFFD, and line ends by line feeds as a parser does."""
    allowed = "".join("\ufffd" if c in "\x00\x07\x1b" else c for c in name)
    return allowed.replace("\r\n", "\n")


def test_runs(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [listed] = json.loads(phrase(capsys, job, "runs", "--format", "json"))["runs"]
    out = phrase(capsys, job, "runs", listed["run_id"])
    assert_harmless(out)
    assert "tables.routes" in out


def test_explain(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = phrase(capsys, job, "explain", "--message-id", f"{CONTROL} here")
    assert_harmless(out)
    assert "DELIVERED, LOCAL_SERVICE: database 'a\ufffdb\ufffd\ufffdc\ufffdd" in out


def test_lint(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only findings with a suppressed hostile name are left out."""
    out = phrase(capsys, job, "lint", "--now", "2026-01-05T12:00:00Z", "--format", "json")
    assert out.count("\n") == 1
    found = json.loads(out)
    assert found["suppressed"] > 0
    assert {row["instance_name"] for row in found["findings"]} <= {*NAMES, None}
    named = {row["object"] for row in found["findings"]}
    assert named & set(SUPPRESSED) == set()
    assert named & (set(NAMES) - set(SUPPRESSED)) != set()
