"""The meaning of Spark's refusals by error condition, and the reaction of a run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from routing.config import TableLocation
from routing.delta import ledger, spark_tables
from routing.errors import InputError, OutputError, StorageError
from routing.runs.run_tables import telling_what_may_change
from routing.runs.run_work import InternalError
from routing.sessions.existing_session import ExistingSession
from routing.tables import sql_statements

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

NAME, PATH = TableLocation("main.broker.routes", is_name=True), TableLocation("s3a://bucket/routes")
SPARK = ExistingSession(cast("SparkSession", None))
ABSENT, LOOSE, UNKNOWN = "absent", "as it is", "told"


class Refused(Exception):
    """A minimal Spark error."""

    def __init__(self, condition: str | None) -> None:
        super().__init__(f"[{condition}] Spark says so")
        self.condition = condition

    def getCondition(self) -> str | None:  # noqa: N802
        """As Spark 4 names it."""
        return self.condition


# What Spark 3.5.9 and 4.1.4 with their Delta say, and what Databricks documents: of a name, of a path.
CONDITIONS = [
    ("TABLE_OR_VIEW_NOT_FOUND", ABSENT, ABSENT),
    ("SCHEMA_NOT_FOUND", ABSENT, ABSENT),
    ("NO_SUCH_CATALOG_EXCEPTION", ABSENT, ABSENT),
    ("CATALOG_NOT_FOUND", ABSENT, ABSENT),
    ("REQUIRES_SINGLE_PART_NAMESPACE", ABSENT, ABSENT),
    ("PATH_NOT_FOUND", ABSENT, ABSENT),
    ("DELTA_TABLE_NOT_FOUND", ABSENT, ABSENT),
    ("DELTA_PATH_DOES_NOT_EXIST", ABSENT, ABSENT),
    # A folder of other files is no table; a name may be that of a table of another format.
    ("DELTA_TABLE_ONLY_OPERATION", LOOSE, ABSENT),
    ("DELTA_ONLY_OPERATION", LOOSE, ABSENT),
    ("DELTA_MISSING_DELTA_TABLE", LOOSE, ABSENT),
    ("EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", LOOSE, UNKNOWN),
    ("_LEGACY_ERROR_TEMP_1013", LOOSE, UNKNOWN),
    ("DELTA_CANNOT_DESCRIBE_VIEW_HISTORY", LOOSE, UNKNOWN),
    ("DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS", LOOSE, UNKNOWN),
    ("UNSUPPORTED_FEATURE.TIME_TRAVEL", LOOSE, UNKNOWN),
    ("FGAC_TIME_TRAVEL_NOT_SUPPORTED.PER_TABLE_RLS_CM", LOOSE, UNKNOWN),
    ("FGAC_TIME_TRAVEL_NOT_SUPPORTED", LOOSE, UNKNOWN),
    ("ROW_LEVEL_SECURITY_COLUMN_MASK_FEATURE_NOT_SUPPORTED.DESCRIBE_HISTORY", LOOSE, UNKNOWN),
    # Other features that are not supported, refused permissions, and what only begins like one of these.
    ("UNSUPPORTED_FEATURE.INSERT_PARTITION_SPEC_IF_NOT_EXISTS", UNKNOWN, UNKNOWN),
    ("UNSUPPORTED_FEATURE", UNKNOWN, UNKNOWN),
    ("INSUFFICIENT_PERMISSIONS", UNKNOWN, UNKNOWN),
    ("PATH_NOT_FOUND_AT_ALL", UNKNOWN, UNKNOWN),
    ("PARSE_SYNTAX_ERROR", UNKNOWN, UNKNOWN),
    ("", UNKNOWN, UNKNOWN),
    (None, UNKNOWN, UNKNOWN),
]


def _classify(condition: str | None, location: TableLocation) -> str:
    error = Refused(condition)
    absent, loose = spark_tables.is_absent(error, location), spark_tables.has_no_versions(error, location)
    assert not (absent and loose)
    return ABSENT if absent else LOOSE if loose else UNKNOWN


@pytest.mark.parametrize(("condition", "of_name", "of_path"), CONDITIONS)
def test_a_refusal_is_recognized_by_its_condition(condition: str | None, of_name: str, of_path: str) -> None:
    assert (_classify(condition, NAME), _classify(condition, PATH)) == (of_name, of_path)


def test_an_error_without_a_condition_is_not_a_refusal() -> None:
    assert not spark_tables.is_absent(ValueError("TABLE_OR_VIEW_NOT_FOUND"), NAME)
    assert not spark_tables.has_no_versions(ValueError("EXPECT_TABLE_NOT_VIEW"), NAME)


def _raising(condition: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise Refused(condition)

    return refuse


def _history(version: int) -> Any:
    return lambda *_, **__: [{"version": version}]


def _reading(monkeypatch: pytest.MonkeyPatch, history: Any, versioned: Any, plain: Any) -> None:
    """Set the answers of a catalog to its history, a read at a version, and a current read."""
    monkeypatch.setattr(sql_statements, "describe_history", history)
    monkeypatch.setattr(spark_tables.TableSnapshot, "read", versioned)
    monkeypatch.setattr(spark_tables.UnversionedTable, "read", plain)


def _fine(*_: Any) -> Any:
    return SimpleNamespace(schema=())


def test_missing_tables_and_views_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    _reading(monkeypatch, _history(7), _fine, _raising("never asked"))
    assert spark_tables.find(SPARK, NAME) == spark_tables.TableSnapshot(NAME, 7)
    assert spark_tables.current_version(SPARK, NAME) == 7
    _reading(monkeypatch, _raising("TABLE_OR_VIEW_NOT_FOUND"), _fine, _fine)
    assert spark_tables.find(SPARK, NAME) is None
    assert spark_tables.current_version(SPARK, NAME) is None
    with pytest.raises(InputError, match=r"tables\.routes: there is no Delta table at 'main\.broker\.routes'"):
        spark_tables.snapshots(SPARK, {"routes": NAME})
    _reading(monkeypatch, _raising("EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"), _raising("never asked"), _fine)
    assert spark_tables.snapshots(SPARK, {"routes": NAME}) == {"routes": spark_tables.UnversionedTable(NAME)}
    with pytest.raises(OutputError, match=r"'main\.broker\.routes' is a view or not a Delta table") as refused:
        spark_tables.current_version(SPARK, NAME)
    assert refused.value.exit_code == 2


def test_a_name_without_files_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unlike that of a table in another format."""
    _reading(monkeypatch, _raising("DELTA_TABLE_ONLY_OPERATION"), _fine, _raising("DELTA_TABLE_NOT_FOUND"))
    assert spark_tables.find(SPARK, NAME) is None
    assert spark_tables.current_version(SPARK, NAME) is None
    _reading(monkeypatch, _raising("DELTA_TABLE_ONLY_OPERATION"), _fine, _fine)
    assert spark_tables.find(SPARK, NAME) == spark_tables.UnversionedTable(NAME)


