"""Lint without Spark: codes, pages, configuration and command."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from routing import cli
from routing.cli import CommandParser
from routing.commands import command_context
from routing.commands import lint as command
from routing.commands.shared_arguments import SEVERITIES
from routing.config import ConfigError
from routing.errors import ContractError
from routing.lint.catalogue import FINDINGS, PAGES, Severity, read_rule
from routing.lint.lint_settings import LintSettings, LintSuppression, check_code, page, settings
from routing.lint.linting import LintResult
from routing.result_schemas import FINDINGS as FOUND
from routing.result_schemas import ROUTE_COVERAGE
from routing.tables.arrow_rows import SchemaRows
from tests.estate_rows import small_estate
from tests.golden_texts import assert_golden
from tests.linted import assert_lint_of_stored
from tests.screens import Busy
from tests.stored import job_file, save_estate, save_job

ROOT = Path(__file__).parents[2]
Row = dict[str, Any]


def test_codes_are_numbered_once_and_in_order() -> None:
    assert [finding.code for finding in FINDINGS] == [f"SBR{n:03d}" for n in range(1, len(FINDINGS) + 1)]
    assert len({finding.title for finding in FINDINGS}) == len(FINDINGS)


def test_every_refusal_of_create_route_has_its_number() -> None:
    refusals = {9659, 9660, 9661, 9662, 9743, 9744, 9745, 9746, 9747}
    assert refusals == {f.error_number for f in FINDINGS if f.code <= "SBR009"}


def test_every_page_has_its_parts() -> None:
    for finding in FINDINGS:
        lines = page(finding.code.lower()).splitlines()
        assert [line for line in lines if line.startswith("## ")] == ["## Cause", "## Example", "## Remedy"]
        assert finding.advice
    assert {finding.code for finding in FINDINGS if finding.is_default} == {"SBR023", "SBR036", "SBR045"}


@pytest.mark.parametrize(
    "text", ["", "# SBR1: A\n\nSeverity: error\n\nAdvice: b\n", "# SBR001: A\n\nSeverity: error\n\nAdvise: b\n"]
)
def test_a_page_with_a_wrong_heading_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a page of lint begins otherwise"):
        read_rule(text)


def test_the_list_of_codes_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "lint-codes.md").read_text(encoding="utf-8")
    for finding in FINDINGS:
        link = f"[{finding.code}](../../routing/lint/pages/{finding.code}.md)"
        assert f"| {link} | {finding.severity} | {finding.title} |" in text


def test_an_unknown_code_is_refused() -> None:
    assert check_code("SBR001") is None
    assert check_code("SBR01") == "unknown finding 'SBR01', codes are SBR001 to SBR053"
    with pytest.raises(ContractError, match=r"'\.\./SBR001', codes .* \(sbroute lint --explain CODE\)"):
        page("../SBR001")


def test_the_section_lint_is_read() -> None:
    section = {
        "suppress": [{"code": "SBR036"}, {"instance_name": "hub", "database_name": "Sales", "object": "R"}],
        "expiring_within_days": 7,
    }
    read = settings(section, "job.yaml")
    assert read == LintSettings((LintSuppression("SBR036"), LintSuppression(None, "hub", "Sales", "R")), 7)
    assert settings(None, "job.yaml") == settings({}, "job.yaml") == LintSettings((), 30)


def test_faults_of_the_section() -> None:
    section = {
        "supress": [],
        "suppress": [{"code": "SBR999", "objekt": "R"}, {}, "SBR036", {"object": 4022}],
        "expiring_within_days": -1,
    }
    with pytest.raises(ConfigError) as caught:
        settings(section, "job.yaml")
    assert_golden("lint_section_faults.txt", str(caught.value).replace("; ", ";\n"))
    for wrong in ("fast", True, 1.5):
        with pytest.raises(ConfigError, match=r"lint\.expiring_within_days must be a number of days"):
            settings({"expiring_within_days": wrong}, "job.yaml")
    with pytest.raises(ConfigError, match=r"lint\.suppress must be a list"):
        settings({"suppress": {"code": "SBR036"}}, "job.yaml")
    with pytest.raises(ConfigError, match="lint must be a mapping"):
        settings([1], "job.yaml")


def lint_result(*rows: Row, suppressed: int = 0, coverage: tuple[int, int] | None = None) -> LintResult:
    """Return a result of lint. ``coverage`` has the number of routes and used routes."""
    covered = None
    if coverage is not None:
        covered = SchemaRows(
            ROUTE_COVERAGE, ({"instance_name": "hub", "routes": coverage[0], "used": coverage[1]},)
        )
    return LintResult(SchemaRows(FOUND, rows), SchemaRows(FOUND, (_row(0, "info"),) * suppressed), covered)


def rows(*severities: str) -> list[Row]:
    """A finding of each severity."""
    return [_row(number, severity) for number, severity in enumerate(severities)]


def _row(number: int, severity: str) -> Row:
    return {
        "code": f"SBR{number:03d}",
        "severity": severity,
        "instance_name": "hub",
        "database_name": None,
        "object": "[red]R[/]",
        "message": "it is wrong",
        "advice": "correct it",
        "error_number": 9659,
    }


class Console(Busy):
    """Stores its output."""

    def __init__(self) -> None:
        super().__init__()
        self.printed: list[Any] = []

    def result(self, what: Any) -> None:
        self.printed.append(what)

    def note(self, text: str, level: str = "info") -> None:
        raise AssertionError(text)


def options(*arguments: str) -> argparse.Namespace:
    parser = CommandParser()
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--format", default="table")
    common.add_argument("--width")
    common.add_argument("--color", default="auto")
    common.add_argument("--set", action="append", default=[], dest="overrides")
    command.add(parser.add_subparsers(dest="command"), common)
    return parser.parse_args(["lint", *arguments])


@pytest.fixture
def console() -> Console:
    return Console()


@pytest.mark.parametrize(
    ("fail_on", "severities", "status"),
    [
        (None, ("error",), 0),
        ("error", ("error",), 1),
        ("error", ("warning", "info"), 0),
        ("warning", ("warning",), 1),
        ("warning", ("error",), 1),
        ("warning", ("info",), 0),
        ("info", ("info",), 1),
        ("info", (), 0),
    ],
)
def test_fail_on_sets_the_exit_code(
    fail_on: str | None, severities: tuple[str, ...], status: int, console: Console
) -> None:
    asked = options("--config", "x", *(["--fail-on", fail_on] if fail_on else []))
    assert command.tell_tables(lint_result(*rows(*severities), suppressed=1), asked, console) == status


@pytest.mark.parametrize(
    ("under", "coverage", "status"), [("75", (4, 3), 0), ("75.1", (4, 3), 1), ("100", (0, 0), 0), ("0", (4, 0), 0)]
)
def test_fail_under_sets_the_exit_code(
    under: str, coverage: tuple[int, int], status: int, console: Console
) -> None:
    asked = options("--config", "x", "--fail-under", under)
    assert command.tell_tables(lint_result(coverage=coverage), asked, console) == status


def test_json_is_one_line(console: Console) -> None:
    result = lint_result(*rows("error"), suppressed=2, coverage=(4, 3))
    command.tell_tables(result, options("--config", "x", "--format", "json"), console)
    (line,) = console.printed
    assert "\n" not in line
    assert json.loads(line) == {
        "findings": [_row(0, "error")],
        "suppressed": 2,
        "coverage": {"routes": 4, "used": 3},
    }


def test_explain_prints_the_page(console: Console) -> None:
    assert command.run(options("--explain", "sbr004"), console) == 0
    assert console.printed == [PAGES["SBR004"].rstrip("\n")]


@pytest.mark.parametrize(
    "line", ["--config x --explain SBR001", "--config x --fail-under 101", "--config x --fail-on bad"]
)
def test_a_wrong_command_line(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options(*line.split())
    assert "--help)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "lint needs --config FILE, PATHs or --explain CODE"),
        ("--config x --instance hub", "--instance goes with PATHs"),
        ("--config x -v A=1", "-v goes with PATHs"),
        ("a.sql --messages", "--messages needs --config and no PATH"),
        ("a.sql --fail-under 0", "--fail-under needs --config and no PATH"),
        ("a.sql --config s3://x/y.yaml", "--config 's3://x/y.yaml' needs Spark, which lint PATHs does not start"),
    ],
)
def test_options_that_exclude_each_other_are_refused(line: str, expected: str, console: Console) -> None:
    with pytest.raises(ContractError) as caught:
        command.run(options(*line.split()), console)
    assert caught.value.message == expected


@pytest.mark.usefixtures("plain_terminal")
def test_the_printed_findings_equal_their_golden_file(capsys: pytest.CaptureFixture[str]) -> None:
    asked = options("--config", "x")
    asked.quiet, asked.log_format = True, "text"
    findings = [
        _row(4, "error"),
        {**_row(17, "warning"), "error_number": None, "database_name": "Sales", "object": "Open"},
        {**_row(17, "warning"), "error_number": None, "database_name": "Sales", "object": "Opener"},
    ]
    assert (
        command.tell_tables(
            lint_result(*findings, suppressed=2, coverage=(1200, 900)), asked, command_context.Console(asked)
        )
        == 0
    )
    assert_golden("lint_table.txt", "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines()))


def printed(capsys: pytest.CaptureFixture[str], found: list[Row], *line: str) -> list[str]:
    """The lines that lint prints of findings."""
    asked = options("--config", "x", *line)
    asked.quiet, asked.log_format = True, "text"
    command.tell_tables(lint_result(*found), asked, command_context.Console(asked))
    return [text.rstrip() for text in capsys.readouterr().out.splitlines()]


_THOUSAND = [{**_row(28, "info"), "object": f"R{number:04d}", "error_number": None} for number in range(1_000)]


@pytest.mark.usefixtures("plain_terminal")
def test_a_thousand_equal_findings_are_three_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, _THOUSAND) == [
        "SBR028 info (1,000): A route that no message used",
        "  what to do: correct it",
        "  it is wrong",
        "  - hub.R0000",
        "  - hub.R0001",
        "  - hub.R0002",
        "  and 997 more; --all lists them",
        "",
        "0 errors, 0 warnings, 1,000 info, 0 suppressed; more: sbroute lint --explain",
        "CODE",
    ]
    every = printed(capsys, _THOUSAND, "--all")
    assert [line for line in every if line.startswith("  - ")] == [
        f"  - hub.R{number:04d}" for number in range(1_000)
    ]
    assert not any("more;" in line for line in every)


@pytest.mark.usefixtures("plain_terminal")
def test_errors_come_first_and_counts_last(capsys: pytest.CaptureFixture[str]) -> None:
    findings = [_row(36, "info"), _row(1, "warning"), _row(20, "error"), _row(19, "warning"), _row(2, "error")]
    lines = printed(capsys, findings, "--all")
    heads = [line.split(" (")[0] for line in lines if line.startswith("SBR")]
    assert heads == ["SBR002 error", "SBR020 error", "SBR001 warning", "SBR019 warning", "SBR036 info"]
    assert lines[-1].startswith("2 errors, 2 warnings, 1 info, 0 suppressed")


@pytest.mark.usefixtures("plain_terminal")
@pytest.mark.parametrize(
    ("differs", "is_one_number", "items"),
    [
        pytest.param(
            {"message": "so is this"},
            True,
            ["hub.R1: it is wrong", "hub.R2: so is this"],
            id="messages that differ",
        ),
        pytest.param(
            {"error_number": None},
            False,
            ["hub.R1 (SQL Server's number 9659)", "hub.R2"],
            id="numbers that differ",
        ),
        pytest.param(
            {"file": "a.sql", "line": 7},
            True,
            ["hub.R1", "a.sql:7, hub.R2"],
            id="a file and its line",
        ),
        pytest.param(
            {"instance_name": None, "object": None},
            True,
            ["hub.R1", "it is wrong"],
            id="no name",
        ),
    ],
)
def test_findings_of_a_rule(
    differs: Row, is_one_number: bool, items: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    first = {**_row(1, "warning"), "object": "R1"}
    lines = printed(capsys, [first, {**first, "object": "R2", **differs}])
    assert lines[0] == "SBR001 warning (2): An option of a route is empty text"
    assert ("  SQL Server's number: 9659" in lines) == is_one_number
    assert [line.removeprefix("  - ") for line in lines if line.startswith("  - ")] == items


_AS_INSTALLED = [
    {**_row(23, "info"), "object": "A"},
    {**_row(23, "info"), "object": "B"},
    {**_row(34, "warning"), "object": "C"},
    {**_row(36, "info"), "object": "AutoCreatedLocal"},
]


@pytest.mark.usefixtures("plain_terminal")
@pytest.mark.parametrize(
    ("line", "listed", "counted"),
    [("", ["SBR034"], True), ("--all", ["SBR034", "SBR023", "SBR036"], False)],
)
def test_a_finding_of_every_instance_is_one_line(
    line: str, listed: list[str], counted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(capsys, _AS_INSTALLED, *line.split())
    assert [text[:6] for text in lines if text.startswith("SBR")] == listed
    told = "Not listed, because every instance has it by default: SBR023 (2), SBR036 (1); --all lists them"
    assert (told in " ".join(lines)) == counted
    assert "0 errors, 1 warning, 3 info, 0 suppressed; more: sbroute lint --explain CODE" in lines


@pytest.mark.usefixtures("plain_terminal")
def test_unlisted_findings_count_for_fail_on(capsys: pytest.CaptureFixture[str]) -> None:
    asked = options("--config", "x", "--fail-on", "info")
    asked.quiet, asked.log_format = True, "text"
    assert command.tell_tables(lint_result(_AS_INSTALLED[0]), asked, command_context.Console(asked)) == 1
    assert "0 errors, 0 warnings, 1 info" in capsys.readouterr().out


@pytest.mark.usefixtures("plain_terminal")
def test_a_finding_of_every_instance_is_counted_by_instance(capsys: pytest.CaptureFixture[str]) -> None:
    """The instances with most of it first, and of many the first ten."""
    many = [{**_row(45, "info"), "instance_name": f"i{number:02d}"} for number in range(12)]
    lines = printed(capsys, [*_AS_INSTALLED, *many, {**_row(45, "info"), "object": "C"}])
    counted = lines[lines.index("  - hub: SBR023 (2), SBR036 (1), SBR045 (1)") + 1 :]
    assert counted[:10] == [*(f"  - i{number:02d}: SBR045 (1)" for number in range(9)), "  and 3 more instances"]


def test_json_has_findings_of_every_instance(console: Console) -> None:
    command.tell_tables(lint_result(*_AS_INSTALLED), options("--config", "x", "--format", "json"), console)
    (line,) = console.printed
    assert [row["code"] for row in json.loads(line)["findings"]] == ["SBR023", "SBR023", "SBR034", "SBR036"]


def test_severities_are_worst_first() -> None:
    assert tuple(str(severity) for severity in Severity) == SEVERITIES


def test_messages_of_local_tables_are_resolved_without_spark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("routing.commands.command_context.session", lambda *_: pytest.fail("Spark is started"))
    inputs = save_estate(small_estate(), tmp_path / "in", files=1)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    assert "messages, dialogs: resolved without Spark" in assert_lint_of_stored(inputs, tmp_path, capsys)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_no_messages_use_no_route(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = save_job({**small_estate(), "messages": []}, tmp_path, files=1)
    assert cli.main(["lint", "--config", str(file), "--messages", "--format", "json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["coverage"]["used"] == 0


def test_missing_messages_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_estate(small_estate(), tmp_path / "in", files=1)
    file = job_file(tmp_path, messages=tmp_path / "nowhere")
    assert cli.main(["lint", "--config", str(file), "--messages", "--quiet"]) == 2
    assert "tables.messages: there is no Delta table at" in capsys.readouterr().err
