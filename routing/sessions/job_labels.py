"""Label the Spark jobs of a run with its id and stage, as the Spark UI and its history show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from routing.sessions.existing_session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DESCRIPTION = "spark.job.description"


@contextmanager
def labelled_jobs(
    run_id: str, find_session: Callable[[], SparkSession | None]
) -> Iterator[Callable[[str | None], None]]:
    """Yield a function that labels this thread's next jobs with the run and a stage, or with the run only.

    The label is the job description, or a tag on Spark Connect. The function does nothing while ``find_session``
    returns None. Afterwards the session has its earlier description and tags again.
    """
    label: _Description | _Tag | None = None

    def show(stage: str | None) -> None:
        nonlocal label
        spark = find_session()
        if spark is None:
            return
        if label is None:
            label = _Tag(spark) if is_connect(spark) else _Description(spark)
        label.set(f"sbroute {run_id}" if stage is None else f"sbroute {run_id}: {stage}")

    try:
        yield show
    finally:
        if label is not None:
            label.restore()


class _Description:
    """The job description of a classic session."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._before = self._context.getLocalProperty(DESCRIPTION)

    def set(self, text: str) -> None:
        self._context.setLocalProperty(DESCRIPTION, text)

    def restore(self) -> None:
        from py4j.protocol import Py4JError

        # A stopped session has no Java context, and an ended Java process does not answer. Neither has more jobs.
        with suppress(Py4JError, OSError, AttributeError):
            # None removes the property.
            self._context.setLocalProperty(DESCRIPTION, self._before)  # type: ignore[arg-type]


class _Tag:
    """A tag of a Spark Connect session, added to the user's tags."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._added: str | None = None

    def set(self, text: str) -> None:
        self.restore()
        # Spark separates tags by commas.
        tag = text.replace(",", ";")
        if tag not in self._spark.getTags():
            self._spark.addTag(tag)
            self._added = tag

    def restore(self) -> None:
        added, self._added = self._added, None
        if added is not None and added in self._spark.getTags():
            self._spark.removeTag(added)
