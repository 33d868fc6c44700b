"""explain and trace name causes beside the routing, if exports of them are given."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import routing
from routing import cli
from routing.views.check.checking import check
from tests.exported import database, export, route
from tests.exported_causes import AWAY, QUEUE, TIMED_OUT, broker_endpoint, shop, target, to_stock
from tests.imports import config_in, import_views, no_spark

pytest.importorskip("deltalake")
MESSAGE = "c0000001-0000-4000-8000-000000000000:I:0:Orders"
NO_CONNECT = (
    "Connection handshake failed. The login 'CORP\\stocksvc' does not have CONNECT permission on the endpoint."
)


OFF = {"Stock": [{**QUEUE, "is_receive_enabled": 0}]}
HERE = {
    "databases": [
        *(database(*one) for one in (("msdb", "d4d4d4d4", 4), ("Orders", "0d0d0d0d"), ("Stock", "5c5c5c5c")))
    ],
    "services": {"Orders": [{"name": "//from"}], "Stock": [{"name": "//stock", "service_queue_id": 70}]},
    "routes": {name: [route("AutoCreatedLocal")] for name in ("msdb", "Orders", "Stock")},
    "service_queues": OFF,
}
JUST_NOW = "2026-01-05T17:55:00"
KEPT = {
    "routes": {"msdb": [route("AutoCreatedLocal")], "Orders": [route("ToStock", "//Stock", "TCP://stock:4022")]}
}
READ_ONLY = {"databases": [database("msdb", "d4d4d4d4", 4), {**database("Orders", "0d0d0d0d"), "is_read_only": 1}]}
SENT = {"routes": AWAY}
LOST = {"routes": to_stock("TCP://stock:4022")}
HANDSHAKE = "Connection handshake failed. An unexpected status 87 was returned when trying to send a handshake."
CLOSED = "An error occurred while receiving data: '64(The specified network name is no longer available.)'."
CONNECT, QUEUE_ON = "GRANT CONNECT ON ENDPOINT::[SHOP Broker]", "ALTER QUEUE [dbo].[StockQueue]"
# Views of STOCK beside those of SHOP.
OFF_THERE = {**SENT, "stock": {"databases": [database("Stock", "5c5c5c5c", is_enabled=0)]}}
NO_ENDPOINT = {**SENT, "stock": {"service_broker_endpoints": []}}
REFUSED_THERE = {
    **SENT,
    "stock": {
        "service_queues": None,
        "error_log": [
            {
                "log_date": "2026-01-05T12:10:00",
                "text": f"Service Broker login attempt failed with error: '{NO_CONNECT}'.  [CLIENT: 10.0.0.1]",
            }
        ],
    },
}
# The status, the time of the message, the views of its sender, and the statements in their order.
SAME = [
    pytest.param((NO_CONNECT, 28034), None, SENT, [CONNECT], id="reported"),
    pytest.param((NO_CONNECT, 28034), None, KEPT, ["ALTER ROUTE [ToStock]", CONNECT], id="reported of a kept one"),
    pytest.param(
        (NO_CONNECT, 28034),
        None,
        {**KEPT, **READ_ONLY},
        ["ALTER ROUTE [ToStock]", CONNECT],
        id="not to be changed",
    ),
    pytest.param((NO_CONNECT, 28034), None, LOST, [CONNECT, "CREATE"], id="reported of one that fails further on"),
    *(
        pytest.param(status, None, {"routes": to_stock(f"TCP://stock:{port}")}, ["ALTER ROUTE [ToStock]"], id=port)
        for port, status in (("5022", (HANDSHAKE, 28081)), ("1433", (CLOSED, 9755)))
    ),
    pytest.param((), None, SENT, [QUEUE_ON], id="silent"),
    pytest.param(("The target service broker is disabled.", 28012), None, OFF_THERE, ["ENABLE_BROKER"], id="off"),
    pytest.param((TIMED_OUT, 9754), None, NO_ENDPOINT, ["CREATE ENDPOINT"], id="no endpoint"),
    pytest.param((), None, REFUSED_THERE, ["GRANT CONNECT ON ENDPOINT::[STOCK Broker]"], id="log"),
    *(
        pytest.param((text, number), None, SENT, [statement], id=str(number))
        for text, number, statement in (
            ("Target service '//stock' does not support contract '//c'.", 8408, "ADD CONTRACT [//c]"),
            ("A message of type '//t' was received and failed XML validation.", 9616, "ALTER MESSAGE TYPE [//t]"),
            ("A database user associated with the secure conversation was dropped.", 9768, "CREATE USER [<user>]"),
        )
    ),
    pytest.param(
        (TIMED_OUT, 9755),
        None,
        {"routes": {**AWAY, "Orders": [*AWAY["Orders"], route("Gone", "//stock", "TCP://gone:4022")]}},
        ["-- DROP ROUTE [Gone];"],
        id="two routes",
    ),
    pytest.param((), None, LOST, ["CREATE"], id="silent and failing further on"),
    pytest.param((), JUST_NOW, SENT, [], id="on its way"),
    pytest.param((), None, HERE, [QUEUE_ON], id="silent on its own instance"),
    pytest.param((), JUST_NOW, HERE, [], id="delivered on its own instance"),
]


@pytest.mark.parametrize(("status", "at", "views", "expected"), SAME)
def test_exports_give_the_same_remedies_everywhere(
    status: tuple[Any, ...],
    at: str | None,
    views: dict[str, Any],
    expected: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    exports = tmp_path / "exports"
    there = views.get("stock", {})
    shop(exports, *status, **{view: rows for view, rows in views.items() if view != "stock"})
    if at is not None:
        queue = exports / "SHOP" / "transmission_queue.jsonl"
        queue.write_text(json.dumps({**json.loads(queue.read_text("utf-8")), "enqueue_time": at}) + "\n", "utf-8")
    if views is not HERE:
        lost: dict[str, Any] = {"services": {"msdb": [], "Stock": []}} if views is LOST else {}
        target(exports, **{"service_queues": OFF, **lost, **there})
    import_views(no_spark(), config_in(tmp_path), [str(exports)])
    [group] = check([str(exports)]).groups
    remedies = [advice.remedy.as_object() for advice in group.advice]
    assert len(remedies) == len(expected), remedies
    for remedy, statement in zip(remedies, expected, strict=True):
        assert statement in str(remedy["statement"])

    def ask(command: str) -> Any:
        line = [command, "--config", str(_write_config(tmp_path)), "--message-id", MESSAGE, "--format", "json"]
        assert cli.main([*line, "--exports", str(exports)]) == 0
        return json.loads(capsys.readouterr().out)

    explained, traced = ask("explain"), ask("trace")
    assert explained["remedies"] == traced["remedies"] == remedies
    assert explained["end"] == traced["paths"][0]["end"] == group.first.case.end


QUEUE_QUERY = "FROM sys.service_queues"
LOCAL = {**HERE, "service_queues": None}


@pytest.mark.parametrize("has_exports", [True, False])
@pytest.mark.parametrize(
    ("views", "has_target", "statement"),
    [(SENT, True, QUEUE_QUERY), (LOCAL, False, QUEUE_QUERY), (SENT, False, None)],
)
def test_every_command_looks_further_if_every_hop_is_right(
    views: dict[str, Any],
    has_target: bool,
    statement: str | None,
    has_exports: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    exports = tmp_path / "exports"
    shop(exports, **views)
    if has_target:
        target(exports)
    import_views(no_spark(), config_in(tmp_path), [str(exports)])
    [group] = check([str(exports)]).groups
    expected = [advice.remedy.as_object() for advice in group.advice]
    line = ["--config", str(_write_config(tmp_path)), "--message-id", MESSAGE, "--format", "json"]
    line += ["--exports", str(exports)] if has_exports else []
    for command in ("trace", "explain"):
        assert cli.main([command, *line]) == 0
        assert json.loads(capsys.readouterr().out)["remedies"] == expected, command
    assert (statement or "Export the views") in (expected[0]["statement"] or expected[0]["advice"])


def test_a_stored_queue_that_is_off_needs_no_exports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exports, queues = tmp_path / "exports", "tables.queues=data/queues"
    shop(exports, routes=AWAY)
    target(exports, service_queues=OFF)
    import_views(no_spark(), config_in(tmp_path, queues), [str(exports)])
    line = ["--config", str(_write_config(tmp_path)), "--set", queues, "--format", "json"]
    for command in ("trace", "explain"):
        assert cli.main([command, *line, "--message-id", MESSAGE]) == 0
        [remedy] = json.loads(capsys.readouterr().out)["remedies"]
        assert QUEUE_ON in remedy["statement"], command
    assert cli.main(["lint", *line]) == 0
    [finding] = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["code"] == "SBR051"]
    assert (finding["instance_name"], finding["object"]) == ("STOCK", "StockQueue")


def test_trace_finds_the_cause_at_the_end_of_a_forwarded_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exports = tmp_path / "exports"
    shop(exports, routes=to_stock("TCP://hub:4022"))
    on = {"msdb": [route("AutoCreatedLocal"), route("On", "//stock", "TCP://stock:4022")]}
    hub: dict[str, Any] = {
        "databases": [database("msdb", "e1e1e1e1", 4)],
        "services": {"msdb": []},
        "service_broker_endpoints": [broker_endpoint("HUB", is_message_forwarding_enabled=1)],
    }
    export(exports, "HUB", routes=on, **hub)
    target(exports, service_queues={"Stock": [{**QUEUE, "is_receive_enabled": 0}]})
    import_views(no_spark(), config_in(tmp_path), [str(exports)])
    line = ["trace", "--config", str(_write_config(tmp_path)), "--message-id", MESSAGE, "--format", "json"]
    assert cli.main([*line, "--exports", str(exports)]) == 0
    [remedy] = json.loads(capsys.readouterr().out)["remedies"]
    assert remedy["statement"] == "USE [Stock];\nALTER QUEUE [dbo].[StockQueue] WITH STATUS = ON;"


def test_trace_looks_at_a_target_whose_address_the_tables_lack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exports = tmp_path / "exports"
    shop(exports, routes=AWAY)
    target(exports, service_broker_endpoints=[broker_endpoint("STOCK", machine_name=None)], service_queues=OFF)
    import_views(no_spark(), config_in(tmp_path), [str(exports)])
    line = ["trace", "--config", str(_write_config(tmp_path)), "--message-id", MESSAGE, "--format", "json"]
    assert cli.main([*line, "--exports", str(exports)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [path["outcome"] for path in printed["paths"]] == ["LEFT_ESTATE"]
    assert QUEUE_ON in printed["remedies"][0]["statement"]


@pytest.mark.parametrize("is_exported", [True, False])
def test_a_remedy_for_the_status_replaces_its_general_words(
    is_exported: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exports = tmp_path / "exports"
    shop(exports, "Error: 976, State: 1. The target database is not accessible.", 28005, routes=AWAY)
    target(exports)
    import_views(no_spark(), config_in(tmp_path), [str(exports)])
    line = ["explain", "--config", str(_write_config(tmp_path)), "--message-id", MESSAGE]
    assert cli.main([*line, *(["--exports", str(exports)] if is_exported else [])]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert ("ALTER ROUTE" in printed) is is_exported
    assert ("make it writable" in printed) is not is_exported


@pytest.mark.parametrize("command", ["explain", "trace"])
@pytest.mark.parametrize(("edition", "words"), [(5, "no Service Broker"), (8, "is a Managed Instance")])
def test_azure_gets_no_statement_that_it_does_not_support(
    command: str, edition: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exports = tmp_path / "exports"
    orders = database("Orders", "0d0d0d0d", 5, 0)
    shop(exports, routes=AWAY, databases=[orders], server_properties=[{"engine_edition": edition}])
    import_views(no_spark(), config_in(tmp_path), [str(exports)])
    line = [command, "--config", str(_write_config(tmp_path)), "--message-id", MESSAGE, "--format", "json"]
    assert cli.main([*line, "--exports", str(exports)]) == 0
    remedies = json.loads(capsys.readouterr().out)["remedies"]
    assert {remedy["statement"] for remedy in remedies} == {None}
    assert all(words in remedy["advice"] for remedy in remedies)


def _write_config(folder: Path) -> Path:
    from tests.imports import KEYS
    from tests.stored import OUTPUTS

    lines = ["tables:", *(f"  {key}: data/{key}" for key in KEYS), "output:"]
    lines += [f"  {key}: out/{key}" for key in (*OUTPUTS, "pending_messages")]
    file = folder / "config.yaml"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def test_the_advice_for_an_availability_group_uses_exports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exports = tmp_path / "exports"
    group = "99999999-0000-4000-8000-000000000000"
    orders = {**database("Orders", "0d0d0d0d", is_enabled=0), "replica_id": group, "group_database_id": group}
    shop(exports, databases=[database("msdb", "d4d4d4d4", 4), orders])
    import_views(no_spark(), config_in(tmp_path), [str(exports)])
    line = ["explain", "--config", str(_write_config(tmp_path)), "--message-id", MESSAGE]
    assert cli.main([*line, "--exports", str(exports)]) == 0
    assert "ALTER AVAILABILITY GROUP" in capsys.readouterr().out


def test_the_address_of_an_exported_endpoint_is_the_same_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exports = tmp_path / "exports"
    shop(exports, routes={"msdb": [route("AutoCreatedLocal")], "Orders": [route("AutoCreatedLocal")]})
    target(exports, service_broker_endpoints=[broker_endpoint("STOCK", 4025, machine_name=None)])
    import_views(no_spark(), config_in(tmp_path), [str(exports)])
    explain = ["explain", "--config", str(_write_config(tmp_path)), "--message-id", MESSAGE]
    commands = (
        [*explain, "--exports", str(exports)],
        ["check", str(exports)],
        ["check", str(exports), "--message", MESSAGE],
    )
    for line in commands:
        assert cli.main(line) == 0
        assert "ADDRESS = N'tcp://stock:4025'" in capsys.readouterr().out


def test_folders_without_exports_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop(tmp_path / "exports", routes=AWAY)
    import_views(no_spark(), config_in(tmp_path), [str(tmp_path / "exports")])
    (tmp_path / "empty").mkdir()
    line = ["explain", "--config", str(_write_config(tmp_path)), "--message-id", MESSAGE]
    assert cli.main([*line, "--exports", str(tmp_path / "empty")]) == 2
    assert "there is no export" in capsys.readouterr().err


def test_a_status_in_the_future_is_not_the_newest(tmp_path: Path) -> None:
    exports = tmp_path / "exports"
    shop(exports, NO_CONNECT, 28034, routes=AWAY)
    target(exports)
    import_views(no_spark(), config_in(tmp_path), [str(exports)])
    tables: dict[str, Any] = dict(routing.open_tables(routing.load_config(str(_write_config(tmp_path)))))
    observed = tables["observed_routing"].to_table()
    [row] = observed.to_pylist()
    ahead = {**row, "observed_at": row["observed_at"] + timedelta(days=60), "error_number": 28078}
    ahead |= {"status_text": "The RSA signature verification failed."}
    tables["observed_routing"] = pyarrow.concat_tables(
        [observed, pyarrow.Table.from_pylist([ahead], observed.schema)]
    )
    given: dict[str, Any] = {"question": routing.StoredMessage(MESSAGE), "exports": [str(exports)]}
    statements = []
    for clock in (None, row["observed_at"]):
        explained, traced = (ask(tables, clock=clock, **given) for ask in (routing.explain, routing.trace))
        assert explained.remedies == traced.remedies
        statements.append([CONNECT in str(remedy.statement) for remedy in traced.remedies])
    assert statements == [[False], [True]]


@pytest.mark.parametrize("has_exports", [True, False])
def test_the_answer_asks_for_the_address_of_an_instance_that_the_route_names(
    has_exports: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SELECT * FROM sys.service_broker_endpoints names no machine. Only `check` supposes its address."""
    exports = tmp_path / "exports"
    bare = [broker_endpoint("STOCK", machine_name=None)]
    views: dict[str, Any] = SENT
    shop(exports, **views)
    target(exports, service_broker_endpoints=bare)
    import_views(no_spark(), config_in(tmp_path), [str(exports)])
    line = ["--config", str(_write_config(tmp_path)), "--message-id", MESSAGE, "--format", "json"]
    line += ["--exports", str(exports)] if has_exports else []
    for command in ("trace", "explain"):
        assert cli.main([command, *line]) == 0
        [remedy] = json.loads(capsys.readouterr().out)["remedies"]
        assert remedy["instance_name"] == "STOCK"
        assert remedy["actions"] == ["If it listens there, read its exports with --address TCP://stock:4022."]