def test_a_row_filter_shows_only_in_the_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The history works, but a read at a version is refused."""
    _reading(monkeypatch, _history(7), _raising("FGAC_TIME_TRAVEL_NOT_SUPPORTED.PER_TABLE_RLS_CM"), _fine)
    assert spark_tables.find(SPARK, NAME) == spark_tables.UnversionedTable(NAME)


@pytest.mark.parametrize("location", [NAME, PATH])
def test_a_refused_permission_is_not_absence(monkeypatch: pytest.MonkeyPatch, location: TableLocation) -> None:
    _reading(monkeypatch, _raising("INSUFFICIENT_PERMISSIONS"), _fine, _fine)
    for look in (spark_tables.find, spark_tables.current_version):
        with pytest.raises(StorageError, match=rf"looking for a table at {location}: \[INSUFF") as caught:
            look(SPARK, location)
        assert caught.value.exit_code == 3


def test_unreadable_tables_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cases are a view on a missing table, and a read at a version refused for another reason."""
    _reading(monkeypatch, _raising("EXPECT_TABLE_NOT_VIEW"), _fine, _raising("TABLE_OR_VIEW_NOT_FOUND"))
    with pytest.raises(StorageError, match=r"reading main\.broker\.routes: \[TABLE_OR_VIEW_NOT_FOUND\]"):
        spark_tables.find(SPARK, NAME)
    _reading(monkeypatch, _history(7), _raising("INSUFFICIENT_PERMISSIONS"), _fine)
    with pytest.raises(StorageError, match=r"reading main\.broker\.routes: \[INSUFFICIENT_PERMISSIONS\]"):
        spark_tables.find(SPARK, NAME)


def test_messages_of_an_incremental_run_need_versions() -> None:
    assert ledger.check_versions(spark_tables.TableSnapshot(NAME, 3)) == spark_tables.TableSnapshot(NAME, 3)
    with pytest.raises(InputError, match=r"cannot be read at a version .*set resolve\.mode=full") as refused:
        ledger.check_versions(spark_tables.UnversionedTable(NAME))
    assert refused.value.exit_code == 2


def test_a_failure_lists_possible_changes() -> None:
    loose: dict[str, spark_tables.Input] = {
        "messages": spark_tables.UnversionedTable(NAME),
        "routes": spark_tables.UnversionedTable(NAME),
    }
    fixed: dict[str, spark_tables.Input] = {
        "messages": spark_tables.TableSnapshot(NAME, 3),
        "routes": spark_tables.UnversionedTable(NAME),
    }
    hint = "perhaps changed while the run was at work: tables.messages at 'main.broker.routes'; copy these"
    for failed in (InternalError.counts(7, 6, 0, 0), StorageError.failed("writing", "of a key")):
        with pytest.raises(type(failed)) as caught, telling_what_may_change(loose):
            raise failed
        assert failed.message in str(caught.value)
        assert hint in str(caught.value)
        with pytest.raises(type(failed)) as plain, telling_what_may_change(fixed):
            raise failed
        assert str(plain.value) == str(failed)
    with (
        pytest.raises(StorageError, match=r"reading tables\.messages: of Java") as wrapped,
        telling_what_may_change(loose),
    ):
        raise ValueError("of Java")
    assert hint in str(wrapped.value)
    with pytest.raises(ValueError, match="of Java"), telling_what_may_change(fixed):
        raise ValueError("of Java")
    faulty = InputError.faulty_rows(["a"], 1)
    with pytest.raises(InputError) as same, telling_what_may_change(loose):
        raise faulty
    assert same.value is faulty
