"""Settings of a session that was given, read and set one by one: a platform may refuse any of them.

Serverless compute refuses most: to set them, and to tell what they are, even with a default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from routing.errors import ConfigError, first_sentence, is_refusal, join_bounded, quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def find_setting(spark: SparkSession, key: str) -> str | None:
    """Return a setting as the session has it; None where nobody has set it, or the session does not tell."""
    from pyspark.errors import PySparkException

    try:
        return spark.conf.get(key, None)
    except PySparkException as error:
        if not is_refusal(error):
            raise
        return None


def apply_settings(spark: SparkSession, settings: Mapping[str, str], tell: Callable[[str], None]) -> None:
    """Set the settings that the session takes, and note in one sentence the others, with reasons.

    No decision depends on a setting; what a run cannot do without is refused where it is used
    (`session.check_udf`), or fails there. Raises ConfigError for a value that no session takes.
    """
    reasons = {key: _refused(spark, key, value) for key, value in settings.items()}
    refused = [f"{quote(key)} ({why})" for key, why in reasons.items() if why is not None]
    if refused:
        tell(f"the Spark session has refused {join_bounded(refused, 'setting')}; the command goes on without")


def _refused(spark: SparkSession, key: str, value: str) -> str | None:
    """Return the reason why the session refuses a setting; None where it has it."""
    from pyspark.errors import IllegalArgumentException, PySparkException

    if find_setting(spark, key) == value:
        # What a session has begun with it may not take again.
        return None
    try:
        spark.conf.set(key, value)
    except PySparkException as error:
        if is_refusal(error):
            return first_sentence(error)
        if isinstance(error, IllegalArgumentException):
            raise ConfigError.wrong_setting(key, first_sentence(error)) from error
        raise
    return None


# Who has a Spark session, or may have one started.


class HasSession(Protocol):
    """Whatever has a session; where none is there yet it is started when it is first asked for."""

    @property
    def spark(self) -> SparkSession:
        """The session. Raises EnvironmentFault where none can be started."""


@dataclass(frozen=True)
class ExistingSession:
    """A session that is there."""

    spark: SparkSession
