"""``sbroute report`` as a user runs it, over hand-written tables and without Spark."""

from __future__ import annotations

import json
import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake

import routing
from routing import cli
from routing.config import ConfigError
from routing.errors import EnvironmentFault, InputError, OutputError
from routing.process import CommandProgress
from routing.schemas import INPUTS, RECONCILIATION, RESOLVED_ROUTES, ROUTES, RUNS
from routing.views.page import page_file
from tests.estate_rows import database, instance, route, service
from tests.frames import Tables, arrow_of
from tests.listed_messages import resolved
from tests.report_samples import sample_report
from tests.stored import job_file, job_without_tables, save_estate, store_local
from tests.unit.test_report_page import Page
from tests.unit.test_runs_command import recorded

NOW = ("--now", "2026-01-05T12:30:00Z")
KEYS = ("routes", "databases", "services", "instances")
IDS = ("1" * 8 + "-0000-4000-8000-000000000000", "2" * 8 + "-0000-4000-8000-000000000000")
SETTINGS: dict[str, Any] = {"output": {"runs": "out/runs"}, "tables": {"messages": "messages", "routes": "routes"}}

# Two databases with one service; HUB's Shop shares its dialogs out between them.
_HUB = {"instance_name": "HUB"}
TABLES: Tables = {
    "instances": [instance("HUB", "tcp://hub:4022")],
    "databases": [
        database(name, guid, **_HUB)
        for name, guid in (("Shop", "3" * 8 + IDS[0][8:]), ("Stock1", IDS[0]), ("Stock2", IDS[1]))
    ],
    "services": [service(f"Stock{place}", "//stock", **_HUB) for place in (1, 2)],
    "routes": [
        route(f"ToStock{place}", "//stock", "LOCAL", **_HUB, database_name="Shop", broker_instance=guid)
        for place, guid in enumerate(IDS, 1)
    ],
}


def picked(name: str, place: int) -> dict[str, Any]:
    """A message that step 3 sent to one of the two databases."""
    dialog_columns: dict[str, Any] = {
        "matching_step": 3,
        "broker_instance": IDS[place - 1],
        "route_name": f"ToStock{place}",
    }
    return resolved(
        name, "//stock", "10:00:00", "DELIVERED LOCAL_SERVICE", **dialog_columns, destination_database="Stock"
    )


