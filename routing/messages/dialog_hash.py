"""The dialog-ID hash (rule book, section 6): xxhash64 of the lower-case conversation id, seed 42.

It is `rules.hashing` as a Column, as an SQL function and as an Arrow UDF. Users call the SQL function as
``dialog_id_hash``, and ranked candidates use another name. The UDF lets users replace the hash. Only this module
has a Python UDF.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from routing.arguments import checked
from routing.errors import EnvironmentFault
from routing.rules.hashing import dialog_id_hash
from routing.sessions.existing_session import check_udf
from routing.tables import sql_statements
from routing.tables.spark_forms import hash_dialog_id


def ensure_hash_function(spark: SparkSession, name: str, make: Callable[[], object] | None = None) -> bool:
    """Create the dialog-ID hash as a function. Return False if another function has its name.

    A function with the results of the hash for some texts counts as the same. ``make`` creates the function, by
    default as an SQL function. Raises PySparkException if the session cannot create it.
    """
    if sql_statements.has_function(spark, name):
        return _is_hash(spark, name)
    try:
        if make is None:
            sql_statements.create_hash_function(spark, name)
        else:
            make()
    except PySparkException:
        # Another thread may have created it since the check.
        if not sql_statements.has_function(spark, name):
            raise
        return _is_hash(spark, name)
    return True


def _is_hash(spark: SparkSession, name: str) -> bool:
    """Return whether a function gives the results of the hash, or False if it takes no text or fails."""
    try:
        return sql_statements.call_function(spark, name, list(_ANSWERS)) == list(_ANSWERS.values())
    except PySparkException:
        return False


DialogHash = Callable[[Column], Column]
SQL_FUNCTION = "dialog_id_hash"
OWN_SQL_FUNCTION = "sbroute_dialog_id_hash"
FUNCTION = "function"
"""The form of the hash that is a function of the session."""
# The results that distinguish the hash from other functions, including one that does not fold.
_ANSWERS = {text: dialog_id_hash(text) for text in ("abc", "ABC", "6F9619FF-8B86-D011-B42D-00C04FC964FF")}


def udf(conversation_id: Column) -> Column:
    """Return the hash as an Arrow UDF (bigint): one Python node in the plan."""
    hashed: Column = _arrow_udf()(conversation_id)
    return hashed


def check_packages() -> None:
    """Raise EnvironmentFault if a package that the UDF needs is missing. Only the UDF needs pandas."""
    for package in ("pandas", "pyarrow"):
        if find_spec(package) is None:
            raise EnvironmentFault.udf_lacks(package)


def _arrow_udf() -> Any:
    """Create the UDF. Raises EnvironmentFault."""
    check_packages()
    import pandas

    def hash_ids(ids):  # type: ignore[no-untyped-def]
        return pandas.Series([None if i is None else dialog_id_hash(i) for i in ids], dtype="Int64")

    # Spark needs types as hints, but postponed annotations are text.
    hash_ids.__annotations__ = {"ids": pandas.Series, "return": pandas.Series}
    return F.pandas_udf(hash_ids, "bigint")  # type: ignore[call-overload, unused-ignore]


def choose_implementation(spark: SparkSession, name: str) -> DialogHash:
    """Return the hash in one of its forms: ``builtin``, ``udf`` or `FUNCTION`.

    `FUNCTION` is an SQL function if the session has or can create it, else the UDF. Raises EnvironmentFault and
    ConfigError if the UDF cannot run.
    """
    if name == "builtin":
        return hash_dialog_id
    if name == FUNCTION and _has_own_function(spark):
        return lambda conversation_id: F.call_function(OWN_SQL_FUNCTION, conversation_id)
    check_packages()
    check_udf(spark)
    return udf


def _has_own_function(spark: SparkSession) -> bool:
    """Return whether the session has or accepts this package's function. Other functions are never replaced."""
    if not _inlines_functions(spark):
        return False
    try:
        return ensure_hash_function(spark, OWN_SQL_FUNCTION)
    except PySparkException:
        # A platform may refuse to create functions.
        return False


@checked
def register(spark: SparkSession) -> None:
    """Register ``dialog_id_hash(conversation_id)`` as an SQL function of a session (rule book, section 6).

    Args:
        spark: the session; Spark 4 gets a function in SQL, 3.5 an Arrow UDF.

    Raises:
        EnvironmentFault: the session has another function of this name, which is not replaced.

    Example:
        >>> routing.register_dialog_hash(spark)
        >>> spark.sql("SELECT dialog_id_hash('11111111-2222-3333-4444-555555555555') AS hash").first().hash
        -7134192457530542294
    """
    make = None if _inlines_functions(spark) else partial(spark.udf.register, SQL_FUNCTION, _arrow_udf())
    if not ensure_hash_function(spark, SQL_FUNCTION, make):
        raise EnvironmentFault.function_taken(SQL_FUNCTION)


def _inlines_functions(spark: SparkSession) -> bool:
    return int(spark.version.split(".")[0]) >= 4
