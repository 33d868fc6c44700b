"""One OpenLineage event for each run: its content, its receivers, and that it never fails a run."""

from __future__ import annotations

import json
import socket
import threading
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from routing import cli
from routing.config import Config, LineageSettings, TableLocation
from routing.errors import InputError, StorageError
from routing.runs import lineage
from routing.runs.running import Run
from tests.hostile import NAMES
from tests.lineage_server import serving
from tests.unit.test_config import WHOLE, faults, loaded
from tests.without import without

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent

UTC = timezone.utc
RUN = "11111111-2222-4333-8444-555555555555"
PRODUCER = "pkg:generic/service-broker-routing@9.9"
ROW: dict[str, Any] = {
    "run_id": RUN,
    "mode": "full",
    "started_at": datetime(2026, 1, 5, 18, 0, 0, 250_000, UTC),
    "finished_at": datetime(2026, 1, 5, 18, 1, 30, tzinfo=UTC),
    "as_of": None,
    "now": None,
    "input_versions": {"routes": 4, "messages": 17, "dialogs": None},
    "output_versions": {"resolved_routes": 2, "new_route_requests": 0, "rejected_messages": 1},
    "rows_read": 12,
    "rows_resolved": 10,
    "rows_rejected": 2,
    "rows_unchanged": 0,
    "outcome_counts": {"DELIVERED": 7, "DELAYED": 3},
    "reason_counts": {"LOCAL_SERVICE": 7, "NO_ROUTE": 3},
    "release": "9.9",
}


def settings(**options: str) -> Config:
    return Config(
        "/conf/job.yaml",
        {
            "routes": TableLocation("/data/routes"),
            "messages": TableLocation("s3a://estate/day/messages/"),
            "dialogs": TableLocation("main.broker.dialogs", is_name=True),
        },
        {
            "resolved_routes": TableLocation("/out/resolved_routes"),
            "new_route_requests": TableLocation("/out/new_route_requests"),
            "rejected_messages": TableLocation("/out/rejected_messages"),
            "runs": TableLocation("/out/runs"),
            "pending_messages": TableLocation("/out/pending_messages"),
        },
        lineage=LineageSettings(**{"namespace": "night", "job": "broker.resolve", **options}),
    )


@pytest.fixture(autouse=True)
def a_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage, "release", lambda: "9.9")


def as_sent(event: RunEvent) -> Any:
    from openlineage.client.serde import Serde

    return json.loads(Serde.to_json(event))


def plain(sent: Any) -> Any:
    """Return an event without the producer and schema of its facets."""
    if isinstance(sent, dict):
        for key in ("_schemaURL", "schemaURL"):
            assert sent.get(key, "https://openlineage.io/spec/").startswith("https://openlineage.io/spec/")
        assert sent.get("_producer", PRODUCER) == PRODUCER
        return {
            key: plain(value) for key, value in sent.items() if key not in ("_schemaURL", "schemaURL", "_producer")
        }
    return [plain(value) for value in sent] if isinstance(sent, list) else sent


def version(number: int) -> dict[str, Any]:
    return {"version": {"datasetVersion": str(number)}}


def rows(count: int) -> dict[str, Any]:
    return {"outputStatistics": {"rowCount": count}}


def dataset(namespace: str, name: str, kind: str, facets: Any = None, own: Any = None) -> dict[str, Any]:
    return {"namespace": namespace, "name": name, "facets": facets or {}, kind: own or {}}


