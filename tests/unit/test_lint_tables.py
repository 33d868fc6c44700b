"""Lint gives the same findings for Arrow tables and files, and misses no relevant row of dialogs.

tests/spark/test_lint.py compares DataFrames with the same findings.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyarrow.dataset import dataset

from routing import cli
from routing.lint import message_rules
from routing.lint.address_rules import refused_rows
from routing.lint.lint_estate import LintEstate, LintFinding, read_one
from routing.lint.linting import lint
from routing.rules.timeline import micros_of
from routing.schemas import DIALOGS, RESOLVED_ROUTES, ROUTE_REQUESTS, Schema
from routing.tables.read_rows import columns_of
from routing.tables.table_columns import TableColumns
from tests.estate_rows import small_estate
from tests.frames import arrow, arrow_of, merged
from tests.golden_texts import GOLDEN
from tests.hostile import NAMES
from tests.imports import no_spark
from tests.lint_drafts import NOW
from tests.lint_messages import RESOLVED
from tests.stored import config_of, save_estate, save_job
from tests.unit.test_lint_findings import QUIET, all_estates
from tests.without import EVERYTHING, without

Row = dict[str, Any]
ZERO, ID = "00000000-0000-0000-0000-000000000000", "AbCdEf00-0000-0000-0000-00000000000{}"
_TIMES = (None, NOW, datetime(1, 1, 1, tzinfo=timezone.utc), datetime(9999, 12, 31, 23, tzinfo=timezone.utc))
OF_MESSAGES = ("SBR028", "SBR039")


def random_rows(seed: int, schema: Schema, count: int) -> list[Row]:
    """Rows that lack values, share keys and groups, and are bound in every way."""
    rng = random.Random(seed)

    def value(name: str) -> Any:
        if name == "conversation_id":
            guid = ID.format(rng.randint(0, 9))
            return rng.choice([None, "", guid, guid.lower(), guid.upper(), "\u0130d"])
        if name.endswith("broker_instance"):
            return rng.choice([None, "", ZERO, " {} ", "{b1}", " B1 ", "b1", "b2", "{", "}"])
        if name.endswith("_at") or name == "lifetime":
            return rng.choice(_TIMES)
        if name == "is_initiator":
            return rng.choice([True, True, False, None])
        return rng.choice(["a", "a", "b", "", None])

    return [{name: value(name) for name in schema.names} for _ in range(count)]


def findings(dialogs: TableColumns, requests: TableColumns) -> set[LintFinding]:
    empty = {key: columns_of(table, key) for key, table in arrow({}).items() if key != "messages"}
    estate = LintEstate(
        {**empty, "dialogs": dialogs, "route_requests": requests}, {}, frozenset(), micros_of(NOW), 30
    )
    return {*refused_rows(estate), *message_rules.torn_groups(estate)}


@pytest.mark.parametrize("seed", range(20))
def test_relevant_rows_are_kept(seed: int) -> None:
    rows = {
        "dialogs": arrow_of(random_rows(seed, DIALOGS, 300), DIALOGS),
        "route_requests": arrow_of(random_rows(seed, ROUTE_REQUESTS, 10), ROUTE_REQUESTS),
    }
    kept_findings = findings(*(read_one(table, key, micros_of(NOW)) for key, table in rows.items()))
    assert kept_findings == findings(*(columns_of(table, key) for key, table in rows.items()))
    assert {one.code for one in kept_findings} == {"SBR010", "SBR038"}


def test_irrelevant_rows_are_left_out() -> None:
    sound = {"instance_name": "a", "database_name": "b", "is_initiator": True, "far_service": "s"}
    group = {"conversation_group_id": "g", "far_broker_instance": "{B1}"}
    rows = [{**sound, "conversation_id": ID.format(n), **(group if n < 5 else {})} for n in range(9)]
    rows[1].update(far_broker_instance="b1 ")
    # Acknowledged later, so that it is not yet bound to that id.
    rows[2].update(acknowledged_broker_instance="b2", acknowledged_at="9999-01-01T00:00:00Z")
    rows[3].update(is_initiator=False, far_broker_instance="b3")
    rows[4].update(far_service="other", far_broker_instance="b4")
    assert len(read_one(arrow_of(rows, DIALOGS), "dialogs", micros_of(NOW))) == 0


@pytest.mark.parametrize(("at", "count"), [(NOW, 2), (NOW + timedelta(microseconds=1), 0), (None, 0)])
def test_an_acknowledgement_binds_from_its_time_on(at: datetime | None, count: int) -> None:
    group = {"far_service": "s", "conversation_group_id": "g", "far_broker_instance": "b1"}
    sound = {"instance_name": "a", "database_name": "b", "is_initiator": True, **group}
    other = {"acknowledged_broker_instance": "b2", "acknowledged_at": at}
    rows = [{**sound, "conversation_id": ID.format(1)}, {**sound, "conversation_id": ID.format(2), **other}]
    assert len(read_one(arrow_of(rows, DIALOGS), "dialogs", micros_of(NOW))) == count


def test_tables_and_files_are_linted_alike(tmp_path: Path) -> None:
    all_rows = {key: rows for key, rows in all_estates().items() if key != "messages"}
    some = {"dialogs": random_rows(1, DIALOGS, 300), "route_requests": random_rows(1, ROUTE_REQUESTS, 40)}
    named = [{"instance_name": name, "database_name": name, "name": name, "address": name} for name in NAMES]
    tables = merged([all_rows, some, {"routes": named, "messages": []}])
    resolved = arrow_of(RESOLVED, RESOLVED_ROUTES)
    plain = lint(arrow(tables), now=NOW, suppress=QUIET, resolved=resolved)
    places = config_of(save_estate(tables, tmp_path), tmp_path).tables
    opened = no_spark().open(places)
    assert lint(opened, now=NOW, suppress=QUIET, resolved=dataset(resolved)) == plain
    codes = Counter(row["code"] for row in plain.findings)
    assert set(OF_MESSAGES) <= set(codes)
    assert codes["SBR010"] > 100
    assert codes["SBR038"] > 1
    assert {row["instance_name"] for row in plain.findings} >= set(NAMES)


@pytest.fixture(scope="module")
def config_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_job(small_estate(), tmp_path_factory.mktemp("job")))


def expected() -> list[Row]:
    """Return the findings of the stored estate without its messages."""
    golden = json.loads((GOLDEN / "lint_stored.json").read_text(encoding="utf-8"))
    return [row for row in golden["findings"] if row["code"] not in OF_MESSAGES]


def test_the_command_lints_stored_tables(config_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"lint --config {config_file} --now 2026-01-05T12:00:00Z --fail-on error"
    assert cli.main([*line.split(), "--format", "json"]) == 1
    out, err = capsys.readouterr()
    assert (json.loads(out), err) == ({"findings": expected(), "suppressed": 0}, "")
    assert cli.main([*line.split(), "--verbose"]) == 1
    out, err = capsys.readouterr()
    assert "tables.routes: read by deltalake" in err
    assert all(row["message"].split()[0] in out for row in expected())


def test_neither_spark_nor_pandas_nor_rich_is_needed(config_file: str) -> None:
    now = "2026-01-05T12:00:00Z"
    done = without(EVERYTHING, "lint", "--config", config_file, "--now", now, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["findings"] == expected()
