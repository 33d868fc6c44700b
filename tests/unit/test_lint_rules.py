"""Custom rules: a Python file of marked functions that lint runs with its own rules."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import routing
from routing import cli
from routing.config import ConfigError
from routing.lint.custom_rules import ROWS, RuleError, configuration_of, find_own
from routing.lint.lint_settings import load_rules, settings
from routing.lint.linting import lint_apart
from routing.rules.timeline import micros_of
from routing.schemas import DATABASES, INSTANCES, ROUTES, SERVICES
from routing.tables.table_columns import TableColumns
from tests import estate_rows

AT = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
HEAD = "import routing\n\n\n"
RULE = (
    HEAD
    + '''@routing.finding("SHOP001", "error", "A route to the old gateway", "point it at the new one")
def old_gateway(configuration):
    """The old gateway goes in May."""
    for route in configuration.routes_in_force:
        if "old.example" in route.address.lower():
            yield route, f"address '{route.address}' is the old gateway's"
'''
)


def rule_of(body: str, code: str = "SHOP001") -> str:
    return f'{HEAD}@routing.finding("{code}", "warning", "T", "A")\ndef rule(configuration):\n{body}\n'


def file_of(folder: Path, text: str = RULE, name: str = "rules.py") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def columns(**rows: list[dict[str, Any]]) -> dict[str, TableColumns]:
    schemas = {"routes": ROUTES, "databases": DATABASES, "services": SERVICES, "instances": INSTANCES}
    return {key: TableColumns.of_rows(rows.get(key, []), schema) for key, schema in schemas.items()}


def route(name: str = "R", address: str | None = "tcp://OLD.example:4022", **more: Any) -> dict[str, Any]:
    return estate_rows.route(name, None, address, **more)


def custom_findings(folder: Path, text: str, **rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    estate = configuration_of(columns(**(rows or {"routes": [route()]})), micros_of(AT))
    return list(find_own(load_rules([file_of(folder, text)]), estate))


def test_a_custom_rule_gives_findings(tmp_path: Path) -> None:
    [one] = custom_findings(tmp_path, RULE)
    assert one == (
        *("SHOP001", "hub", "Sales", "R", "address 'tcp://OLD.example:4022' is the old gateway's"),
        None,
    )


def test_rows_are_those_of_the_tables() -> None:
    for kind, schema in zip(ROWS, (ROUTES, DATABASES, SERVICES, INSTANCES), strict=True):
        assert list(kind._fields) == schema.names  # type: ignore[attr-defined]


def test_a_custom_rule_gets_the_configuration() -> None:
    hour = 3_600_000_000
    estate = configuration_of(
        columns(
            routes=[
                route("Now", lifetime=AT.replace(hour=13)),
                route("Over", lifetime=AT),
                route("Later", valid_from=AT.replace(hour=13)),
                route("Null", None),
            ],
            instances=[estate_rows.instance("hub", "tcp://hub:1"), estate_rows.instance("bare")],
            databases=[estate_rows.database()],
            services=[estate_rows.service("Sales", "//a")],
        ),
        micros_of(AT),
    )
    assert estate.now == AT
    assert [one.name for one in estate.routes] == ["Now", "Over", "Later", "Null"]
    assert [one.name for one in estate.routes_in_force] == ["Now", "Null"]
    assert estate.routes[0].lifetime == datetime(2026, 3, 1, 13, tzinfo=timezone.utc)
    assert [one.addresses for one in estate.instances] == [("tcp://hub:1",), None]
    assert [rows[0].subject for rows in (estate.databases, estate.services, estate.instances)] == [
        ("hub", "Sales", "Sales"),
        ("hub", "Sales", "//a"),
        ("hub", None, "hub"),
    ]
    # Spark holds years that Python does not.
    far = columns(routes=[route()])
    far["routes"].values["lifetime"][0] = 400_000 * 366 * 24 * hour  # type: ignore[index]
    assert configuration_of(far, 0).routes[0].lifetime == datetime.max.replace(tzinfo=timezone.utc)


def test_a_custom_rule_names_its_subject(tmp_path: Path) -> None:
    body = "    yield ('hub', None, None), 'a'\n    yield (None, 'Sales', 'x'), 'b'"
    assert {one[:5] for one in custom_findings(tmp_path, rule_of(body))} == {
        ("SHOP001", None, "Sales", "x", "b"),
        ("SHOP001", "hub", None, None, "a"),
    }


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    yield 'hub', 'a'", "yields \"('hub', 'a')\" instead of (subject, message)"),
        ("    yield configuration.routes[0]", "instead of (subject, message)"),
        ("    yield configuration.routes[0], 5", "instead of (subject, message)"),
        ("    yield ('hub', 'Sales'), 'a'", "instead of (subject, message)"),
        ("    yield ('hub', 'Sales', 5), 'a'", "instead of (subject, message)"),
        ("    x = {}\n    return x['port']", "line 7: KeyError: 'port'"),
        ("    return None", "line 4: TypeError: 'NoneType' object is not iterable"),
        ("    yield ('hub', None, None), 'a'\n    raise SystemExit(0)", "line 7: SystemExit: 0"),
        ("    import json\n    json.loads('{')", "line 7: JSONDecodeError: Expecting property name"),
    ],
)
def test_a_rule_that_fails_is_named_with_its_line(body: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(RuleError) as caught:
        custom_findings(tmp_path, rule_of(body))
    assert caught.value.exit_code == 2
    assert caught.value.message.startswith("the lint rule SHOP001")
    assert str(tmp_path / "rules.py") in caught.value.message
    assert expected in caught.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "import routing\nimport nothing_of_this_name\n",
            "line 2 cannot be run: ModuleNotFoundError: No module named",
        ),
        ("def broken(:\n", "line 1 cannot be run: SyntaxError: invalid syntax"),
        ("x = 1\nraise SystemExit(0)\n", "line 2 cannot be run: SystemExit: 0"),
        # A ValueError before Python 3.11.4, a SyntaxError since.
        ("x = '\0'\n", "Error: source code string cannot contain null bytes"),
        ("x = 1\n", "define no rule"),
        (
            rule_of("    return []", "SBR050"),
            "line 4 cannot be run: ValueError: 'SBR050' is no code for a finding of",
        ),
        (rule_of("    return []", "shop1"), "ValueError: 'shop1' is no code"),
        (rule_of("    return []", "SHOP"), "ValueError: 'SHOP' is no code"),
        (
            rule_of("    return []").replace("warning", "fatal"),
            "ValueError: severity 'fatal' of SHOP001 is not one of",
        ),
        (rule_of("    return []").replace('"A"', '" "'), "ValueError: the advice of a finding is text, not ' '"),
        (RULE + RULE.partition(HEAD)[2].replace("def old", "def other"), "two lint rules have the code SHOP001: "),
    ],
)
def test_an_unusable_file(text: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(RuleError) as caught:
        load_rules([file_of(tmp_path, text)])
    assert expected in caught.value.message
    assert len(caught.value.message) < 1000


def test_files_of_rules(tmp_path: Path) -> None:
    first, second = file_of(tmp_path), file_of(tmp_path, rule_of("    return []", "SHOP002"), "more.py")
    assert [rule.code for rule in load_rules([first, second, first])] == ["SHOP001", "SHOP002"]
    with pytest.raises(RuleError, match=r"two lint rules have the code SHOP001: '.*', line 4 and '.*', line 4"):
        load_rules([first, file_of(tmp_path, RULE, "copy.py")])
    with pytest.raises(RuleError, match="cannot be read: No such file or directory"):
        load_rules([str(tmp_path / "gone.py")])
    # Nothing is left beside the files, as an import would leave it.
    assert sorted(each.name for each in tmp_path.iterdir()) == ["copy.py", "more.py", "rules.py"]


def test_two_functions_of_one_name_are_two_rules(tmp_path: Path) -> None:
    """The second takes the first one's name, and would take its place without a word."""
    text = rule_of("    return []") + rule_of("    return []", "SHOP002").removeprefix(HEAD)
    assert [rule.code for rule in load_rules([file_of(tmp_path, text)])] == ["SHOP001", "SHOP002"]
    imports = "import sys\nsys.path.insert(0, %r)\nimport shared_rules_of_this_test\nsys.path.pop(0)\n"
    file_of(tmp_path, text, "shared_rules_of_this_test.py")
    with pytest.raises(RuleError, match="define no rule"):
        load_rules([file_of(tmp_path, imports % str(tmp_path), "importing.py")])


