"""The dialog-ID hash (rule book, section 6): xxhash64 of the lower-case conversation id, seed 42.

The definition of `rules.hashing` as a Column, as the SQL function ``dialog_id_hash``, and as an Arrow UDF for
those who replace the hash by another. This is the only room with a Python UDF.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from routing.errors import EnvironmentFault

DialogHash = Callable[[Column], Column]
SQL_FUNCTION = "dialog_id_hash"


def builtin(conversation_id: Column) -> Column:
    """The hash as Spark's own expression (bigint), of an id as it is compared."""
    return F.xxhash64(conversation_id)


def udf(conversation_id: Column) -> Column:
    """The hash as an Arrow UDF (bigint): one Python node in the plan."""
    hashed: Column = _arrow_udf()(conversation_id)
    return hashed


def check_packages() -> None:
    """Raise EnvironmentFault where a package that the UDF is made with is missing: no other way needs pandas."""
    for package in ("pandas", "pyarrow"):
        if find_spec(package) is None:
            raise EnvironmentFault.udf_lacks(package)


def _arrow_udf() -> Any:
    """The UDF itself, made when it is asked for. Raises EnvironmentFault."""
    check_packages()
    import pandas

    from routing.rules.hashing import dialog_id_hash as reference

    def dialog_id_hash(ids):  # type: ignore[no-untyped-def]
        return pandas.Series([None if i is None else reference(i) for i in ids], dtype="Int64")

    # Spark reads the hints as types; those of this file are text, since its annotations are postponed.
    dialog_id_hash.__annotations__ = {"ids": pandas.Series, "return": pandas.Series}
    return F.pandas_udf(dialog_id_hash, "bigint")  # type: ignore[call-overload, unused-ignore]


IMPLEMENTATIONS: dict[str, DialogHash] = {"builtin": builtin, "udf": udf}


def register(spark: SparkSession) -> None:
    """Make ``dialog_id_hash(conversation_id)`` known to SQL in this session.

    On Spark 4 an SQL-defined function, which the optimizer inlines; on 3.5 a registered Arrow UDF.
    """
    if int(spark.version.split(".")[0]) >= 4:
        spark.sql(
            "CREATE OR REPLACE TEMPORARY FUNCTION dialog_id_hash(conversation_id STRING)"
            " RETURNS BIGINT RETURN xxhash64(lower(conversation_id))"
        )
        return
    spark.udf.register(SQL_FUNCTION, _arrow_udf())
