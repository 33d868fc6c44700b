"""Error texts: one bounded sentence each, kept word by word in golden/errors.txt."""

from __future__ import annotations

import errno
import inspect
from collections.abc import Iterator

import pytest

from routing import errors
from routing.arguments import ArgumentFault
from routing.config import ConfigError
from routing.errors import RoutingError, StorageError
from routing.lint.custom_rules import RuleError
from routing.runs.run_work import InternalError
from routing.sessions.existing_session import condition
from tests.golden_texts import assert_golden

_FAULTS = ["column name is int, not string", "required column address is missing"]
# One call of every constructor, by name; a new one must be given its line here.
SAMPLES: dict[str, tuple[object, ...]] = {
    "ConfigError.too_late": ("s3a://bucket/job.yaml", ["spark.driver.memory", "spark.master"]),
    "ConfigError.unreadable": ("job.yaml", "No such file or directory"),
    "ConfigError.not_utf8": ("job.yaml", 3),
    "ConfigError.broken_yaml": ("job.yaml", 3, "expected <block end>"),
    "ConfigError.faults": ("job.yaml", ["tables.routes is missing", "unknown key 'resolv'"]),
    "ConfigError.secrets": ("job.yaml", ["'spark.spark.hadoop.fs.s3a.secret.key'", "'tables.routes'"]),
    "ConfigError.wrong_setting": ("spark.sql.shuffle.partitions", "The value 'abc' should be an 'int' value."),
    "ConfigError.only_spark_ranks": (),
    "ConfigError.only_with_spark": ("resolve.dialog_hash: udf", "or dialog_hash: builtin"),
    "ConfigError.local_in_session": (),
    "ConfigError.only_by_spark": ("tables.routes", "read", "its reader version is 3"),
    "ConfigError.half_a_window": (),
    "ConfigError.follow_in_full_mode": (),
    "ConfigError.not_with_follow": ("--run-id",),
    "ConfigError.wrong_pause": ("'soon' is not a duration such as 7 days or 12 hours",),
    "ConfigError.overlapping_jobs": (["'E*' of east.yaml and '*1' of west.yaml"],),
    "ConfigError.without_view": ("job.yaml",),
    "ConfigError.no_view_name": ("a/path",),
    "ConfigError.hanging_udf": ("4.2.0", "spark.sql.some.setting"),
    "ConfigError.now_without_retries": (),
    "ConfigError.erase_in_full_run": (),
    "ConfigError.no_observed": ("job.yaml",),
    "ConfigError.no_output": ("job.yaml", "message_paths", "trace --all"),
    "OutputError.out_is_taken": ("/data/routes", "is tables.routes of the configuration"),
    "InputError.missing_table": ("routes", "/data/routes"),
    "InputError.lost_table": ("dialogs", "/data/dialogs", "4c2f"),
    "InputError.missing_version": ("routes", "/data/routes", 9, 7),
    "InputError.unreadable_version": ("routes", 3, "files of it are gone"),
    "InputError.without_versions": ("main.broker.messages",),
    "InputError.without_value": ("observed_routing", "observed_at", 3),
    "InputError.wrong_columns": ("routes", _FAULTS),
    "InputError.faulty_rows": (["routes (hub, Sales, Far): address is missing"], 1),
    "InputError.not_append_only": ("/data/messages", 7, "UPDATE"),
    "InputError.nothing_recorded": ("/out/runs",),
    "InputError.full_run_needed": ("files that were appended to '/data/messages' have been vacuumed",),
    "InputError.new_rows_unknown": (
        *(
            "shop.messages",
            [
                "its change data feed is off",
                "it has column mapping, so its files cannot be read without the table",
            ],
        ),
        "ALTER TABLE `shop`.`messages` SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    ),
    "OutputError.other_schema": ("output.runs", "/out/runs", _FAULTS),
    "RuleError.unreadable": ("rules.py", "No such file or directory"),
    "RuleError.not_run": ("rules.py", 3, NameError("name 'rooting' is not defined")),
    "RuleError.no_rule": ("rules.py",),
    "RuleError.doubled": ("SHOP001", ("rules.py", 3), ("more.py", 9)),
    "RuleError.failed": ("SHOP001", "rules.py", 4, KeyError("port")),
    "RuleError.no_finding": ("SHOP001", "rules.py", 3, "text", "(subject, message)"),
    "ArgumentFault.of_kind": ("as_of", "2026-01-05", ["a datetime", "None"], None),
    "RunError.unknown": ("4c1", "/out/runs", ["4c2f", "4c3a"]),
    "RunError.ambiguous": ("4c", ["4c2f", "4c3a"], 2),
    "RunError.unfit_id": ("a\nb", 250),
    "RunError.of_other_settings": ("nightly-17", "/out/runs", "resolve.mode was 'full' and is 'incremental'"),
    "RecordedAlready.by_id": ("nightly-17", "/out/runs"),
    "OutputError.newer_release": ("/out/runs", "2.0.0", "0.3.0"),
    "OutputError.without_versions": ("main.broker.current_routes",),
    "OutputError.no_runs": ("/out/runs",),
    "OutputError.left_nothing": ("resolved_routes", "/out/resolved_routes", "4c1d0f6e"),
    "OutputError.not_a_table": ("output.runs", "/out/runs"),
    "OutputError.not_printable": ("No space left on device",),
    "OutputError.no_page": ("pages/today.html", "there is no such folder"),
    "OutputError.folder_not_writable": ("/data/demo", "Permission denied"),
    "OutputError.not_writable": ("output.runs", "/out/runs", "Read-only file system (/out)"),
    "OutputError.full_run_needed": (
        "resolved_routes",
        "/out/resolved_routes",
        "version 7 (RESTORE) was not written by a run of this job",
    ),
    "OutputError.other_table": ("runs", "/out/runs", "nightly-17"),
    "OutputError.other_job": ("runs", "/out/runs", "/other/runs"),
    "OutputError.runs_changed": ("/out/runs", 7, "DELETE", 6),
    "OutputError.runs_unknown": ("/out/runs", "nightly-17", 120),
    "OutputError.unknown_content": ("resolved_routes", "/out/resolved_routes", 120),
    "HistoryGap.cleaned": ("/out/resolved_routes", 4),
    "NoJavaFault.no_java": ("no Java was found",),
    "EnvironmentFault.no_package": ("pyspark", "local"),
    "EnvironmentFault.no_workers": ("Python is missing",),
    "EnvironmentFault.udf_lacks": ("pandas",),
    "EnvironmentFault.function_taken": ("dialog_id_hash",),
    "StorageError.failed": ("writing output.runs to /out/runs", "No space left on device"),
    "StorageError.locked": ("/out/runs.lock", "4711", "nightly-17"),
    "StorageError.locked_by_owner": (
        "/out/runs.lock.owner",
        "run 'nightly-17', process '4711' on host 'etl-2'",
        "2.5 hours",
        "rm /out/runs.lock.owner",
    ),
    "StorageError.no_lock_file": ("/out/runs.lock",),
    "StorageError.damaged_log": ("/out/runs", 7),
    "StorageError.imported_meanwhile": ("routes", "/data/routes"),
    "StorageError.overtaken": ("resolved_routes", "/out/resolved_routes"),
    "StorageError.not_restored": ("resolved_routes", "/out/resolved_routes", 4, "a file is missing"),
    "InternalError.counts": (10, 7, 1, 1),
    "InternalError.candidates": (30, 29),
    "InternalError.paths": (10, 8, 1),
    "InternalError.pending": (10, 8),
    "InternalError.delayed": (10, 8, 3),
}


def _kinds() -> list[type[RoutingError]]:
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, RoutingError)]
    return [
        *(kind for kind in kinds if kind.__module__ == errors.__name__),
        ConfigError,
        RuleError,
        ArgumentFault,
        InternalError,
    ]


