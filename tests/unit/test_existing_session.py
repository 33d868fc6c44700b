"""Settings that a given session refuses are named, and fatal only where a run needs them."""

from __future__ import annotations

import argparse
from typing import Any

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException

from routing.commands import command_context
from routing.config import ConfigError
from routing.delta import ledger
from routing.delta.job_outputs import RUN, CommitMark
from routing.sessions import session
from routing.sessions.existing_session import apply_settings, check_udf, find_setting, is_refusal
from routing.tables import sql_statements
from routing.tables.cached_frames import _partitions
from tests.refusing import Settings, not_available, refused, session_of
from tests.screens import Busy

ADAPTIVE, PARTS, MEMORY = "spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions", "spark.driver.memory"
STATIC = refused("CANNOT_MODIFY_CONFIG", f'Cannot modify the value of the Spark config: "{MEMORY}".')
COLUMNAR = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"


class Unsupported(PySparkException):
    """An error of another name, which the standard's SQLSTATE calls an unsupported feature."""

    def getSqlState(self) -> str:  # noqa: N802 - Spark's name.
        return "0A000"


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (not_available("spark.x"), True),
        (refused("CONFIG_NOT_AVAILABLE.SERVERLESS_DELTA_SCHEMA_AUTO_MERGE_ENABLED", "x"), True),
        (refused("NOT_SUPPORTED_WITH_SERVERLESS", "PERSIST TABLE is not supported"), True),
        (refused("CANNOT_MODIFY_STATIC_CONFIG", "x"), True),
        (refused("SOMETHING_ELSE", "x", Unsupported), True),
        (refused("CONFIG_NOT_AVAILABLE_NOW", "x"), False),
        (refused("TABLE_OR_VIEW_NOT_FOUND", "NOT_SUPPORTED_WITH_SERVERLESS"), False),
        (AnalysisException("[NOT_SUPPORTED_WITH_SERVERLESS] a text alone decides nothing"), False),
        (OSError("0A000"), False),
    ],
)
def test_a_refusal_is_recognized_by_its_condition(error: Exception, is_one: bool) -> None:
    assert is_refusal(error) is is_one


def test_refused_settings_are_named_once_and_others_are_set() -> None:
    settings = Settings({}, {ADAPTIVE: not_available(ADAPTIVE), MEMORY: STATIC})
    notes: list[str] = []
    apply_settings(session_of(settings), {ADAPTIVE: "false", PARTS: "8", MEMORY: "4g"}, notes.append)
    assert settings.values == {PARTS: "8"}
    (sentence,) = notes
    assert sentence == (
        "the Spark session has refused 2 settings:"
        " 'spark.sql.adaptive.enabled' ([CONFIG_NOT_AVAILABLE] Configuration spark.sql.adaptive.enabled is not"
        " available. SQLSTATE: 42K0I); 'spark.driver.memory' ([CANNOT_MODIFY_CONFIG] Cannot modify the value of"
        ' the Spark config: "spark.driver.memory".); the command continues without'
    )


def test_existing_settings_are_not_set_again() -> None:
    settings = Settings({PARTS: "8", "spark.sql.extensions": "x"})
    apply_settings(session_of(settings), {PARTS: "8", "spark.sql.extensions": "x"}, pytest.fail)
    assert settings.calls == []


def test_an_invalid_value_is_not_a_refusal() -> None:
    wrong = refused("INVALID_CONF_VALUE.TYPE_MISMATCH", "'abc' should be an 'int'", IllegalArgumentException)

    class Typed(Settings):
        def set(self, key: str, value: str) -> None:
            raise wrong

    with pytest.raises(ConfigError) as caught:
        apply_settings(session_of(Typed({})), {PARTS: "abc"}, pytest.fail)
    assert caught.value.exit_code == 2
    assert str(caught.value) == (
        "spark: 'spark.sql.shuffle.partitions' has an invalid value:"
        " [INVALID_CONF_VALUE.TYPE_MISMATCH] 'abc' should be an 'int' (correct it, or leave the setting out)"
    )


def test_other_errors_are_raised() -> None:
    lost = refused("INVALID_HANDLE.SESSION_CLOSED", "Session was closed.", PySparkException)
    refusing = session_of(Settings({}, {PARTS: lost}))
    with pytest.raises(PySparkException) as caught:
        apply_settings(refusing, {PARTS: "8"}, pytest.fail)
    assert caught.value is lost
    with pytest.raises(PySparkException):
        find_setting(refusing, PARTS)


