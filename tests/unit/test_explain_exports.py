"""explain and trace name causes beside the routing, if exports of them are given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routing import cli
from tests.exported import database, route
from tests.exported_causes import AWAY, QUEUE, broker_endpoint, shop, target
from tests.imports import config_in, import_views, no_spark

pytest.importorskip("deltalake")
MESSAGE = "c0000001-0000-4000-8000-000000000000:I:0:Orders"
NO_CONNECT = (
    "Connection handshake failed. The login 'CORP\\stocksvc' does not have CONNECT permission on the endpoint."
)


@pytest.mark.parametrize("command", ["explain", "trace"])
@pytest.mark.parametrize(
    ("status", "number", "expected"),
    [
        (NO_CONNECT, 28034, "GRANT CONNECT ON ENDPOINT::[SHOP Broker]"),
        ("", None, "ALTER QUEUE [dbo].[StockQueue]"),
    ],
    ids=["reported", "silent"],
)
def test_exports_give_remedies(
    command: str,
    status: str,
    number: int | None,
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    exports = tmp_path / "exports"
    shop(exports, status, number, routes=AWAY)
    target(exports, service_queues={"Stock": [{**QUEUE, "is_receive_enabled": 0}]})
    import_views(no_spark(), config_in(tmp_path), [str(exports)])

    def remedies(*more: str) -> str:
        line = [command, "--config", str(_write_config(tmp_path)), "--message-id", MESSAGE, "--format", "json"]
        assert cli.main([*line, *more]) == 0
        done: dict[str, Any] = json.loads(capsys.readouterr().out)
        return json.dumps(done.get("remedies", done))

    assert expected not in remedies()
    assert expected in remedies("--exports", str(exports))


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