COMPLETED = {
    "eventTime": "2026-01-05T18:01:30Z",
    "eventType": "COMPLETE",
    "producer": PRODUCER,
    "run": {
        "runId": RUN,
        "facets": {
            "sbroute_run": {
                "run_id": RUN,
                "started_at": "2026-01-05T18:00:00.250000Z",
                "finished_at": "2026-01-05T18:01:30Z",
                "mode": "full",
                "rows_read": 12,
                "rows_resolved": 10,
                "rows_rejected": 2,
                "rows_unchanged": 0,
                "outcome_counts": {"DELIVERED": 7, "DELAYED": 3},
                "release": "9.9",
            }
        },
    },
    "job": {
        "namespace": "night",
        "name": "broker.resolve",
        "facets": {"jobType": {"processingType": "BATCH", "integration": "SBROUTE", "jobType": "JOB"}},
    },
    "inputs": [
        dataset("file", "/data/routes", "inputFacets", version(4)),
        dataset("s3://estate", "day/messages", "inputFacets", version(17)),
        dataset("night", "main.broker.dialogs", "inputFacets"),
    ],
    "outputs": [
        dataset("file", "/out/resolved_routes", "outputFacets", version(2), rows(10)),
        dataset("file", "/out/new_route_requests", "outputFacets", version(0)),
        dataset("file", "/out/rejected_messages", "outputFacets", version(1), rows(2)),
        dataset("file", "/out/runs", "outputFacets", {}, rows(1)),
    ],
}


def test_the_event_of_a_valid_run() -> None:
    assert plain(as_sent(lineage.completed(settings(), ROW))) == COMPLETED


def test_the_event_of_a_failed_run() -> None:
    error = StorageError("the run failed while writing to s3a://estate/x?sig=abcdef", "run again")
    event = lineage.failed(settings(), "nightly 7", ROW["started_at"], ROW["finished_at"], error)
    sent = plain(as_sent(event))
    assert (sent["eventType"], sent["eventTime"]) == ("FAIL", "2026-01-05T18:01:30Z")
    assert sent["run"]["facets"] == {
        # What looks like a secret is not sent on.
        "errorMessage": {"message": "…", "programmingLanguage": "PYTHON"},
        "sbroute_run": {
            "run_id": "nightly 7",
            "started_at": "2026-01-05T18:00:00.250000Z",
            "finished_at": "2026-01-05T18:01:30Z",
            "mode": "full",
        },
    }
    assert sent["inputs"][1] == dataset("s3://estate", "day/messages", "inputFacets")
    assert [output["name"] for output in sent["outputs"]] == [
        "/out/resolved_routes",
        "/out/new_route_requests",
        "/out/rejected_messages",
        "/out/runs",
    ]
    assert all(not output["facets"] and not output["outputFacets"] for output in sent["outputs"])


def test_an_event_has_what_the_specification_requires() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    facet = {"type": "object", "required": ["_producer", "_schemaURL"]}
    facets = {"type": "object", "additionalProperties": facet}
    named = {
        "type": "object",
        "required": ["namespace", "name"],
        "properties": {
            "namespace": {"type": "string", "minLength": 1},
            "name": {"type": "string", "minLength": 1},
            "facets": facets,
            "inputFacets": facets,
            "outputFacets": facets,
        },
    }
    uuid = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
    time_of = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"
    schema = {
        "type": "object",
        "required": ["run", "job", "eventTime", "producer", "schemaURL"],
        "properties": {
            "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
            "eventTime": {"type": "string", "pattern": time_of},
            "producer": {"type": "string", "pattern": "^[a-z]+:"},
            "schemaURL": {"type": "string", "pattern": "/OpenLineage.json#/\\$defs/RunEvent$"},
            "run": {
                "type": "object",
                "required": ["runId"],
                "properties": {"runId": {"type": "string", "pattern": uuid}, "facets": facets},
            },
            "job": named,
            "inputs": {"type": "array", "items": named, "minItems": 3},
            "outputs": {"type": "array", "items": named, "minItems": 4},
        },
    }
    at, error = ROW["started_at"], InputError("rows", "mend them")
    for event in (
        lineage.completed(settings(), {**ROW, "run_id": "scheduled__2026-01-05T00:00:00+00:00"}),
        lineage.failed(settings(), "a\ud800b", at, at, error),
    ):
        jsonschema.validate(as_sent(event), schema)


