"""All four forms of the dialog-ID hash give the same results (rule book, section 6)."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from routing import register_dialog_hash
from routing.errors import EnvironmentFault
from routing.messages import dialog_hash
from routing.rules import hashing
from routing.tables import spark_forms, sql_statements
from tests.frames import frame_of, rows_of
from tests.plans import printed_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.core
ROWS = 20_000
ABC = 1423657621850124518


def _mixed_case_ids() -> list[str]:
    rng = random.Random(6)
    ids = (str(uuid.UUID(int=rng.getrandbits(128))) for _ in range(ROWS))
    return ["".join(rng.choice((c, c.upper())) for c in i) for i in ids]


def test_all_shapes_are_equal(spark: SparkSession) -> None:
    from pyspark.sql import functions as F
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    schema = StructType([StructField("id", StringType()), StructField("reference", LongType())])
    rows = [{"id": i, "reference": hashing.dialog_id_hash(i)} for i in _mixed_case_ids()]
    rows.append({"id": None, "reference": None})
    register_dialog_hash(spark)
    in_sql = F.expr(f"{dialog_hash.SQL_FUNCTION}(id)")
    hashed = frame_of(spark, rows, schema).select(
        "reference",
        spark_forms.hash_dialog_id(spark_forms.conversation_id(F.col("id"))).alias("builtin"),
        dialog_hash.udf(F.col("id")).alias("udf"),
        in_sql.alias("in_sql"),
        F.xxhash64(F.lit("abc")).alias("abc"),
    )
    differs = [~F.col("reference").eqNullSafe(F.col(name)) for name in ("builtin", "udf", "in_sql")]
    counts = hashed.where("reference IS NOT NULL").agg(
        F.count("reference").alias("rows"),
        F.countDistinct("reference").alias("distinct"),
        F.count_if(differs[0]).alias("builtin"),
        F.count_if(differs[1]).alias("udf"),
        F.count_if(differs[2]).alias("in_sql"),
        F.min("abc").alias("abc"),
    )
    assert counts.collect()[0].asDict() == {
        "rows": ROWS,
        "distinct": ROWS,
        "builtin": 0,
        "udf": 0,
        "in_sql": 0,
        "abc": ABC,
    }


def test_the_sql_function_is_inlined_on_spark_4(spark: SparkSession) -> None:
    if spark.version < "4":
        pytest.skip("a registered Arrow UDF on Spark 3.5")
    register_dialog_hash(spark)
    plan = printed_plan(spark.sql("SELECT dialog_id_hash(CONCAT('A', id)) FROM range(3)"))
    assert "xxhash64(lower(" in plan
    assert "Python" not in plan
    assert spark.sql("SELECT dialog_id_hash('aBC')").collect()[0][0] == ABC


@contextmanager
def _function_of_somebody_else(spark: SparkSession, name: str) -> Iterator[None]:
    """Create a function that returns 7 for every text, and drop it afterwards."""
    from pyspark.sql import functions as F

    spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")
    if spark.version < "4":
        spark.udf.register(name, F.udf(lambda text: 7, "bigint"))
    else:
        spark.sql(f"CREATE TEMPORARY FUNCTION {name}(text STRING) RETURNS BIGINT RETURN 7")
    try:
        yield
        assert spark.sql(f"SELECT {name}('abc')").collect()[0][0] == 7
    finally:
        spark.sql(f"DROP TEMPORARY FUNCTION {name}")


def test_to_register_twice_changes_nothing_and_replaces_no_other_function(spark: SparkSession) -> None:
    register_dialog_hash(spark)
    register_dialog_hash(spark)
    with (
        _function_of_somebody_else(spark, dialog_hash.SQL_FUNCTION),
        pytest.raises(EnvironmentFault, match="another function 'dialog_id_hash'"),
    ):
        register_dialog_hash(spark)
    register_dialog_hash(spark)
    assert spark.sql("SELECT dialog_id_hash('aBC')").collect()[0][0] == ABC


def test_a_foreign_function_with_the_same_name_is_not_used(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    texts = spark.range(1).select(F.lit("abc").alias("id"))

    def is_python(form: dialog_hash.DialogHash) -> bool:
        return "Python" in printed_plan(texts.select(form(F.col("id"))))

    own = dialog_hash.choose_implementation(spark, dialog_hash.FUNCTION)
    assert texts.select(own(F.col("id"))).collect()[0][0] == ABC
    assert is_python(own) == (spark.version < "4")
    with _function_of_somebody_else(spark, dialog_hash.OWN_SQL_FUNCTION):
        other = dialog_hash.choose_implementation(spark, dialog_hash.FUNCTION)
        assert texts.select(other(F.col("id"))).collect()[0][0] == ABC
        assert is_python(other)


def test_a_session_that_takes_no_function_gets_the_udf(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.errors import AnalysisException

    def refuse(*_: object) -> None:
        raise AnalysisException("[UNSUPPORTED_FEATURE] no functions here")

    spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {dialog_hash.OWN_SQL_FUNCTION}")
    monkeypatch.setattr(sql_statements, "create_hash_function", refuse)
    assert dialog_hash.choose_implementation(spark, dialog_hash.FUNCTION) is dialog_hash.udf


def test_the_reference_at_every_length(spark: SparkSession) -> None:
    """Texts of 0 to 100 characters have no stripe, one or several, and every length of the rest."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    rng = random.Random(100)
    alphabet = "abcxyz0189-{} é€𝄞"
    texts = ["".join(rng.choice(alphabet) for _ in range(length)) for length in range(101) for _ in range(3)]
    frame = frame_of(spark, [{"text": t} for t in texts], StructType([StructField("text", StringType())]))
    rows = rows_of(frame.select("text", F.xxhash64("text").alias("hash")))
    assert len(rows) == len(texts)
    assert {r["text"]: r["hash"] for r in rows} == {t: hashing.dialog_id_hash(t) for t in texts}
