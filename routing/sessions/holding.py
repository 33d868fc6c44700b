"""Who has a Spark session, or may have one started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class HasSession(Protocol):
    """Whatever has a session; where none is there yet it is started when it is first asked for."""

    @property
    def spark(self) -> SparkSession:
        """The session. Raises EnvironmentFault where none can be started."""


@dataclass(frozen=True)
class ExistingSession:
    """A session that is there."""

    spark: SparkSession