@pytest.mark.parametrize(
    ("location", "namespace", "name"),
    [
        (TableLocation("/data/routes"), "file", "/data/routes"),
        (TableLocation("file:/data/routes"), "file", "/data/routes"),
        (TableLocation("file:///data/routes/"), "file", "/data/routes"),
        (TableLocation("s3://estate/day/routes"), "s3://estate", "day/routes"),
        (TableLocation("S3A://estate/day//routes"), "s3://estate", "day//routes"),
        (TableLocation("s3n://estate"), "s3://estate", "/"),
        (TableLocation("gs://estate/routes"), "gs://estate", "routes"),
        (
            TableLocation("abfs://broker@acct.dfs.core.windows.net/r"),
            "abfss://broker@acct.dfs.core.windows.net",
            "r",
        ),
        (TableLocation("wasbs://broker@acct.blob/r"), "wasbs://broker@acct.blob", "r"),
        (TableLocation("hdfs://node:8020/data/routes"), "hdfs://node:8020", "/data/routes"),
        (TableLocation("dbfs:/data/routes"), "dbfs", "/data/routes"),
        (TableLocation("broker.routes", is_name=True), "metastore", "broker.routes"),
    ],
)
def test_tables_have_the_names_of_openlineage(location: TableLocation, namespace: str, name: str) -> None:
    named = LineageSettings(namespace="night", catalog_namespace="metastore")
    assert lineage.dataset_of(location, named) == (namespace, name)


def test_other_run_ids_become_a_uuid_for_each_job() -> None:
    mine, yours = TableLocation("/mine/runs"), TableLocation("/yours/runs")
    assert lineage.uuid_of(RUN.upper(), mine) == RUN
    run_uuid = lineage.uuid_of("nightly-7", mine)
    # uuid5 of the URL namespace and of ["/mine/runs", "nightly-7"].
    assert run_uuid == "19bac2e7-b00f-5ed8-8095-d2c2ce9c5e7a"
    assert lineage.uuid_of("nightly-7", yours) != run_uuid
    # What uuid.UUID would take as well, and what is not in UTF-8.
    assert lineage.uuid_of(f"{{{RUN}}}", mine) != RUN
    assert lineage.uuid_of("\ud800", mine) != lineage.uuid_of("\ud801", mine)