MESSAGES = [
    *(picked(f"p{number}", 1 + (number > 3)) for number in range(12)),
    # Was tried again, and is delayed still: it counts once.
    resolved("d1", "//billing", "09:00:00", "DELAYED NO_ROUTE"),
    resolved("d1", "//billing", "09:00:00", "DELAYED NO_ROUTE", 2),
    resolved("d2", "//billing", "08:00:00", "DELAYED NO_ROUTE"),
]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration over the inputs and outputs of two runs."""
    folder = tmp_path_factory.mktemp("reported")
    job_file(folder, **{key: folder / key for key in (*KEYS, "messages")})
    save_estate(TABLES, folder, files=1)
    store_local(arrow_of(MESSAGES, RESOLVED_ROUTES), folder / "out" / "resolved_routes")
    store_local(arrow_of(runs(folder), RUNS), folder / "out" / "runs")
    return folder / "job.yaml"


def runs(folder: Path) -> list[dict[str, Any]]:
    shared: dict[str, Any] = {
        "settings": json.dumps({**SETTINGS, "tables": {**SETTINGS["tables"], "routes": str(folder / "routes")}}),
        "input_versions": dict.fromkeys((*KEYS, "messages"), 0),
        "output_versions": {"resolved_routes": 0},
        "rows_rejected": 1,
        "rows_unchanged": 0,
        "rows_erased": None,
    }
    first = recorded("run-1", "2026-01-05T10:00:00Z", "2026-01-05T10:00:01Z", **shared)
    last = recorded("run-2", "2026-01-05T12:00:00Z", "2026-01-05T12:00:01Z", **shared)
    return [
        {**first, "outcome_counts": {"DELIVERED": 14}, "reason_counts": {"LOCAL_SERVICE": 14}, "rows_read": 15},
        {
            **last,
            "outcome_counts": {"DELIVERED": 12, "DELAYED": 2},
            "reason_counts": {"LOCAL_SERVICE": 12, "NO_ROUTE": 2},
            "rows_read": 15,
            "rows_resolved": 14,
        },
    ]


def test_a_page_is_written_for_the_last_run(job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report.html"
    assert cli.main(["report", "--config", str(job), "--out", str(out), *NOW]) == 0
    headline = "Run run-2 ended 2026-01-05T12:00:01Z: 15 messages read, 14 resolved, 1 rejected"
    printed, err = capsys.readouterr()
    answer, summary, place = printed.split("\n\n")
    assert (answer, place, err) == ("2 of 14 messages are stuck.", f"written to {out}\n", "")
    assert summary.replace("\n", " ") == headline
    page = Page(out.read_text(encoding="utf-8"))
    assert headline in page.text
    assert "1 message was rejected by the run, and its outcome is not known" in page.text
    assert page.rows("services") == [["HUB", "//stock", "12", "0", "12"], ["HUB", "//billing", "0", "2", "2"]]
    assert page.rows("times") == [["2026-01-05 12:00", "12", "2", "14"]]
    assert page.rows("stuck") == [
        ["//billing", "HUB", "Shop", "DELAYED", "NO_ROUTE", "2", "2026-01-05 08:00", "4 h 30 min"],
    ]
    assert [row[:5] for row in page.rows("balance-0")] == [
        [IDS[0], "HUB.Stock1", "4", "6.0", "3 to 9"],
        [IDS[1], "HUB.Stock2", "8", "6.0", "3 to 9"],
    ]
    assert page.rows("coverage") == [["HUB", "2", "2", "0"]]
    assert page.rows("outcomes-before") == [["DELIVERED", "14", "12", "-2"], ["DELAYED", "0", "2", "+2"]]
    assert page.rows("routes") == [["none"]]
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_an_interruption_waits_until_the_page_has_taken_its_place(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command_progress, meanwhile, sync = CommandProgress(), [], os.fsync

    def look(descriptor: int) -> None:
        meanwhile.append((command_progress.deciding.locked(), command_progress.text))
        sync(descriptor)

    monkeypatch.setattr("os.fsync", look)
    line = ["report", "--config", str(job), "--out", str(tmp_path / "report.html"), "--quiet"]
    assert command_progress.text == "nothing was written"
    assert cli.main(line, command_progress) == 0
    assert meanwhile == [(True, "the page is either the old or the new one (start it again)")]
    assert (command_progress.deciding.locked(), command_progress.text) == (
        False,
        "the page had already been written",
    )


def test_as_json(job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report.html"
    line = ["report", "--config", str(job), "--out", str(out), *NOW, "--format", "json"]
    assert cli.main(line) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == {
        "file": str(out),
        "answer": "2 of 14 messages are stuck.",
        "headline": "Run run-2 ended 2026-01-05T12:00:01Z: 15 messages read, 14 resolved, 1 rejected",
        "outcomes": {"DELIVERED": 12, "DELAYED": 2},
        "endings": {"DELIVERED": 12, "DELAYED": 2},
        "troubles": [],
    }


def test_spark_is_not_started(job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("routing.sessions.session.start", start)
    assert cli.main(["report", "--config", str(job), "--out", str(tmp_path / "a.html"), "--quiet"]) == 0


def test_a_report_of_given_tables() -> None:
    tables = {key: arrow_of(rows, INPUTS[key]) for key, rows in TABLES.items()}
    report = routing.report({**tables, "resolved_routes": arrow_of(MESSAGES, RESOLVED_ROUTES)})
    assert report.headline == "14 resolved messages"
    assert report.outcomes == {"DELIVERED": 12, "DELAYED": 2}
    assert report.changes is None
    one = routing.report({**tables, "resolved_routes": arrow_of(MESSAGES[:1], RESOLVED_ROUTES)})
    assert one.headline == "1 resolved message"
    with pytest.raises(InputError, match="input tables are missing: resolved_routes"):
        routing.report(tables)


def test_balances_use_the_routes_of_the_last_decision() -> None:
    # A minute later one of them is gone, within the same five minutes of the series.
    ends = {"valid_to": "2026-01-05T12:01:00Z"}
    [first, second] = TABLES["routes"]
    rows_by_table = {**TABLES, "routes": [first, {**second, **ends}]}
    tables = {key: arrow_of(rows, INPUTS[key]) for key, rows in rows_by_table.items()}
    report = routing.report({**tables, "resolved_routes": arrow_of(MESSAGES, RESOLVED_ROUTES)})
    [shared] = report.balances or ()
    assert [(pick.broker_instance, pick.dialogs) for pick in shared.picks] == [(IDS[0], 4), (IDS[1], 8)]


def test_vacuumed_versions_are_replaced_by_the_newest(job: Path, tmp_path: Path) -> None:
    folder = tmp_path / "moved"
    shutil.copytree(job.parent, folder)
    (folder / "job.yaml").write_text(
        job.read_text("utf-8").replace(str(job.parent), str(folder)), encoding="utf-8"
    )
    files = list((folder / "routes").glob("*.parquet"))
    write_deltalake(str(folder / "routes"), arrow_of(TABLES["routes"][:1], ROUTES), mode="overwrite")
    for file in files:
        file.unlink()
    report = routing.report(routing.load_config(str(folder / "job.yaml")))
    assert report.not_known == (
        "1 message was rejected by the run, and its outcome is not known: see rejected_messages.",
        "The table routes is shown at its newest version: version 0, which the run read, is no longer available.",
    )
    assert [(row["routes"], row["used"]) for row in report.coverage or ()] == [(1, 1)]


def test_an_incremental_run_counts_its_own_rejected_messages(job: Path, tmp_path: Path) -> None:
    folder = tmp_path / "moved"
    shutil.copytree(job.parent, folder)
    (folder / "job.yaml").write_text(
        job.read_text("utf-8").replace(str(job.parent), str(folder)), encoding="utf-8"
    )
    first, last = runs(folder)
    rows = [first, {**last, "mode": "incremental", "rows_rejected": 0}]
    write_deltalake(str(folder / "out" / "runs"), arrow_of(rows, RUNS), mode="overwrite")
    report = routing.report(routing.load_config(str(folder / "job.yaml")))
    assert report.not_known == ("What earlier runs rejected is in rejected_messages.",)
    assert report.changes is not None
    assert report.changes.is_incremental


def test_a_report_needs_a_recorded_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = job_without_tables(tmp_path)
    out = tmp_path / "report.html"
    assert cli.main(["report", "--config", str(file), "--out", str(out)]) == 2
    assert capsys.readouterr().err.startswith("sbroute: no run is recorded in ")
    assert not out.exists()


def test_an_invalid_setting_of_lint_is_reported_first(tmp_path: Path) -> None:
    file = str(job_without_tables(tmp_path))
    with pytest.raises(ConfigError, match=r"lint\.suppress must be a list"):
        routing.report(routing.load_config(file, ["lint.suppress=all"]))


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("absent/report.html", "there is no such folder"),
        (".", "it is a folder"),
        ("file.txt/report.html", "there is no such folder"),
        ("a" * 300, "File name too long"),
        ("pipe", "it is not a regular file"),
    ],
)
def test_an_unwritable_place_is_refused(
    job: Path, tmp_path: Path, file: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file.txt").write_text("kept", encoding="utf-8")
    os.mkfifo(tmp_path / "pipe")
    assert cli.main(["report", "--config", str(job), "--out", str(tmp_path / file)]) == 2
    assert why in capsys.readouterr().err
    assert (tmp_path / "file.txt").read_text(encoding="utf-8") == "kept"
    assert (tmp_path / "pipe").is_fifo()


def test_a_failed_write_leaves_the_old_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "report.html"
    file.write_text("the old one", encoding="utf-8")
    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OutputError, match="No space left on device"):
        routing.write_page(sample_report(), str(file))
    assert file.read_text(encoding="utf-8") == "the old one"
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("module", "package"),
    [("altair", "altair"), ("jinja2", "jinja2"), ("vl_convert", "vl-convert-python")],
)
def test_a_missing_package_is_reported_first(module: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes before anything is read."""
    find_module = find_spec
    monkeypatch.setattr(page_file, "find_spec", lambda name: None if name == module else find_module(name))
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(EnvironmentFault, match=package):
        page_file.check_packages()
    assert cli.main(["report", "--config", "absent.yaml", "--out", "report.html"]) == 2


