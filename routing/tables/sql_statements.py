"""Run SQL statements. No other module builds SQL text or names tables in it.

The functions take locations, numbers, schemas and names of columns, and quote all names. Callers never pass SQL.
The type `SqlText` marks SQL text inside this module.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from routing.config import TableLocation
from routing.rules.timeline import TimeRange, micros_of
from routing.schemas import AnyKind, ArrayOf, Field, MapOf, Schema
from routing.sessions.existing_session import is_connect
from routing.terms import TableRow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, Row, SparkSession
    from pyspark.sql.streaming import DataStreamReader


class SqlText(str):
    """A piece of SQL made of constants, numbers and quoted names only."""

    __slots__ = ()


_COMMA, _DOT, _AND, _BLANK = SqlText(", "), SqlText("."), SqlText(" AND "), SqlText(" ")
_UNION = SqlText(" UNION ALL ")


def _sql(template: str, /, **parts: SqlText | int) -> SqlText:
    """Fill the ``{parts}`` of a constant text. Braces inside a part have no meaning."""
    for name, part in parts.items():
        if not isinstance(part, SqlText | int):
            raise TypeError(f"{name} is put into SQL without being quoted: {part!r}")
    return SqlText(template.format(**parts))


def _join(parts: Iterable[SqlText], by: SqlText = _COMMA) -> SqlText:
    return SqlText(by.join(parts))


def quote(name: str) -> SqlText:
    """Quote the name of a column, or one part of a table's name."""
    return SqlText("`" + name.replace("`", "``") + "`")


def sql_name(location: TableLocation) -> SqlText:
    """Return the name of a table in SQL, with every part quoted."""
    parts = location.text.split(".") if location.is_name else ["delta", location.text]
    return _join((quote(part) for part in parts), by=_DOT)


def _literal(text: str) -> SqlText:
    r"""Quote a text with apostrophes, with dollar signs as ``\u0024`` because Spark would replace ``${…}``."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return SqlText("'" + escaped + "'")


def _kind(kind: AnyKind) -> SqlText:
    """Return a type in SQL, with the names of nested fields quoted."""
    if isinstance(kind, ArrayOf):
        return _sql("array<{element}>", element=_kind(kind.element))
    if isinstance(kind, MapOf):
        return _sql("map<{key}, {value}>", key=_kind(kind.key), value=_kind(kind.value))
    if isinstance(kind, Schema):
        fields = (_sql("{name}: {kind}", name=quote(f.name), kind=_kind(f.kind)) for f in kind)
        return _sql("struct<{fields}>", fields=_join(fields))
    return SqlText(str(kind))


def _column(field: Field, comments: Mapping[str, str] | None, *, is_needed: bool = False) -> SqlText:
    column = _sql("{name} {kind}", name=quote(field.name), kind=_kind(field.kind))
    if is_needed:
        column = _sql("{column} NOT NULL", column=column)
    if comments:
        column = _sql("{column} COMMENT {text}", column=column, text=_literal(comments[field.name]))
    return column


def read_named(reader: DataFrameReader | DataStreamReader, location: TableLocation) -> DataFrame:
    """Read a table of the catalog with the reader's options."""
    return reader.table(sql_name(location))


def save_named(writer: DataFrameWriter, location: TableLocation) -> None:
    """Write rows to a table of the catalog with the writer's options."""
    writer.saveAsTable(sql_name(location))


def replacing(writer: DataFrameWriter, within: TimeRange | None) -> DataFrameWriter:
    """Make an overwrite replace the rows in a range, or all rows, and keep the table's clustering."""
    if within is None:
        return writer.option("replaceWhere", _sql("true"))
    condition = _sql(
        "{column} >= timestamp_micros({first}) AND {column} < timestamp_micros({end})",
        column=quote(within.column),
        first=micros_of(within.first),
        end=micros_of(within.end),
    )
    return writer.option("replaceWhere", condition)


def describe_history(spark: SparkSession, location: TableLocation, limit: int) -> list[TableRow]:
    """Return the newest commits of a table, newest first. ``micros`` is the time in microseconds since 1970."""
    rows = spark.sql(_sql("DESCRIBE HISTORY {table} LIMIT {limit}", table=sql_name(location), limit=limit))
    if is_connect(spark):
        # A client cannot distinguish the two hours that a clock shows twice. A classic session can, without a job.
        rows = rows.selectExpr(_sql("*"), _sql("unix_micros(timestamp) AS micros"))
    commits = (row.asDict(recursive=True) for row in rows.collect())
    return [{"micros": _micros_of_local(commit["timestamp"]), **commit} for commit in commits]


