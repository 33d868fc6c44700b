"""Sessions that refuse settings, as serverless compute does, with its errors."""

from __future__ import annotations

from typing import Any, cast

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession


def refused(condition: str, text: str, kind: type[PySparkException] = AnalysisException) -> PySparkException:
    """An error of a session, with its condition."""
    error: Any = kind(text)
    # Spark 3.5 takes a text or a condition, not both, and has a name of its own for the latter.
    error.getCondition = error.getErrorClass = lambda: condition
    refusal: PySparkException = error
    return refusal


def not_available(key: str) -> PySparkException:
    """Return the error of serverless compute for setting or reading a setting."""
    return refused("CONFIG_NOT_AVAILABLE", f"Configuration {key} is not available. SQLSTATE: 42K0I")


class Settings:
    """A session's settings. `set` and `get` raise the errors in ``refusing``."""

    def __init__(self, values: dict[str, str], refusing: dict[str, PySparkException] | None = None) -> None:
        self.values = values
        self.refusing = refusing or {}
        self.calls: list[tuple[str, ...]] = []

    def _refuse(self, key: str) -> None:
        if key in self.refusing:
            raise self.refusing[key]

    def get(self, key: str, default: str | None) -> str | None:
        self._refuse(key)
        return self.values.get(key, default)

    def set(self, key: str, value: str) -> None:
        self.calls.append(("set", key, value))
        self._refuse(key)
        self.values[key] = value

    def unset(self, key: str) -> None:
        self.calls.append(("unset", key))
        del self.values[key]


def session_of(settings: Settings, version: str = "4.1.4") -> SparkSession:
    """A session that has nothing but settings."""

    class Session:
        conf = settings

    Session.version = version  # type: ignore[attr-defined]
    session: Any = Session()
    return cast("SparkSession", session)