def _constructors() -> Iterator[str]:
    for kind in _kinds():
        for name, member in vars(kind).items():
            if isinstance(member, classmethod):
                yield f"{kind.__name__}.{name}"


def _sample(name: str) -> RoutingError:
    kind, _, constructor = name.partition(".")
    kinds = {one.__name__: one for one in _kinds()}
    error = getattr(kinds[kind], constructor)(*SAMPLES[name])
    assert isinstance(error, RoutingError)
    return error


def test_every_text_equals_its_golden_file() -> None:
    assert sorted(_constructors()) == sorted(SAMPLES)
    lines = [f"{name} (exit code {_sample(name).exit_code})\n  {_sample(name)}" for name in SAMPLES]
    assert_golden("errors.txt", "\n".join(lines))
    assert not any("\n" in str(_sample(name)) for name in SAMPLES)


def test_exit_codes() -> None:
    codes = {kind.__name__: kind("text").exit_code for kind in _kinds()}
    assert codes == {
        "RoutingError": 3,
        "ContractError": 2,
        "ConfigError": 2,
        "ArgumentFault": 2,
        "InputError": 2,
        "RunError": 2,
        "RecordedAlready": 2,
        "RuleError": 2,
        "OutputError": 2,
        "HistoryGap": 3,
        "EnvironmentFault": 2,
        "NoJavaFault": 2,
        "StorageError": 3,
        "InternalError": 3,
    }