def test_the_section_on_observations(job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The section needs an existing output.reconciliation. CLOCK_OFF is a cause of an older release."""
    row = {
        "instance_name": "HUB",
        "database_name": "Shop",
        "conversation_id": "c",
        "to_service_name": "//stock",
        "source": "CLASSIFY_EVENT",
        "first_observed_at": "2026-01-05T12:00:00Z",
        "last_observed_at": "2026-01-05T12:00:00Z",
        "observations": 1,
        "observed_outcome": "SENT",
        "predicted_outcome": "DELAYED",
        "predicted_reason": "NO_ROUTE",
        "class": "CONTRADICTED",
        "cause": "CLOCK_OFF",
        "cause_text": "the clock",
    }
    store_local(arrow_of([row, {**row, "class": "CONFIRMED", "cause": None}], RECONCILIATION), tmp_path / "told")
    where = ("--set", f"output.reconciliation={tmp_path / 'told'}")
    for place, expected in ((where, [["HUB", "1", "0", "1", "0", "0"]]), ((*where[:1], f"{where[1]}-not"), None)):
        assert cli.main(["report", "--config", str(job), "--out", str(tmp_path / "page.html"), *NOW, *place]) == 0
        capsys.readouterr()
        page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
        assert ("observed-classes" in page.tables) is (expected is not None)
        if expected is not None:
            assert page.rows("observed-classes") == expected
            assert page.rows("observed-causes") == [["HUB", "CLOCK_OFF", "1", "the clock"]]


def test_a_missing_table_of_endpoints_is_named_after_an_import(job: Path, tmp_path: Path) -> None:
    overrides = [f"tables.imports={tmp_path / 'imports'}"]
    leaks = "Whether conversations leak is not known: there is no table tables.endpoint_counts."
    assert leaks not in routing.report(routing.load_config(str(job), overrides)).not_known
    row = {"instance_name": "HUB", "view_or_file": "routes", "exported_at": 1, "imported_at": 1}
    save_estate({"imports": [row]}, tmp_path, files=1)
    assert leaks in routing.report(routing.load_config(str(job), overrides)).not_known