class _Builder:
    """A stand-in for Spark's session builder."""

    def __init__(self, found: Any) -> None:
        self.found, self.options = found, {}  # type: tuple[Any, dict[str, str]]

    def config(self, key: str, value: str) -> _Builder:
        self.options[key] = value
        return self

    def getOrCreate(self) -> Any:  # noqa: N802 - Spark's name.
        return self.found


def _have(found: Any, active: Any, monkeypatch: pytest.MonkeyPatch) -> _Builder:
    made = _Builder(found)

    class Sessions:
        builder = made

        @staticmethod
        def getActiveSession() -> Any:  # noqa: N802 - Spark's name.
            return active

    monkeypatch.setattr("pyspark.sql.SparkSession", Sessions)
    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "client.4")
    return made


class _Notes(Busy):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, str]] = []

    def note(self, text: str, level: str = "info") -> None:
        self.told.append((text, level))


def test_every_command_notes_refused_settings_once(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = session_of(Settings({}, {ADAPTIVE: not_available(ADAPTIVE)}))
    _have(refusing, refusing, monkeypatch)
    console: Any = _Notes()
    settings: Any = argparse.Namespace(spark={ADAPTIVE: "false"})
    opener = command_context.opener(settings, argparse.Namespace(verbose=False), console)
    assert opener.spark is opener.spark is refusing
    why = "([CONFIG_NOT_AVAILABLE] Configuration spark.sql.adaptive.enabled is not available. SQLSTATE: 42K0I)"
    sentence = f"the Spark session has refused 1 setting: 'spark.sql.adaptive.enabled' {why}"
    assert console.told == [(f"note: {sentence}; the command continues without", "warning")]


def test_from_python_a_refused_setting_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = session_of(Settings({}, {ADAPTIVE: not_available(ADAPTIVE)}))
    _have(refusing, refusing, monkeypatch)
    with pytest.warns(UserWarning, match=r"has refused 1 setting: 'spark\.sql\.adaptive\.enabled'"):
        assert session.start({ADAPTIVE: "false"}) is refusing


def test_only_a_session_of_spark_submit_begins_with_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = session_of(Settings({MEMORY: "4g"}, {}))
    builder = _have(begun, None, monkeypatch)
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert session.start({MEMORY: "4g"}, on_note=pytest.fail) is begun
    assert builder.options == {MEMORY: "4g"}
    builder = _have(begun, None, monkeypatch)
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    session.start({MEMORY: "4g"}, on_note=pytest.fail)
    assert builder.options == {}


def test_a_udf_is_refused_where_the_session_does_not_say_that_it_is_safe() -> None:
    refusing = session_of(Settings({COLUMNAR: "false"}, {COLUMNAR: not_available(COLUMNAR)}), "4.2.0")
    with pytest.raises(ConfigError, match="udf would hang"):
        check_udf(refusing)
    check_udf(session_of(Settings({}, {COLUMNAR: not_available(COLUMNAR)}), "4.0.0"))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings({PARTS: "200"}), 200),
        (Settings({PARTS: "auto"}), 1),
        (Settings({PARTS: "0"}), 1),
        (Settings({}), 1),
        (Settings({}, {PARTS: not_available(PARTS)}), 1),
    ],
)
def test_the_number_of_shuffle_partitions_is_read(settings: Settings, expected: int) -> None:
    assert _partitions(session_of(settings)) == expected


METADATA = "spark.databricks.delta.commitInfo.userMetadata"
MARK = CommitMark(RUN, "r1", "/out/runs", None)


def _mark_commit(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], str | None]:
    """The properties that were set beside, and the setting within."""
    announced: list[Any] = []
    monkeypatch.setattr(sql_statements, "set_properties", lambda *arguments: announced.append(arguments[2]))
    where: Any = "/out/routes"
    with ledger._marking(session_of(settings), where, MARK):
        return announced, settings.values.get(METADATA)


@pytest.mark.parametrize("own", [{}, {METADATA: "the user's own"}])
def test_marking_a_commit_restores_the_session_settings(
    own: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(dict(own))
    assert _mark_commit(settings, monkeypatch) == ([], MARK.as_text())
    assert settings.values == own


def test_a_refused_commit_mark_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings({}, {METADATA: not_available(METADATA)})
    announced, within = _mark_commit(settings, monkeypatch)
    assert [list(properties.values()) for properties in announced] == [[MARK.as_text()]]
    assert within is None


def test_an_ended_session_raises_instead_of_announcing(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = refused("INVALID_HANDLE.SESSION_CLOSED", "Session was closed.", PySparkException)

    class Ending(Settings):
        def set(self, key: str, value: str) -> None:
            raise lost

    with pytest.raises(PySparkException, match="Session was closed"):
        _mark_commit(Ending({}), monkeypatch)