def test_lists_are_cut_and_values_shortened() -> None:
    text = errors.join_bounded([f"fault {n}" for n in range(25)], "fault")
    assert text.startswith("25 faults: fault 0; ")
    assert text.endswith("fault 19; and 5 more")
    assert errors.join_bounded(["a"], "fault") == "1 fault: a"
    assert errors.join_bounded(["a"], "fault", 9) == "9 faults: a; and 8 more"
    assert len(errors.quote("x" * 10_000)) < 250
    assert errors.quote("a\nb") == r"'a\nb'"


def test_the_nearest_known_key() -> None:
    keys = ["tables.routes", "tables.messages"]
    assert errors.unknown_key("tables.mesage", keys) == (
        "unknown key 'tables.mesage', did you mean 'tables.messages'?"
    )
    assert errors.unknown_key("zzz", keys) == "unknown key 'zzz', known are tables.messages, tables.routes"


def test_the_first_sentence_of_an_error_of_java() -> None:
    assert errors.first_sentence(ValueError("\n  first \nat org.apache")) == "first"
    assert errors.first_sentence(ValueError()) == "ValueError"
    assert len(errors.first_sentence(ValueError("x" * 10_000))) < 500
    error_text = (
        "An error occurred while calling o1.save.\n: org.apache.spark.SparkException: Job aborted\n\tat a.b"
    )
    assert errors.first_sentence(ValueError(error_text)) == "org.apache.spark.SparkException: Job aborted"
    error_text += "\nCaused by: java.io.IOException: No space left on device\n\tat c.d\n\t... 3 more"
    assert errors.first_sentence(ValueError(error_text)) == "No space left on device (java.io.IOException)"
    assert errors.first_sentence(ValueError("An error occurred while calling o1.x")).endswith("calling o1.x")


class _OfJava:
    """An error as py4j hands it on: Spark's have a condition, others no such method."""

    def __init__(self, condition: str | None, cause: _OfJava | None = None) -> None:
        self.told, self.cause = condition, cause

    def getErrorClass(self) -> str | None:  # noqa: N802
        from py4j.protocol import Py4JError

        if self.told is None:
            raise Py4JError("Method getErrorClass([]) does not exist")
        return self.told or None

    def getCause(self) -> _OfJava | None:  # noqa: N802
        return self.cause


def test_the_condition_of_an_error_of_java() -> None:
    gone = _OfJava("FAILED_READ_FILE.FILE_NOT_EXIST", _OfJava(None))
    for java, error_text in (
        (gone, "FAILED_READ_FILE.FILE_NOT_EXIST"),
        (_OfJava("", gone), "FAILED_READ_FILE.FILE_NOT_EXIST"),
        (_OfJava(None, gone), "FAILED_READ_FILE.FILE_NOT_EXIST"),
        (_OfJava(None, _OfJava("")), ""),
        (None, ""),
    ):
        error = ValueError()
        error.java_exception = java  # type: ignore[attr-defined]
        assert condition(error) == error_text
    assert condition(ValueError()) == ""


LASTING = [
    OSError(errno.EROFS, "Read-only file system"),
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EACCES, "Permission denied"),
    OSError(errno.EOPNOTSUPP, "Operation not supported"),
    Exception("Generic LocalFileSystem error: Unable to copy data to file: No space left on device (os error 28)"),
    Exception("Generic LocalFileSystem error: Unable to open file: (os error 30)"),
    Exception("An error occurred while calling o1.save.\n: java.io.IOException: No space left on device"),
    Exception("org.apache.hadoop.security.AccessControlException: Permission denied: user=x"),
    OSError("Error writing bytes to file. Detail: [errno 28] No space left on device"),
]
PASSING = [
    OSError(errno.ETIMEDOUT, "Connection timed out"),
    OSError(errno.EIO, "Input/output error"),
    OSError(errno.EAGAIN, "Permission denied"),
    TimeoutError("timed out"),
    Exception("Failed to commit transaction: 3 (os error 110)"),
    Exception("os error 28"),
]


def _led_to(cause: BaseException, links: int) -> RoutingError:
    """The error that a command ends with, some errors after its cause."""
    for _ in range(links):
        try:
            raise RuntimeError("a step failed") from cause
        except RuntimeError as error:
            cause = error
    try:
        raise StorageError.failed("writing output.runs to /out/runs", "a step failed") from cause
    except StorageError as error:
        return error


@pytest.mark.parametrize("links", [0, 2])
def test_lasting_and_passing_faults_have_different_exit_codes(links: int) -> None:
    for causes, code in ((LASTING, 2), (PASSING, 3)):
        assert [_led_to(cause, links).exit_code for cause in causes] == [code] * len(causes)


def test_the_text_of_an_error_of_this_package_decides_nothing() -> None:
    """The text may quote a user's text, such as the name of a folder."""
    assert StorageError.failed("writing to /out/No space left on device", "it timed out").exit_code == 3
    first = StorageError("a", None)
    first.__cause__ = first
    assert first.exit_code == 3