def test_output_of_a_rule_is_not_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    custom_findings(tmp_path, "print('loaded')\n" + rule_of("    print('run')\n    return []"))
    assert capsys.readouterr() == ("", "loaded\nrun\n")


def test_a_custom_rule_stays_callable() -> None:
    @routing.finding("SHOP001", "info", "T", "A")
    def rule(configuration: routing.Configuration) -> list[Any]:
        return [(configuration.now, "x")]

    without_rows = configuration_of(columns(), micros_of(AT))
    assert rule(without_rows) == [(AT, "x")]
    assert rule.place[0] == __file__


def test_the_section_names_files_beside_the_configuration(tmp_path: Path) -> None:
    file_of(tmp_path)
    section = {"rules": "rules.py", "suppress": [{"code": "SHOP001"}]}
    read = settings(section, str(tmp_path / "job.yaml"))
    assert [rule.code for rule in read.rules] == ["SHOP001"]
    assert settings({"rules": ["rules.py"]}, str(tmp_path / "job.yaml")).rules == read.rules
    with pytest.raises(ConfigError, match="unknown finding 'SHOP002', codes are SBR001 to SBR053, and SHOP001"):
        settings({"rules": "rules.py", "suppress": [{"code": "SHOP002"}]}, str(tmp_path / "job.yaml"))
    for wrong in (5, [5], {"a": 1}, [""], "\0"):
        with pytest.raises(ConfigError, match=r"lint\.rules must be the name of a Python file, or a list"):
            settings({"rules": wrong}, "job.yaml")
    with pytest.raises(ConfigError, match=r"lint\.rules names files beside a configuration behind a URI: give"):
        settings(section, "s3a://bucket/job.yaml")
    more = settings({}, "s3a://bucket/job.yaml", [str(tmp_path / "rules.py")])
    assert [rule.code for rule in more.rules] == ["SHOP001"]