def _micros_of_local(moment: datetime) -> int:
    """Return a time in this machine's zone as microseconds since 1970."""
    return int(moment.replace(microsecond=0).timestamp()) * 1_000_000 + moment.microsecond


def describe_detail(spark: SparkSession, location: TableLocation) -> DataFrame:
    """Return one row with a table's location, id and properties."""
    return spark.sql(_sql("DESCRIBE DETAIL {table}", table=sql_name(location)))


def describe_table(spark: SparkSession, location: TableLocation) -> DataFrame:
    """Return a row (col_name, data_type, comment) for each column and detail of a table or view."""
    return spark.sql(_sql("DESCRIBE TABLE EXTENDED {table}", table=sql_name(location)))


def read_current_catalog(spark: SparkSession) -> str:
    """Return the session's catalog for names of two parts."""
    return str(spark.catalog.currentCatalog())


def restore(spark: SparkSession, location: TableLocation, version: int) -> None:
    """Restore a table to a version, in one commit."""
    text = _sql("RESTORE TABLE {table} TO VERSION AS OF {version}", table=sql_name(location), version=version)
    spark.sql(text).collect()


def create_table(
    spark: SparkSession,
    location: TableLocation,
    schema: Schema,
    properties: Mapping[str, str] | None = None,
    cluster_by: Sequence[str] = (),
    comments: Mapping[str, str] | None = None,
) -> None:
    """Create an empty Delta table unless it exists.

    ``cluster_by`` has its clustering columns, and ``comments`` has the comments on columns by name.
    """
    columns = _join(_column(field, comments, is_needed=not field.nullable) for field in schema)
    clauses = [_sql("CLUSTER BY ({names})", names=_names(cluster_by))] if cluster_by else []
    if properties:
        clauses.append(_sql("TBLPROPERTIES ({pairs})", pairs=_pairs(properties)))
    text = _sql(
        "CREATE TABLE IF NOT EXISTS {table} ({columns}) USING DELTA", table=sql_name(location), columns=columns
    )
    spark.sql(_sql("{parts}", parts=_join((text, *clauses), by=_BLANK)))


def add_columns(
    spark: SparkSession,
    location: TableLocation,
    fields: Iterable[Field],
    comments: Mapping[str, str] | None = None,
) -> None:
    """Add nullable columns to a table, with comments by name."""
    columns = _join(_column(field, comments) for field in fields)
    spark.sql(_sql("ALTER TABLE {table} ADD COLUMNS ({columns})", table=sql_name(location), columns=columns))


def set_properties(spark: SparkSession, location: TableLocation, properties: Mapping[str, str]) -> None:
    """Set properties of a table, in one commit."""
    pairs = _pairs(properties)
    spark.sql(_sql("ALTER TABLE {table} SET TBLPROPERTIES ({pairs})", table=sql_name(location), pairs=pairs))


def cluster_by(spark: SparkSession, location: TableLocation, names: Sequence[str]) -> None:
    """Set the columns by which a table is clustered, in one commit."""
    spark.sql(_sql("ALTER TABLE {table} CLUSTER BY ({names})", table=sql_name(location), names=_names(names)))


def _names(names: Iterable[str]) -> SqlText:
    return _join(quote(name) for name in names)


def _pairs(properties: Mapping[str, str]) -> SqlText:
    return _join(
        _sql("{key} = {value}", key=_literal(key), value=_literal(value)) for key, value in properties.items()
    )


def merge(
    rows: DataFrame,
    location: TableLocation,
    on: Sequence[str],
    *,
    removed_by: str,
    folded: Collection[str] = (),
    insert_only: bool = False,
) -> None:
    """Merge rows into a table by their key columns. Those in ``folded`` are compared without case.

    A row is deleted if its column ``removed_by`` is true. With ``insert_only``, existing rows stay unchanged.
    """
    removed = quote(removed_by)
    names = [quote(name) for name in rows.columns if name != removed_by]
    clauses = []
    if not insert_only:
        put = _join(_sql("t.{name} = s.{name}", name=name) for name in names)
        clauses.append(_sql("WHEN MATCHED AND s.{removed} THEN DELETE", removed=removed))
        clauses.append(_sql("WHEN MATCHED THEN UPDATE SET {put}", put=put))
    clauses.append(
        _sql(
            "WHEN NOT MATCHED {kept}THEN INSERT ({names}) VALUES ({values})",
            kept=SqlText("") if insert_only else _sql("AND NOT s.{removed} ", removed=removed),
            names=_join(names),
            values=_join(_sql("s.{name}", name=name) for name in names),
        )
    )
    _merge(rows, location, on, folded, _join(clauses, by=_BLANK))


