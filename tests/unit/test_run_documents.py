"""Output on runs: changes since the previous run, shortened ids and the width of the list."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import routing
from routing.config import Config
from routing.delta.counted_runs import EarlierRun, last_run, open_runs
from routing.delta.opening import LocalOpener
from routing.render.text import write_text
from routing.runs.running import Run, find_done, find_run_before
from routing.schemas import RUNS
from routing.views import run_documents
from routing.views.run_documents import describe_run, make_run_list, summarize_run
from tests.estate_rows import small_estate
from tests.frames import arrow_of
from tests.stored import config_of, save_estate, store_local

AT = datetime(2026, 1, 5, 11, tzinfo=timezone.utc)


def row_of(**columns: Any) -> dict[str, Any]:
    """A row of ``runs``."""
    return {
        "run_id": "now",
        "mode": "full",
        "started_at": AT,
        "finished_at": AT.replace(second=2),
        "rows_read": 10,
        "rows_resolved": 10,
        "rows_rejected": 0,
        "rows_unchanged": 0,
        "rows_erased": None,
        "rows_quarantined": None,
        "quarantined_instances": None,
        "outcome_counts": {"SENT": 6, "DELAYED": 4},
        "reason_counts": {},
        "stage_seconds": {"read": 2.0},
        "seconds": 2.0,
        **columns,
    }


def outcome_text(before: Mapping[str, int] | None, **columns: Any) -> str:
    """Return the output of `resolve` from its outcomes on."""
    earlier = None if before is None else EarlierRun("old", AT, before)
    return write_text(summarize_run(Run(row_of(**columns), (), earlier=earlier))).partition("Outcomes\n")[2]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        pytest.param(
            {"SENT": 7, "DELAYED": 1},
            ["SENT 6 60.0 % 1 fewer", "DELAYED 4 40.0 % 3 more"],
            id="fewer and more",
        ),
        pytest.param({"DELAYED": 4}, ["SENT 6 60.0 % 6 more", "DELAYED 4 40.0 % -"], id="an outcome that is new"),
        pytest.param(
            {"SENT": 6, "DELAYED": 4, "DROPPED": 2_000},
            ["SENT 6 60.0 % -", "DELAYED 4 40.0 % -", "DROPPED 0 0.0 % 2,000 fewer"],
            id="an outcome that is gone",
        ),
        pytest.param({}, ["SENT 6 60.0 % 6 more", "DELAYED 4 40.0 % 4 more"], id="a run of no messages before"),
    ],
)
def test_outcomes_are_compared_with_the_previous_run(before: dict[str, int], expected: list[str]) -> None:
    table, _, last = outcome_text(before).rpartition("\n\n")
    head, *lines = table.splitlines()
    assert head.split() == ["outcome", "messages", "share", "change"]
    assert [" ".join(line.split()) for line in lines] == expected
    assert last.replace("\n", " ") == (
        "The changes are since run old, the full run before, which ended 2026-01-05T11:00:00Z."
    )


def test_unchanged_outcomes_are_stated() -> None:
    assert outcome_text({"SENT": 6, "DELAYED": 4}).endswith(
        "\n\nNothing changed since run old, the full run before, which ended\n2026-01-05T11:00:00Z."
    )


def test_the_first_run_of_a_mode_has_no_comparison() -> None:
    assert outcome_text(None, mode="incremental").endswith(
        "DELAYED         4  40.0 %\n\nThere is no earlier incremental run to compare with."
    )


@pytest.mark.parametrize(
    ("ids", "shown"),
    [
        pytest.param(["3f2c9d1e-77", "9b00c3d2-00"], ["3f2c9d", "9b00c3"], id="different at once"),
        pytest.param(["3f2c9d1e-77", "3f2c9d1f-77"], ["3f2c9d1e", "3f2c9d1f"], id="alike in the beginning"),
        pytest.param(["night-1", "night-12"], ["night-1", "night-12"], id="one begins another"),
        pytest.param(["a", "b"], ["a", "b"], id="shorter than six"),
        pytest.param(["night-1", "night-1"], ["night-", "night-"], id="one id twice"),
    ],
)
def test_ids_are_shortened_to_be_unique(ids: list[str], shown: list[str]) -> None:
    lines = write_text(make_run_list([row_of(run_id=one) for one in ids], are_more=False), width=120).splitlines()
    assert [line.split()[0] for line in lines[2:4]] == shown


def test_a_list_of_large_runs_of_both_modes_fits_80_columns() -> None:
    rows = [
        row_of(
            run_id=f"{number}f2c9d1e-0000-4000-8000-000000000003",
            mode=mode,
            started_at=AT.replace(minute=number, microsecond=number),
            seconds=12_345.678 + number,
            rows_read=12_000_000 + number,
            rows_rejected=7,
            outcome_counts={"DELIVERED": 9_000_000, "DELAYED": 400_000 + number, "DROPPED": 1},
        )
        for number, mode in enumerate(("full", "incremental"))
    ]
    text = write_text(make_run_list(rows, are_more=True), width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert "0f2c9d  full         2026-01-05T11:00:00Z   12,346  12,000,000  DELAYED 400,000," in text
    assert "DROPPED 1" in text


def test_the_local_engine_reads_the_previous_run(tmp_path: Path) -> None:
    save_estate(small_estate(), tmp_path / "in", files=1)
    config = config_of(tmp_path / "in", tmp_path / "out")
    first = routing.resolve_local(config, run_id="first")
    second = routing.resolve_local(config, run_id="second")
    assert first.earlier is None
    assert second.earlier == EarlierRun("first", first.row["finished_at"], first.row["outcome_counts"])
    # Started again, each is compared with what it was compared with.
    runs = open_runs(LocalOpener(), config.output["runs"])
    for done in (first, second):
        again = find_done(runs, config, done.row["run_id"], None)
        assert again is not None
        assert again.earlier == done.earlier


@pytest.mark.parametrize(
    ("modes", "mode", "expected"),
    [
        pytest.param([], "full", None, id="no run"),
        pytest.param(["full", "incremental"], "full", "run-0", id="the last is of the other mode"),
        pytest.param(["full", "incremental"], "incremental", "run-1", id="the last is of the mode"),
        pytest.param(["full", "full"], "incremental", None, id="none of the mode"),
        pytest.param(["full", "full", "incremental"], "full", "run-1", id="the newest of the mode"),
    ],
)
def test_a_run_is_compared_with_the_last_one_of_its_mode(
    modes: list[str], mode: str, expected: str | None, tmp_path: Path
) -> None:
    save_estate(small_estate(), tmp_path / "in", files=1)
    pending = f"output.pending_messages={tmp_path / 'out' / 'pending_messages'}"
    config = config_of(tmp_path / "in", tmp_path / "out", f"resolve.mode={mode}", pending)
    if modes:
        _store_runs(modes, config, tmp_path / "out" / "runs")
    opener, runs = LocalOpener(), config.output["runs"]
    earlier = find_run_before(open_runs(opener, runs), mode, last_run(opener, runs))
    assert (None if earlier is None else earlier.run_id) == expected


def _store_runs(modes: list[str], config: Config, folder: Path) -> None:
    fixed = {
        "as_of": None,
        "now": None,
        "input_versions": {"messages": 1},
        "output_versions": {"resolved_routes": 1},
        "dialog_hash": "builtin",
        "settings": config.as_json(),
        "release": "0.2.0",
    }
    rows = [
        {**row_of(run_id=f"run-{number}", mode=mode, finished_at=AT.replace(minute=number)), **fixed}
        for number, mode in enumerate(modes)
    ]
    stored_rows = [{name: value for name, value in row.items() if name != "seconds"} for row in rows]
    store_local(arrow_of(stored_rows, RUNS), folder)


def test_as_of_is_printed_like_other_times() -> None:
    settings = json.dumps(
        {"resolve": {"as_of": "2026-01-05T18:00:00+00:00", "mode": "full"}, "lint": {"days": 30}}
    )
    row = row_of(
        as_of=AT,
        now=None,
        dialog_hash="builtin",
        engine=None,
        release="0.2.0",
        slow_stages=[],
        settings=settings,
        input_versions={},
        output_versions={},
    )
    assert write_text(describe_run(row)).partition("Settings\n")[2].splitlines() == [
        "lint.days: 30",
        "resolve.as_of: 2026-01-05T18:00:00Z",
        "resolve.mode: full",
    ]


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"rows_unchanged": None}, ""),
        ({"rows_unchanged": 1_200}, "1,200 still delayed, "),
        (
            {"mode": "incremental", "rows_unchanged": 5, "rows_quarantined": 3},
            "2 still delayed, 3 in quarantine, ",
        ),
        ({"mode": "incremental", "rows_unchanged": 3, "rows_quarantined": 3}, "3 in quarantine, "),
        ({"mode": "full", "rows_quarantined": 3}, ""),
    ],
)
def test_messages_without_a_new_row(columns: dict[str, Any], text: str) -> None:
    assert run_documents.say_unchanged(row_of(**columns)) == text