def test_findings_of_custom_rules_are_compared(tmp_path: Path) -> None:
    rules = load_rules([file_of(tmp_path)])
    before, after = columns(routes=[route("A"), route("B")]), columns(routes=[route("B"), route("C")])
    goes, comes = lint_apart((before, micros_of(AT)), (after, micros_of(AT)), rules=rules)
    names = [[row["object"] for row in rows if row["code"] == "SHOP001"] for rows in (goes, comes)]
    assert names == [["A"], ["C"]]


SCRIPT = "USE Sales;\nCREATE ROUTE A WITH ADDRESS = 'tcp://old.example:1';\n"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = cli.main(["lint", *arguments])
    return status, *capsys.readouterr()


def test_the_command_runs_custom_rules_over_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, script = file_of(tmp_path), tmp_path / "a.sql"
    script.write_text(SCRIPT, encoding="utf-8")
    status, out, _ = run(capsys, str(script), "--rules", rules, "--fail-on", "error", "--format", "json")
    [one] = json.loads(out)["findings"]
    assert status == 1
    assert (one["code"], one["severity"], one["advice"], one["file"], one["line"]) == (
        *("SHOP001", "error", "point it at the new one", str(script), 2),
    )
    status, out, _ = run(capsys, str(script), "--rules", rules)
    assert (status, "SHOP001 error (1): " in out and "what to do: point it at the new one" in out) == (0, True)
    _, out, _ = run(capsys, str(script), "--rules", rules, "--format", "sarif")
    log = json.loads(out)["runs"][0]
    assert log["tool"]["driver"]["rules"][-1]["id"] == log["results"][0]["ruleId"] == "SHOP001"
    assert "The old gateway goes in May." in log["tool"]["driver"]["rules"][-1]["help"]["text"]
    _, out, _ = run(capsys, str(script), "--rules", rules, "--format", "junit")
    assert '<testcase classname="sbroute.lint" name="SHOP001 A route to the old gateway" time="0" file="' in out
    section = tmp_path / "lint.yaml"
    section.write_text("lint: {rules: rules.py, suppress: [{code: SHOP001, object: A}]}\n", encoding="utf-8")
    status, out, _ = run(capsys, str(script), "--config", str(section), "--fail-on", "info")
    assert (status, "0 info, 1 suppressed" in out) == (0, True)


def test_the_command_reports_failing_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, script = file_of(tmp_path, rule_of("    1 / 0")), tmp_path / "a.sql"
    script.write_text(SCRIPT, encoding="utf-8")
    expected = f"sbroute: the lint rule SHOP001 failed in {rules!r}, line 6: ZeroDivisionError: division by zero"
    more = " (--verbose shows more; nothing was reported)\n"
    assert run(capsys, str(script), "--rules", rules) == (2, "", expected + more)


def test_the_page_of_a_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--explain", "shop001", "--rules", file_of(tmp_path))[1] == (
        "# SHOP001: A route to the old gateway\n\nSeverity: error\n\nThe old gateway goes in May.\n\n"
        "## Remedy\n\npoint it at the new one\n"
    )
    assert run(capsys, "--explain", "SHOP001")[0] == 2


def test_custom_rules_run_over_tables(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from routing.lint.linting import lint
    from routing.tables.arrow_rows import table_of

    empty = {"databases": DATABASES, "services": SERVICES, "instances": INSTANCES}
    tables = {key: table_of([], schema) for key, schema in empty.items()}
    tables["routes"] = table_of([{**dict.fromkeys(ROUTES.names), **route()}], ROUTES)
    assert isinstance(tables["routes"], pyarrow.Table)
    done = lint(tables, now=AT, rules=load_rules([file_of(tmp_path)]))
    assert [row["code"] for row in done.findings] == ["SHOP001"]


def test_the_public_names_need_no_spark() -> None:
    assert routing.finding is routing.lint.custom_rules.custom_rule
    assert "routing.lint.custom_rules" in sys.modules