@pytest.mark.parametrize("name", NAMES)
def test_an_event_is_one_line_of_the_file(name: str, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    config = settings(file=str(file), namespace=name, job=name, catalog_namespace=name)
    row = {**ROW, "run_id": name}
    for _ in range(2):
        assert lineage.send(lambda: lineage.completed(config, row), config.lineage) is None
    first, second, *rest = file.read_bytes().split(b"\n")
    assert rest == [b""]
    assert first == second
    sent = json.loads(first)
    assert (sent["job"]["namespace"], sent["job"]["name"]) == (name, name)
    assert sent["run"]["facets"]["sbroute_run"]["run_id"] == name
    assert sent["inputs"][2]["namespace"] == name


def sent_to(url: str, **seconds: float) -> str | None:
    config = settings(url=url)
    return lineage.send(lambda: lineage.completed(config, ROW), config.lineage, **seconds)


@pytest.mark.parametrize("path", ["", "/", "/behind/a/proxy"])
def test_a_server_receives_one_event(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", " a-key\n")
    with serving() as server:
        assert sent_to(server.url + path) is None
    assert server.paths == [f"{path.rstrip('/')}/api/v1/lineage"]
    assert plain(server.events[0]) == COMPLETED
    assert server.headers[0]["Authorization"] == "Bearer a-key"


def test_without_a_key_no_key_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENLINEAGE_API_KEY", raising=False)
    with serving() as server:
        assert sent_to(server.url) is None
    assert "Authorization" not in server.headers[0]


def test_an_invalid_key_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "hunter2\nhunter2")
    with serving() as server:
        assert sent_to(server.url) == "OPENLINEAGE_API_KEY holds characters that no header takes"
    assert server.paths == []


@pytest.mark.parametrize(("status", "expected"), [(500, "500 Server Error"), (401, "401 Client Error")])
def test_a_refusing_server_gets_one_request(status: int, expected: str) -> None:
    with serving(status) as server:
        assert (sent_to(server.url) or "").startswith(expected)
    assert server.paths == ["/api/v1/lineage"]


def test_redirects_are_not_followed() -> None:
    with serving() as other, serving(302, location=f"{other.url}/login") as server:
        assert sent_to(server.url) == "Exceeded 0 redirects."
    assert (server.paths, other.paths) == (["/api/v1/lineage"], [])


def test_a_missing_server_is_noted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert "refused" in (sent_to(f"http://127.0.0.1:{port}") or "")


def test_an_endless_answer_does_not_block() -> None:
    with serving(drips=20) as server:
        begun = time.monotonic()
        assert sent_to(server.url, total_seconds=1.0) == "no answer within 1 seconds"
        assert time.monotonic() - begun < 3
        assert len(server.events) == 1
        # Nor does it hold up the end of the process.
        assert [thread.daemon for thread in threading.enumerate() if thread.name == "lineage event"] == [True]


def test_a_server_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        assert "timed out" in (sent_to(url, answer_seconds=0.2) or "")


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    config = settings(file=str(tmp_path / "none" / "events.jsonl"))
    why = lineage.send(lambda: lineage.completed(config, ROW), config.lineage)
    assert why is not None
    assert "none/events.jsonl" in why


def test_an_event_that_cannot_be_made_is_noted() -> None:
    config = settings(file="/nowhere")
    assert lineage.send(lambda: lineage.completed(config, {}), config.lineage) == "'output_versions'"


def test_no_thread_is_left() -> None:
    before = threading.active_count()
    with serving() as server:
        sent_to(server.url)
    assert threading.active_count() == before


# The command, with a run that is made up: no session is started.


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """How the run goes: it raises ``error``, if any, or counts already."""
    how: dict[str, Any] = {"error": None, "was_recorded": False, "ids": []}

    def run(engine: object, config: Config, *, run_id: str, **others: Any) -> Run:
        how["ids"].append(run_id)
        if how["error"] is not None:
            raise how["error"]
        return Run({**ROW, "run_id": run_id}, (), how["was_recorded"])

    monkeypatch.setattr("routing.runs.running.run_by", run)
    monkeypatch.setattr("routing.commands.command_context.session", lambda *_, **__: None)
    return how


def command(tmp_path: Path, **section: str) -> int:
    import yaml

    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump({**WHOLE, **({"lineage": section} if section else {})}), encoding="utf-8")
    return cli.main(["resolve", "--config", str(file), "--engine", "spark", "--format", "json", "--quiet"])


