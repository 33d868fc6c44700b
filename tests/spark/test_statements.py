"""SQL statements have the right effects with names and texts that try to break out of quotes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow
import pytest
from deltalake import write_deltalake

from routing.config import TableLocation
from routing.schemas import ArrayOf, ColumnKind, Field, MapOf, Schema
from routing.tables import sql_statements
from tests.frames import frame_of
from tests.hostile import CONTROL, NAMES, QUOTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.core, pytest.mark.matrix]


def test_a_table_has_the_columns_of_its_schema_with_any_names(spark: SparkSession, tmp_path: Path) -> None:
    from routing.tables.frames import spark_schema

    nested = Schema((Field("x`:int>", ColumnKind.STRING), Field("a.b", ColumnKind.BIGINT)))
    schema = Schema(
        (
            Field("a`b", ColumnKind.INT, nullable=False),
            Field("x.y", ArrayOf(nested)),
            Field("--'\"", MapOf(ColumnKind.STRING, ColumnKind.BIGINT)),
        )
    )
    later, number = Field("`", nested), Field("n", ColumnKind.BIGINT)
    location = TableLocation(str(tmp_path / "it's `quoted`"))
    sql_statements.create_table(spark, location, schema)
    sql_statements.create_table(spark, location, Schema((later,)))
    assert spark.read.format("delta").load(location.text).schema == spark_schema(schema)
    sql_statements.add_columns(spark, location, [later, number])
    found = spark.read.format("delta").load(location.text).schema
    assert found == spark_schema(Schema((*schema, later, number)))


def test_properties_hold_any_text(spark: SparkSession, tmp_path: Path) -> None:
    location = TableLocation(str(tmp_path))
    spark.range(1).write.format("delta").save(location.text)
    properties = {f"k{n}": text for n, text in enumerate(NAMES)} | {QUOTES: "1", CONTROL: "2"}
    properties["setting"] = "${spark.app.name} $spark \\u0024 \\"
    sql_statements.set_properties(spark, location, properties)
    (row,) = sql_statements.describe_detail(spark, location).collect()
    assert row["properties"].items() >= properties.items()


def test_history_lists_a_restore_and_all_earlier_commits(spark: SparkSession, tmp_path: Path) -> None:
    location = TableLocation(str(tmp_path))
    for _ in range(3):
        write_deltalake(location.text, pyarrow.table({"id": [0, 1]}), mode="append")
    sql_statements.restore(spark, location, 1)
    history = sql_statements.describe_history(spark, location, 9)
    operations = [(row["version"], row["operation"]) for row in history]
    assert operations == [(3, "RESTORE"), (2, "WRITE"), (1, "WRITE"), (0, "WRITE")]
    newest = sql_statements.describe_history(spark, location, 2)
    assert [row["version"] for row in newest] == [3, 2]
    table = spark.sql(f"DESCRIBE HISTORY delta.`{location.text}` LIMIT 2")
    micros = [row[0] for row in table.selectExpr("unix_micros(timestamp)").collect()]
    assert [row["micros"] for row in newest] == micros
    assert spark.read.format("delta").load(location.text).count() == 4


def test_a_view_stays_at_its_version(spark: SparkSession) -> None:
    from pyspark.sql.types import IntegerType, StringType, StructField, StructType

    schema = StructType(
        [
            StructField("instance_name", StringType()),
            StructField("message_id", StringType()),
            StructField("attempt", IntegerType()),
        ]
    )
    view, table = (TableLocation(f"pinned.{name}", is_name=True) for name in ("current_routes", "resolved"))

    def write(*rows: tuple[str, str, int], mode: str = "append") -> None:
        named = [dict(zip(schema.names, row, strict=True)) for row in rows]
        writer = frame_of(spark, named, schema).coalesce(1).write.format("delta").mode(mode)
        sql_statements.save_named(writer, table)

    def shown() -> list[tuple[str, str, int]]:
        rows = spark.table("pinned.current_routes").collect()
        return sorted((row["instance_name"], row["message_id"], row["attempt"]) for row in rows)

    spark.sql("CREATE SCHEMA pinned")
    try:
        write(("hub", "m1", 1), ("hub", "m2", 1))
        write(("hub", "m1", 2), ("spoke", "m1", 1))
        sql_statements.show_version(spark, view, table, 1)
        write(("hub", "m3", 1), mode="overwrite")
        assert shown() == [("hub", "m1", 2), ("hub", "m2", 1), ("spoke", "m1", 1)]
        sql_statements.show_version(spark, view, table, 2)
        write(("hub", "m4", 1))
        assert shown() == [("hub", "m3", 1)]
        old = sql_statements.read_named(spark.read.format("delta").option("versionAsOf", 0), table)
        assert old.count() == 2
    finally:
        spark.sql("DROP SCHEMA pinned CASCADE")
