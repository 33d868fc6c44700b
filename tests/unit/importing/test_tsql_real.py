"""Route statements from public scripts: known parts are read correctly, and everything else is reported.

The statements are beside the project, not in it. Without them these tests are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routing.importing.tsql.script_reader import ReadScript
from routing.importing.tsql.script_statements import CreateRoute

ReadText = Callable[..., ReadScript]
DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "real-route-statements.jsonl"

NO_VALUE = "has no value"
REPORTED = {
    # Their addresses, or the route's own name, hold sqlcmd variables.
    **dict.fromkeys([73, 74, 75, 79, 80, 81, 116, 119, 120, 121, 122], (None, NO_VALUE)),
    # Made to try out a parser: no ADDRESS, and a broker instance without a service.
    **dict.fromkeys([95, 96], (9662, "BROKER_INSTANCE without SERVICE_NAME")),
    97: (None, "ADDRESS is missing"),
    # The same, with addresses that are none.
    98: (9744, "ADDRESS 'a1' is not a valid address"),
    # A template's place without a default.
    99: (None, "'broker-instance' was not filled in and has no default"),
    117: (None, "the option SERVICE_NAME is given twice"),
    118: (None, "the option LIFETIME is given twice"),
    **dict.fromkeys([131, 132, 133, 134], (None, "string concatenation")),
}
COMMENTED_OUT = {130}
FILLED_FROM_DEFAULTS = {100}
TEXTS_OF_EXEC = {111, 112, 113, 114}
PRINTED = 115


def _rows() -> list[dict[str, Any]]:
    if not DATA.exists():
        pytest.skip(f"{DATA.name} is not beside the project")
    return [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]


def _values(script: ReadScript) -> list[dict[str, str | None]]:
    values = []
    for statement in script.statements:
        assert isinstance(statement, CreateRoute)
        options = statement.options
        seconds = options.lifetime_seconds
        values.append(
            {
                "route_name": statement.name,
                "service_name": options.service_name,
                "broker_instance": options.broker_instance,
                "lifetime": None if seconds is None else str(seconds),
                "address": options.address,
                "mirror_address": options.mirror_address,
            }
        )
    return values


def _expected(row: dict[str, Any]) -> dict[str, str | None]:
    # An owner makes no difference to routing.
    return {name: value for name, value in row["values"].items() if name != "authorization"}


def test_each_statement_is_read_right_or_reported(read: ReadText) -> None:
    rows = _rows()
    assert len(rows) == 134
    for row in rows:
        script = read(row["statement"], file=row["source_path"])
        if row["id"] in REPORTED:
            number, why = REPORTED[row["id"]]
            assert script.statements == ()
            (problem,) = script.problems
            assert (problem.file, problem.line) == (row["source_path"], 1)
            assert (problem.number, problem.counted) == (number, False)
            assert why in problem.why
        elif row["id"] in COMMENTED_OUT:
            assert (script.statements, script.problems) == ((), ())
        elif row["id"] in FILLED_FROM_DEFAULTS:
            assert [value["route_name"] for value in _values(script)] == ["test_route"]
            assert [value["service_name"] for value in _values(script)] == ["test_service"]
            assert script.problems
            assert all(problem.counted for problem in script.problems)
        else:
            assert _values(script) == [_expected(row)]
            assert script.problems == ()


def test_given_variables_make_values_known(read: ReadText) -> None:
    variables = {
        "TargetTCP": "TCP://target:4022",
        "InitiatorTCP": "TCP://initiator:4022",
        "bingo": "chem",
        "eHubTransactionsSBEndpoint": "hub:4022",
        "eHubTransactionsSBTestEndpoint": "test:4022",
    }
    expected = {
        **dict.fromkeys([73, 74, 75], "TCP://target:4022"),
        **dict.fromkeys([79, 80, 81], "TCP://initiator:4022"),
        116: "LOCAL",
        119: "TCP://test:4022",
        **dict.fromkeys([120, 121, 122], "TCP://hub:4022"),
    }
    by_id = {row["id"]: row for row in _rows()}
    for row_id, address in expected.items():
        script = read(by_id[row_id]["statement"], variables=variables)
        assert script.problems == ()
        (value,) = _values(script)
        assert value["address"] == address
        assert "$" not in str(value)


def test_statements_without_separators_are_read(read: ReadText) -> None:
    plain = [row for row in _rows() if row["id"] not in {*REPORTED, *COMMENTED_OUT, 100}]
    script = read("\n".join(row["statement"] for row in plain))
    assert _values(script) == [_expected(row) for row in plain]
    assert script.problems == ()


def test_texts_of_exec_are_read_and_printed_ones_reported(read: ReadText) -> None:
    for row in _rows():
        if row["id"] not in {*TEXTS_OF_EXEC, PRINTED}:
            continue
        text = f"USE {row['context_database']};\n{row['statement']}".replace("'", "''")
        if row["id"] == PRINTED:
            script = read(f"\nPRINT (N'{text}')")
            assert script.statements == ()
            assert [(p.line, "printed, not run" in p.why) for p in script.problems] == [(2, True)]
        else:
            script = read(f"\nEXEC (N'{text}');")
            assert _values(script) == [_expected(row)]
            assert [(statement.line, statement.database) for statement in script.statements] == [
                (2, row["context_database"])
            ]
            assert script.problems == ()
