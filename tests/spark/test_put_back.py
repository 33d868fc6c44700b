"""Tables that users restore, change or replace: no data is lost without a message.

Each test uses a copy of the tables of two runs, which also moves the folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import routing
from routing.errors import ContractError, StorageError
from tests.crash.estate import NOW, Case, before, copied, run_ids, state
from tests.estate_rows import message
from tests.hooks import Killed, hooked, kill, once
from tests.stored import save_estate, store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long
NEXT = NOW.replace(hour=15)
LATER = [message(21, "//far"), message(22, "//nowhere")]
Damage = Callable[["SparkSession", Case], None]


def _append(case: Case, *rows: dict[str, object]) -> None:
    save_estate({"messages": list(rows)}, case.folder / "in", files=1)


@pytest.fixture(scope="module")
def one_run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Return the tables after a first run, with new messages."""
    return before(spark, tmp_path_factory.mktemp("one") / "case")


@pytest.fixture(scope="module")
def two_runs(spark: SparkSession, one_run: Case, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Return the tables after a second run, with new messages again."""
    case = copied(one_run, tmp_path_factory.mktemp("two") / "case")
    routing.run(spark, case.config(), run_id="second", now=NOW)
    _append(case, *LATER)
    return case


@pytest.fixture
def case(two_runs: Case, tmp_path: Path) -> Case:
    return copied(two_runs, tmp_path / "case")


def _table(case: Case, key: str) -> Path:
    return case.folder / ("in" if key == "messages" else "out") / key


def _sql(text: str, key: str) -> Damage:
    def damage(spark: SparkSession, case: Case) -> None:
        spark.sql(text.replace("TABLE_ITSELF", f"delta.`{_table(case, key)}`")).collect()

    return damage


def _removed(key: str) -> Damage:
    return lambda spark, case: shutil.rmtree(_table(case, key))


def _recreated(key: str) -> Damage:
    def damage(spark: SparkSession, case: Case) -> None:
        copy = _table(case, key).with_suffix(".anew")
        store(spark.read.format("delta").load(str(_table(case, key))).coalesce(1), copy)
        shutil.rmtree(_table(case, key))
        copy.rename(_table(case, key))

    return damage


def _log_cleaned(key: str) -> Damage:
    """Clean the log as Delta does, which leaves a checkpoint and no earlier commit."""

    def damage(spark: SparkSession, case: Case) -> None:
        _sql("ALTER TABLE TABLE_ITSELF SET TBLPROPERTIES ('delta.checkpointInterval' = '1')", key)(spark, case)
        _sql("ALTER TABLE TABLE_ITSELF SET TBLPROPERTIES ('note' = 'x')", key)(spark, case)
        log = _table(case, key) / "_delta_log"
        for file in sorted(log.glob("*.json"))[:-1]:
            file.unlink()

    return damage


def _put_back(key: str) -> Damage:
    """Restore a backup of the first version and commit again, so that the number of commits is the same."""

    def damage(spark: SparkSession, case: Case) -> None:
        log = _table(case, key) / "_delta_log"
        for file in (*log.glob("0*[1-9].*"), *log.glob(".0*[1-9].*")):
            file.unlink()
        rows = spark.read.format("delta").load(str(_table(case, key))).limit(1)
        store(rows.coalesce(1), _table(case, key), mode="append")

    return damage


ANEW = r" \(run once with --set resolve.mode=full; the next incremental run continues from there\)"
FULL = r" \(DESCRIBE HISTORY shows the writer; run once with --set resolve.mode=full, which rewrites all outputs\)"
OTHER = r"is another table than the one that run 'second' recorded \(correct the location, or move this table away"
REFUSED: dict[str, tuple[Damage, str]] = {
    "somebody's rows in an output": (
        _sql("INSERT INTO TABLE_ITSELF SELECT * FROM TABLE_ITSELF LIMIT 1", "resolved_routes"),
        r"output.resolved_routes at .*: version 2 \(WRITE\) was not written by a run of this job" + FULL,
    ),
    "an output that is gone": (
        _removed("resolved_routes"),
        r"output.resolved_routes at .*: the rows of run 'second' no longer exist" + FULL,
    ),
    "a recreated output": (_recreated("resolved_routes"), f"output.resolved_routes: .* {OTHER}"),
    "a row of runs deleted": (
        _sql("DELETE FROM TABLE_ITSELF WHERE run_id = 'second'", "runs"),
        r"version 2 of .* was not written by a run \(DELETE\), .* \(RESTORE it to version 1, or run once",
    ),
    "the log of an output cleaned up": (
        _log_cleaned("pending_messages"),
        r"output.pending_messages at .*: the log of .* has been cleaned up: changes after version 1 are unknown"
        + FULL,
    ),
    "messages made anew": (
        _recreated("messages"),
        r"tables.messages: .* was recreated or restored since the last run" + ANEW,
    ),
    "the log of messages cleaned up": (
        _log_cleaned("messages"),
        r"tables.messages: version 1 of .* is not the one that the last run read: .* cleaned up" + ANEW,
    ),
    "messages put back": (
        _put_back("messages"),
        r"tables.messages: version 1 of .* is not the one that the last run read: the table was restored"
        ".*" + ANEW,
    ),
    "an UPDATE of messages": (
        _sql("UPDATE TABLE_ITSELF SET hops_remaining = 3", "messages"),
        r"tables.messages: version 3 of .* is neither an append nor a delete \(UPDATE\): .*" + ANEW,
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_incremental_run_refuses_a_changed_output(spark: SparkSession, case: Case, what: str) -> None:
    damage, sentence = REFUSED[what]
    damage(spark, case)
    with pytest.raises(ContractError, match=sentence) as caught:
        routing.run(spark, case.config(), now=NEXT)
    assert caught.value.exit_code == 2
    if _table(case, "runs").exists() and "runs" not in what:
        assert run_ids(case) == ["first", "second"]


def test_a_full_run_replaces_untrusted_rows(spark: SparkSession, case: Case) -> None:
    """An incremental run is refused. A full run says what it replaces, but refuses another table too."""
    _put_back("resolved_routes")(spark, case)
    _removed("rejected_messages")(spark, case)
    done = routing.run(spark, case.config("resolve.mode=full"), run_id="full")
    assert [note for note in done.notes if note.startswith("output.")] == [
        "output.rejected_messages: the rows of run 'second' no longer exist; this run replaces it",
        (
            "output.resolved_routes: version 1 is not the one that run 'second' wrote: the table was restored;"
            " this run replaces it"
        ),
    ]
    assert {row["run_id"] for row in state(case)["resolved_routes"]} == {"later"}
    _recreated("rejected_messages")(spark, case)
    for mode in ("full", "incremental"):
        with pytest.raises(ContractError, match=r"output.rejected_messages: .* is another table") as caught:
            routing.run(spark, case.config(f"resolve.mode={mode}"))
        assert caught.value.exit_code == 2
    assert run_ids(case) == ["first", "second", "full"]


def test_maintenance_changes_nothing(spark: SparkSession, case: Case) -> None:
    """Old rows stay deleted after a DELETE, and a moved folder has the same tables."""
    _sql("OPTIMIZE TABLE_ITSELF", "messages")(spark, case)
    _sql("OPTIMIZE TABLE_ITSELF", "runs")(spark, case)
    _sql("VACUUM TABLE_ITSELF", "pending_messages")(spark, case)
    _sql("ALTER TABLE TABLE_ITSELF SET TBLPROPERTIES ('note' = 'x')", "rejected_messages")(spark, case)
    _sql("ALTER TABLE TABLE_ITSELF ALTER COLUMN run_id COMMENT 'x'", "resolved_routes")(spark, case)
    _sql("DELETE FROM TABLE_ITSELF WHERE message_id = 'm2'", "resolved_routes")(spark, case)
    done = routing.run(spark, case.config(), run_id="third", now=NEXT)
    assert [note.partition(" have no ended_at")[0] for note in done.notes] == ["4 route requests on record"]
    # m8, m12 and m14 of the earlier runs, and the two new messages.
    assert done.row["rows_read"] == 5
    assert "m2" not in {row["message_id"] for row in state(case)["resolved_routes"]}


def test_a_failing_restore_gives_the_statement(spark: SparkSession, case: Case) -> None:
    """A vacuum removed the files that a killed run had replaced. The shown RESTORE works once they are back."""
    with hooked(once("before runs", kill)), pytest.raises(Killed):
        routing.run(spark, case.config("resolve.mode=full"))
    table = _table(case, "resolved_routes")
    file_names = {row[0].rpartition("/")[2] for row in _files(spark, table)}
    gone = {file: file.read_bytes() for file in table.glob("*.parquet") if file.name not in file_names}
    for file in gone:
        file.unlink()
    with pytest.raises(StorageError, match=r"resolved_routes .* version 1 cannot be restored: .*") as caught:
        routing.run(spark, case.config(), now=NEXT)
    assert "RESTORE it to version 1 once the cause is gone and run again, or run once with --set resolve" in str(
        caught.value
    )
    assert caught.value.exit_code == 3
    for file, content in gone.items():
        file.write_bytes(content)
    _sql("RESTORE TABLE TABLE_ITSELF TO VERSION AS OF 1", "resolved_routes")(spark, case)
    done = routing.run(spark, case.config(), run_id="third", now=NEXT)
    assert done.row["rows_read"] == 5
    assert run_ids(case) == ["first", "second", "third"]


def test_runs_and_an_output_are_restored(spark: SparkSession, case: Case) -> None:
    """The next run restores the other outputs, and reads the second run's messages again."""
    for key in ("runs", "resolved_routes"):
        _sql("RESTORE TABLE TABLE_ITSELF TO VERSION AS OF 0", key)(spark, case)
    done = routing.run(spark, case.config(), run_id="again", now=NEXT)
    assert run_ids(case) == ["first", "again"]
    assert sorted(note.split()[0] for note in done.notes if "was brought back to version" in note) == [
        "output.new_route_requests",
        "output.pending_messages",
        "output.rejected_messages",
    ]
    attempts = {(row["message_id"], row["attempt"]) for row in state(case)["resolved_routes"]}
    assert attempts >= {("m11", 1), ("m12", 1), ("m14", 1), ("m4", 2), ("m21", 1), ("m22", 1)}
    assert len(attempts) == len(state(case)["resolved_routes"])
    assert routing.run(spark, case.config(), run_id="idle", now=NEXT).notes == ()


def test_runs_continue_after_the_table_of_runs_was_emptied(spark: SparkSession, case: Case) -> None:
    """The transactions of the deleted runs stay in the table's log."""
    _sql("DELETE FROM TABLE_ITSELF", "runs")(spark, case)
    routing.run(spark, case.config("resolve.mode=full"), run_id="full")
    done = routing.run(spark, case.config(), run_id="next", now=NEXT)
    assert run_ids(case) == ["full", "next"]
    assert (done.row["rows_resolved"], done.row["rows_unchanged"]) == (1, 4)


@pytest.mark.parametrize("is_vacuumed", [False, True], ids=["deleted", "vacuumed"])
def test_old_rows_deleted_after_a_full_run(
    spark: SparkSession, one_run: Case, tmp_path: Path, is_vacuumed: bool
) -> None:
    """Deleted delayed messages are tried again. If they cannot be read, the run is refused."""
    case = copied(one_run, tmp_path / "case")
    routing.run(spark, case.config("resolve.mode=full"), run_id="full")
    table = _table(case, "resolved_routes")
    before = {row[0].rpartition("/")[2] for row in _files(spark, table)}
    _sql("DELETE FROM TABLE_ITSELF WHERE message_id IN ('m2', 'm4')", "resolved_routes")(spark, case)
    if is_vacuumed:
        for name in before - {row[0].rpartition("/")[2] for row in _files(spark, table)}:
            (table / name).unlink()
        with pytest.raises(ContractError, match=r"output.resolved_routes at .* have been vacuumed" + FULL):
            routing.run(spark, case.config(), now=NEXT)
        return
    routing.run(spark, case.config(), run_id="next", now=NEXT)
    found = {(row["message_id"], row["attempt"]) for row in state(case)["resolved_routes"]}
    assert ("m4", 2) in found
    assert not {("m2", 1), ("m4", 1)} & found


def _files(spark: SparkSession, table: Path) -> list[tuple[str]]:
    from pyspark.sql import functions as F

    rows = spark.read.format("delta").load(str(table)).select(F.col("_metadata.file_path")).distinct().collect()
    return [(str(row[0]),) for row in rows]


def test_a_concurrent_commit_fails_the_run(spark: SparkSession, case: Case) -> None:
    add = "INSERT INTO TABLE_ITSELF SELECT * FROM TABLE_ITSELF LIMIT 1"

    def meddle() -> None:
        _sql(add, "resolved_routes")(spark, case)

    with (
        hooked(once("after resolved_routes", meddle)),
        pytest.raises(StorageError, match=r"another run wrote to output\.resolved_routes"),
    ):
        routing.run(spark, case.config(), now=NEXT)
    assert run_ids(case) == ["first", "second"]
    with pytest.raises(ContractError, match=r"resolved_routes at .*\(WRITE\) was not written by a run of"):
        routing.run(spark, case.config(), now=NEXT)


def test_files_that_were_vacuumed(spark: SparkSession, one_run: Case, tmp_path: Path) -> None:
    """The delayed messages of a full run are read at the version that this run read."""
    case = copied(one_run, tmp_path / "case")
    routing.run(spark, case.config("resolve.mode=full"), run_id="full")
    _sql("OPTIMIZE TABLE_ITSELF", "messages")(spark, case)
    file_names = {row[0].rpartition("/")[2] for row in _files(spark, _table(case, "messages"))}
    for file in _table(case, "messages").glob("*.parquet"):
        if file.name not in file_names:
            file.unlink()
    with pytest.raises(ContractError, match=r"tables.messages: .*have been vacuumed" + ANEW) as caught:
        routing.run(spark, case.config(), now=NEXT)
    assert caught.value.exit_code == 2