def test_a_valid_run_sends_one_event(
    tmp_path: Path, made_up: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with serving() as server:
        assert command(tmp_path, url=server.url) == 0
    [event] = server.events
    assert (event["eventType"], event["run"]["runId"]) == ("COMPLETE", made_up["ids"][0])
    assert (event["job"]["namespace"], event["job"]["name"]) == ("sbroute", "resolve")
    assert capsys.readouterr().err == ""


def test_a_repeated_run_sends_nothing(tmp_path: Path, made_up: dict[str, Any]) -> None:
    made_up["was_recorded"] = True
    with serving() as server:
        assert command(tmp_path, url=server.url) == 0
    assert (server.paths, len(made_up["ids"])) == ([], 1)


@pytest.mark.parametrize(("error", "status"), [(StorageError("disk full"), 3), (InputError("bad rows"), 2)])
def test_a_failing_run_sends_one_event_and_keeps_its_exit_code(
    error: Exception, status: int, tmp_path: Path, made_up: dict[str, Any]
) -> None:
    made_up["error"] = error
    with serving() as server:
        assert command(tmp_path, url=server.url) == status
    [event] = server.events
    assert (event["eventType"], event["run"]["runId"]) == ("FAIL", made_up["ids"][0])
    assert event["run"]["facets"]["errorMessage"]["message"] == str(error)


def test_an_event_that_is_not_sent_is_a_note_of_a_run_that_counts(
    tmp_path: Path, made_up: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(503) as server:
        assert command(tmp_path, url=server.url) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["rows_resolved"] == 10
    assert captured.err.startswith(
        f"note: the run's lineage event was not sent to '{server.url}': 503 Server Error"
    )
    assert captured.err.count("\n") == 1


def test_the_error_of_a_run_is_raised_even_if_its_event_fails(
    tmp_path: Path, made_up: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    made_up["error"] = StorageError("disk full")
    with serving(503) as server:
        assert command(tmp_path, url=server.url) == 3
    err_lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in err_lines] == ["note", "sbroute"]
    assert err_lines[-1] == "sbroute: disk full"


@pytest.mark.parametrize("section", [{}, {"namespace": "night"}])
def test_nothing_is_sent_without_configuration(
    section: dict[str, str], tmp_path: Path, made_up: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with serving() as server:
        monkeypatch.setenv("OPENLINEAGE_URL", server.url)
        monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "http")
        monkeypatch.setenv("OPENLINEAGE__TRANSPORT__URL", server.url)
        named = f"transport:\n  type: http\n  url: {server.url}\n"
        (tmp_path / "openlineage.yml").write_text(named, encoding="utf-8")
        assert command(tmp_path, **section) == 0
        # Nor to anywhere else than it says.
        assert command(tmp_path, file="events.jsonl", **section) == 0
    assert server.paths == []
    assert len((tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()) == 1


def test_a_missing_client_is_reported_first(tmp_path: Path) -> None:
    import yaml

    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump({**WHOLE, "lineage": {"file": "events.jsonl"}}), encoding="utf-8")
    done = without(("openlineage", "pyspark"), "resolve", "--config", str(file))
    assert done.returncode == 2
    assert done.stderr == (
        "sbroute: the Python package openlineage-python is missing (in a clone: pip install '.[lineage]')\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["job.yaml"]


# The section of the configuration.


def test_the_section_lineage_is_read() -> None:
    config = loaded({**WHOLE, "lineage": {"file": "../log/events.jsonl", "job": "nightly"}})
    assert config.lineage == LineageSettings(file="/log/events.jsonl", job="nightly")
    recorded = {
        "url": None,
        "file": "/log/events.jsonl",
        "namespace": "sbroute",
        "job": "nightly",
        "catalog_namespace": None,
    }
    assert json.loads(config.as_json())["lineage"] == recorded
    assert "lineage" not in json.loads(loaded(WHOLE).as_json())
    assert loaded(WHOLE, "lineage.url=https://lineage.example").lineage.url == "https://lineage.example"


def test_faults_of_the_section() -> None:
    section = {"url": "lineage.example", "file": "s3://b/events", "namespace": " ", "job": 7, "jobb": "x"}
    text = faults({**WHOLE, "lineage": section})
    for fault in (
        "lineage.url and lineage.file cannot both be given",
        "lineage.url must be the http(s) address of a server, not 'lineage.example'",
        "lineage.file must be a path of this machine, not 's3://b/events'",
        "lineage.namespace must not be empty",
        "lineage.job must be text, not '7'",
        "unknown key 'lineage.jobb', did you mean 'lineage.job'?",
    ):
        assert fault in text
    assert "lineage must be a mapping" in faults({**WHOLE, "lineage": "https://lineage.example"})


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://host", "http://", "http://host?q=1", "http://host#f", "http://ho st", "http://host:port"),
        *("http://host\n", "http://host:0", "http://h\u202eost", "//host", "http://[::1"),
    ],
)
def test_invalid_addresses_of_a_server_are_refused(url: str) -> None:
    assert "lineage.url must be" in faults({**WHOLE, "lineage": {"url": url}})


@pytest.mark.parametrize(
    "section",
    [{"url": "https://user:hunter2@lineage.example"}, {"url": "https://x", "api_key": "hunter2"}],
)
def test_a_secret_in_the_section_is_refused(section: dict[str, str]) -> None:
    text = faults({**WHOLE, "lineage": section})
    assert "secret" in text
    assert "hunter2" not in text
