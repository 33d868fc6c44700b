"""SQL functions of a session: each is made under a name that nobody has, and replaces none."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from routing.tables import sql_statements


def ensure_hash_function(
    spark: SparkSession, name: str, answers: Mapping[str, int], make: Callable[[], object] | None = None
) -> bool:
    """Create the dialog-ID hash as a function; return False where another function has its name.

    Args:
        spark: the session.
        name: the function's name, in the session and in its current schema.
        answers: what the function returns for some texts: a function that does so is taken for the same.
        make: makes the function, if that is not to be one of SQL.

    Raises:
        PySparkException: the session makes no such function.
    """
    if sql_statements.has_function(spark, name):
        return _gives(spark, name, answers)
    try:
        if make is None:
            sql_statements.create_hash_function(spark, name)
        else:
            make()
    except PySparkException:
        # Another thread may have made it meanwhile.
        if not sql_statements.has_function(spark, name):
            raise
        return _gives(spark, name, answers)
    return True


def _gives(spark: SparkSession, name: str, answers: Mapping[str, int]) -> bool:
    """Return True if a function gives these answers; one that takes no text, or fails for these, does not."""
    try:
        return sql_statements.call_function(spark, name, list(answers)) == list(answers.values())
    except PySparkException:
        return False
