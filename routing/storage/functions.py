"""SQL functions of a session: each is made under a name that nobody has, and replaces none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from routing.errors import condition
from routing.storage import statements


def ensure_hash_function(
    spark: SparkSession, name: str, answers: Mapping[str, int], make: Callable[[], object] | None = None
) -> bool:
    """Make the dialog-ID hash a function where none has its name; return False where another one has.

    Args:
        spark: the session.
        name: the function's name, in the session and in its current schema.
        answers: what the function returns for some texts: one that does so is the same, whoever made it.
        make: makes the function, if that is not to be one of SQL.

    Raises:
        PySparkException: the session makes no such function.
    """
    with suppress(_MissingFunction):
        return _gives(spark, name, answers)
    try:
        if make is None:
            statements.create_hash_function(spark, name)
        else:
            make()
    except PySparkException as error:
        try:
            # Another thread may have made it meanwhile.
            return _gives(spark, name, answers)
        except _MissingFunction:
            raise error from None
    return True


class _MissingFunction(Exception):
    """The session has no function of a name."""


def _gives(spark: SparkSession, name: str, answers: Mapping[str, int]) -> bool:
    """Return True if a function gives these answers. Raises _MissingFunction."""
    try:
        return statements.call_function(spark, name, list(answers)) == list(answers.values())
    except PySparkException as error:
        if condition(error) == "UNRESOLVED_ROUTINE":
            raise _MissingFunction from error
        # Another function may take no text, or fail for these.
        return False
