"""Findings as SARIF and JUnit XML, as code hosts and build servers need them: sorted, stable and escaped."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from routing import cli
from routing.commands import lint as command
from routing.lint.catalogue import BY_CODE
from routing.views.lint.lint_reports import as_junit, as_sarif, fingerprints
from tests.unit.test_lint import Console, _row, lint_result, options

Row = dict[str, Any]
PAGES = {code: f"# {code}" for code in BY_CODE}
# A bell, the escape of colours, half a character, one that XML forbids, and XML's own signs.
HOSTILE = "\x07\x1b[31m\ud800\ufffe]]><a>&amp;\"'\r\n%41 #x?"


def row(number: int = 6, severity: str = "error", **columns: Any) -> Row:
    plain = {**_row(number, severity), "object": "R", "file": "routes/a.sql", "line": 3}
    return {**plain, **columns}


def sarif(*rows: Row, root: str = "/work") -> dict[str, Any]:
    text = as_sarif(rows, BY_CODE, PAGES, "0.2.0", Path(root))
    assert "\n" not in text
    check_sarif(json.loads(text))
    [run] = json.loads(text)["runs"]
    document: dict[str, Any] = run
    return document


def check_sarif(log: dict[str, Any]) -> None:
    """Check a log against the schema of SARIF 2.1.0 and the rules of the code host."""
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    assert re.fullmatch(r"https://.*sarif.*2\.1\.0.*\.json", log["$schema"])
    for run in log["runs"]:
        driver = run["tool"]["driver"]
        assert driver["name"]
        assert re.fullmatch(r"\d+\.\d+\.\d+.*", driver["semanticVersion"])
        ids = [rule["id"] for rule in driver["rules"]]
        assert len(set(ids)) == len(ids)
        for rule in driver["rules"]:
            assert rule["shortDescription"]["text"]
            assert rule["help"]["text"]
            assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
        marks = [json.dumps(result["partialFingerprints"]) for result in run["results"]]
        assert len(set(marks)) == len(marks)
        for result in run["results"]:
            assert ids[result["ruleIndex"]] == result["ruleId"]
            assert result["level"] in ("none", "note", "warning", "error")
            assert result["message"]["text"]
            assert all(isinstance(mark, str) and mark for mark in result["partialFingerprints"].values())
            for location in result["locations"]:
                check_location(location, run["originalUriBaseIds"])


def check_location(location: dict[str, Any], bases: dict[str, Any]) -> None:
    physical = location.get("physicalLocation")
    assert physical or location["logicalLocations"]
    if physical is not None:
        artifact = physical["artifactLocation"]
        assert re.fullmatch(r"[A-Za-z0-9/._~:%-]+", artifact["uri"])
        assert ":" in artifact["uri"] or artifact["uriBaseId"] in bases
        assert not artifact["uri"].startswith("/")
        assert physical.get("region", {"startLine": 1})["startLine"] >= 1
    assert all(base["uri"].endswith("/") and base["uri"].startswith("file:///") for base in bases.values())


def test_a_finding_names_its_line() -> None:
    run = sarif(row())
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(BY_CODE)
    [result] = run["results"]
    assert {key: result[key] for key in ("ruleId", "ruleIndex", "level", "message", "locations")} == {
        "ruleId": "SBR006",
        "ruleIndex": 5,
        "level": "error",
        "message": {"text": "hub.R: it is wrong (SQL Server's number 9659); correct it"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "routes/a.sql", "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": 3},
                },
                "logicalLocations": [{"fullyQualifiedName": "hub.R", "kind": "resource"}],
            }
        ],
    }


@pytest.mark.parametrize(("severity", "level"), [("error", "error"), ("warning", "warning"), ("info", "note")])
def test_severities_have_sarif_levels(severity: str, level: str) -> None:
    assert sarif(row(severity=severity))["results"][0]["level"] == level


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("a b#c%.sql", {"uri": "a%20b%23c%25.sql", "uriBaseId": "%SRCROOT%"}),
        ("/work/in/it.sql", {"uri": "in/it.sql", "uriBaseId": "%SRCROOT%"}),
        ("/elsewhere/it.sql", {"uri": "file:///elsewhere/it.sql"}),
        ("größe.sql", {"uri": "gr%C3%B6%C3%9Fe.sql", "uriBaseId": "%SRCROOT%"}),
        ("odd\udcff.sql", {"uri": "odd%FF.sql", "uriBaseId": "%SRCROOT%"}),
    ],
)
def test_files_as_a_code_host_names_them(file: str, uri: dict[str, str]) -> None:
    [location] = sarif(row(file=file, line=None))["results"][0]["locations"]
    assert location["physicalLocation"] == {"artifactLocation": uri}


def test_tables_have_no_files() -> None:
    table = {name: value for name, value in row().items() if name not in ("file", "line")}
    assert sarif(table)["results"][0]["locations"] == [
        {"logicalLocations": [{"fullyQualifiedName": "hub.R", "kind": "resource"}]}
    ]


def test_fingerprints_outlive_lines_times_and_order() -> None:
    rows = [
        row(line=3, message="it expires at 1"),
        row(object="S"),
        row(object=None, message="a"),
        row(object=None),
    ]
    later = [
        row(line=9, message="it expires at 2"),
        row(object="S"),
        row(object=None, message="a"),
        row(object=None),
    ]
    assert fingerprints(rows) == fingerprints(later)
    assert sorted(fingerprints(rows)) == sorted(fingerprints(random.Random(1).sample(rows, 4)))
    assert len(set(fingerprints([*rows, *rows]))) == 8
    # A name does not move into the next: these are two things.
    first, second = row(instance_name="a", database_name="b.c"), row(instance_name="a.b", database_name="c")
    assert len(set(fingerprints([first, second]))) == 2


def test_hostile_names_in_sarif() -> None:
    run = sarif(row(object=HOSTILE, message=HOSTILE, file=None, line=None))
    text = json.dumps(run, ensure_ascii=False)
    assert not set(text) & set("\x07\x1b\ud800\ufffe\r\n")
    assert "\ufffd\ufffd[31m" in run["results"][0]["message"]["text"]


def junit(*rows: Row, failing: tuple[str, ...] = ("error", "warning")) -> ElementTree.Element:
    text = as_junit(rows, BY_CODE, failing)
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ')
    return ElementTree.fromstring(text.encode())


def test_a_test_for_each_code() -> None:
    suites = junit(row(), row(object="S", line=4), row(31, "warning"), row(36, "info"))
    [suite] = suites
    for element in (suites, suite):
        counts = [element.get(name) for name in ("tests", "failures", "errors", "skipped")]
        assert counts == [str(len(BY_CODE)), "2", "0", "0"]
    tests = {(test.get("name") or "")[:6]: test for test in suite}
    assert list(tests) == list(BY_CODE)
    assert {test.get("classname") for test in suite} == {"sbroute.lint"}
    [failure] = tests["SBR006"]
    line = "hub.R: it is wrong (SQL Server's number 9659); correct it"
    assert failure.text == f"routes/a.sql:3: {line}\nroutes/a.sql:4: {line.replace('R:', 'S:')}"
    assert failure.attrib == {"message": f"2 findings: routes/a.sql:3: {line}", "type": "error"}
    assert tests["SBR006"].get("file") == "routes/a.sql"
    assert [child.tag for child in tests["SBR031"]] == ["failure"]
    assert [child.tag for child in tests["SBR036"]] == ["system-out"]
    assert len(tests["SBR001"]) == 0


def test_reports_fail_as_fail_on_does() -> None:
    [suite] = junit(row(), row(31, "warning"), row(36, "info"), failing=("error",))
    assert suite.get("failures") == "1"
    [suite] = junit(row(36, "info"), failing=("error", "warning", "info"))
    assert suite.get("failures") == "1"


def test_hostile_names_in_xml() -> None:
    [suite] = junit(row(object=HOSTILE, message=HOSTILE, file=HOSTILE))
    [failure] = [failure for test in suite for failure in test]
    assert "\ufffd\ufffd[31m\ufffd\ufffd]]><a>&amp;\"'\ufffd\ufffd%41" in (failure.text or "")
    assert "\n" not in (failure.text or "")


@pytest.mark.parametrize("form", ["sarif", "junit"])
def test_findings_of_tables_are_reported(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console()
    monkeypatch.chdir(tmp_path)
    rows = [_row(6, "error"), _row(31, "warning")]
    asked = options("--config", "conf/job.yaml", "--format", form, "--fail-on", "error")
    assert command.tell_tables(lint_result(*rows), asked, console) == 1
    [text] = console.printed
    if form == "junit":
        assert [test.get("file") for test in ElementTree.fromstring(text)[0]][5] is None
        assert ElementTree.fromstring(text).get("failures") == "1"
        return
    check_sarif(json.loads(text))
    results = json.loads(text)["runs"][0]["results"]
    # The file that names the tables stands for them: a code host asks for one.
    assert [result["locations"][0]["physicalLocation"] for result in results] == [
        {"artifactLocation": {"uri": "conf/job.yaml", "uriBaseId": "%SRCROOT%"}}
    ] * 2


def test_the_command_prints_sarif_and_junit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a b.sql"
    file.write_text("USE Sales;\nCREATE ROUTE R WITH ADDRESS = 'far';\n", encoding="utf-8")
    assert cli.main(["lint", str(file), "--format", "sarif", "--fail-on", "error"]) == 1
    first = capsys.readouterr().out
    log = json.loads(first)
    check_sarif(log)
    [result] = log["runs"][0]["results"]
    physical = result["locations"][0]["physicalLocation"]
    assert unquote(physical["artifactLocation"]["uri"]) == f"file://{file}"
    assert physical["region"] == {"startLine": 2}
    assert "## Cause" in log["runs"][0]["tool"]["driver"]["rules"][5]["help"]["markdown"]
    assert cli.main(["lint", str(file), "--format", "sarif"]) == 0
    assert capsys.readouterr().out == first
    assert cli.main(["lint", str(file), "--format", "junit"]) == 0
    assert ElementTree.fromstring(capsys.readouterr().out.encode()).get("failures") == "1"


def test_other_commands_refuse_sarif(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["check", "x", "--format", "sarif"])
    assert "unknown --format 'sarif'" in capsys.readouterr().err
