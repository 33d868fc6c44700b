"""Every class of statements is handled wherever code depends on the class."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from routing import cli
from routing.cases.evidence import VIEW_OF
from routing.importing.tsql import script_statements
from routing.importing.tsql.instance_state import DatabaseState, InstanceState, NamedRows
from routing.importing.tsql.script_statements import BrokerSetting, RefusalError, ScriptStatement
from routing.importing.tsql.state_changes import change
from tests.exported import waiting, whole_shop

# A class with slots replaces the one that was declared, which may still be in memory.
CLASSES = [one for one in ScriptStatement.__subclasses__() if getattr(script_statements, one.__name__) is one]
FIELDS: dict[str, dict[str, Any]] = {
    "AlterDatabase": {"setting": BrokerSetting.ENABLE},
    "AlterDatabaseState": {"state": "OFFLINE"},
    "CreateEndpoint": {"for_service_broker": True},
    "RenameDatabase": {"new_name": "y"},
}


def test_each_class_has_a_view() -> None:
    assert set(VIEW_OF) == set(CLASSES)


@pytest.mark.parametrize("kind", CLASSES)
def test_each_class_changes_a_state_or_is_refused(kind: type[ScriptStatement]) -> None:
    statement = kind(file="f.sql", line=1, database="x", name="x", **FIELDS.get(kind.__name__, {}))
    holdings = NamedRows(InstanceState(databases=(DatabaseState("x", None),)))
    with suppress(RefusalError):
        change(holdings, statement)


@pytest.mark.parametrize(
    "text",
    [
        "ALTER DATABASE Sales SET SINGLE_USER WITH ROLLBACK IMMEDIATE",
        "ALTER DATABASE Sales SET MULTI_USER",
        "ALTER DATABASE Sales SET OFFLINE",
        "ALTER DATABASE Sales SET HADR OFF",
        "ALTER DATABASE Sales MODIFY NAME = Store",
        "EXEC sp_renamedb 'Sales', 'Store'",
        "EXEC sp_detach_db 'Sales'",
        "EXEC sp_dboption 'Sales', 'single user', 'true'",
    ],
)
def test_statements_of_generated_scripts_are_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    script = tmp_path / "change.sql"
    script.write_text(f"USE master\nGO\n{text}\nGO\n", encoding="utf-8")
    exports = str(whole_shop(tmp_path / "exports", [waiting(1, "//stock")]))
    assert cli.main(["lint", str(script)]) == 0
    assert cli.main(["check", exports, str(script), "--instance", "HUB"]) == 0
    assert cli.main(["check", exports, "--then", str(script), "--instance", "HUB"]) == 0
    assert "internal" not in capsys.readouterr().err