def delete_matching(rows: DataFrame, location: TableLocation, *, folded: Collection[str] = ()) -> int:
    """Delete the rows of a table that equal one of ``rows`` in all columns of these, and return their number.

    Null equals null. Columns in ``folded`` are compared without case. Without a match there is no commit.
    """
    merged = _merge(rows, location, rows.columns, folded, SqlText("WHEN MATCHED THEN DELETE"))
    return int(merged[0]["num_deleted_rows"])


def _merge(
    rows: DataFrame, location: TableLocation, on: Sequence[str], folded: Collection[str], clauses: SqlText
) -> list[Row]:
    # The name must be unique, because other imports and users may share the session.
    view = _sql("sbroute_merge_{number}", number=uuid.uuid4().int)
    text = _sql(
        "MERGE INTO {table} AS t USING {view} AS s ON {same} {clauses}",
        table=sql_name(location),
        view=quote(view),
        same=_join((_same(name, name in folded) for name in on), by=_AND),
        clauses=clauses,
    )
    try:
        rows.createOrReplaceTempView(view)
        return rows.sparkSession.sql(text).collect()
    finally:
        rows.sparkSession.catalog.dropTempView(view)


def _same(name: str, is_folded: bool) -> SqlText:
    if is_folded:
        return _sql("lower(t.{name}) <=> lower(s.{name})", name=quote(name))
    return _sql("t.{name} <=> s.{name}", name=quote(name))


def show_version(
    spark: SparkSession, view: TableLocation, resolved: TableLocation, version: int, replaces: bool = True
) -> None:
    """Create or replace a view of each message's last attempt in one version of ``resolved_routes``."""
    pinned = _sql("(SELECT * FROM {table} VERSION AS OF {version})", table=sql_name(resolved), version=version)
    create = SqlText("CREATE OR REPLACE VIEW") if replaces else SqlText("CREATE VIEW")
    text = _sql("{create} {view} AS {query}", create=create, view=sql_name(view), query=_last_rows(pinned))
    spark.sql(text)


def show_union(
    spark: SparkSession, view: TableLocation, selected: Sequence[TableLocation], columns: Sequence[str]
) -> None:
    """Create or replace a view of the rows of several views, in some columns."""
    names = _join(map(quote, columns))
    queries = [
        _sql("SELECT {names} FROM {table}", names=names, table=sql_name(selected_view))
        for selected_view in selected
    ]
    query = _join(queries, by=_UNION)
    spark.sql(_sql("CREATE OR REPLACE VIEW {view} AS {query}", view=sql_name(view), query=query))


def _last_rows(routes: SqlText) -> SqlText:
    """Return a query for the row of each message's last attempt."""
    return _sql(
        "SELECT r.* FROM {routes} AS r LEFT JOIN (SELECT instance_name,"
        " message_id, max(attempt) AS last_attempt FROM {routes} WHERE attempt > 1"
        " GROUP BY instance_name, message_id) AS l"
        " ON r.instance_name = l.instance_name AND r.message_id = l.message_id"
        " WHERE r.attempt = coalesce(l.last_attempt, r.attempt)",
        routes=routes,
    )


def has_function(spark: SparkSession, name: str) -> bool:
    """Return whether the session or its current schema has a function with this name."""
    return not spark.sql(_sql("SHOW USER FUNCTIONS LIKE {name}", name=_literal(name))).isEmpty()


def create_hash_function(spark: SparkSession, name: str) -> None:
    """Create the dialog-ID hash as an SQL function of the session. Raises PySparkException if it exists."""
    text = _sql(
        "CREATE TEMPORARY FUNCTION {name}(conversation_id STRING) RETURNS BIGINT"
        " RETURN xxhash64(lower(conversation_id))",
        name=quote(name),
    )
    spark.sql(text)


def call_function(spark: SparkSession, name: str, texts: Sequence[str]) -> list[Any]:
    """Call a function of one argument with each text, and return the results."""
    calls = _join(_sql("{name}({text})", name=quote(name), text=_literal(text)) for text in texts)
    return list(spark.sql(_sql("SELECT {calls}", calls=calls)).collect()[0])
