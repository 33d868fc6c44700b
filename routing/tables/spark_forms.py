"""Spark versions of the functions of `rules` on texts and messages, with equal results.

`tables.arrow_forms` has the same functions for Arrow. Names are compared exactly, so no function changes them.
Addresses and broker instances are compared folded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    NullType,
    StringType,
    TimestampNTZType,
)

from routing.rules.rejecting import DECODED, INT_RANGE, TEXTS
from routing.rules.text import ADDRESS_WITH_PORT
from routing.schemas import MESSAGES, TABLES, AnyKind, ArrayOf, ColumnKind, Schema
from routing.tables.table_columns import shape_of
from routing.terms import BLANKS, ZERO_GUID, Rejection

_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ADDRESS_IN_NAME = rf"\A({ADDRESS_WITH_PORT})(?:/|\z)"
# Java matches listed characters in two thirds of the time that it needs for ranges and counts.
_HEX = "[0123456789abcdefABCDEF]"
GUID = rf"\A{_HEX * 8}-{_HEX * 4}-{_HEX * 4}-{_HEX * 4}-{_HEX * 12}\z"
_GUID_LENGTH = 36
# The UTF-8 bytes of a character outside ASCII, or one byte. Each byte is a character of ISO 8859-1 here.
_NEXT = "[\u0080-\u00bf]"
_CHARACTER_OR_BYTE = (
    f"([\u00c2-\u00df]{_NEXT}|\u00e0[\u00a0-\u00bf]{_NEXT}|[\u00e1-\u00ec\u00ee\u00ef]{_NEXT}{_NEXT}"
    f"|\u00ed[\u0080-\u009f]{_NEXT}|\u00f0[\u0090-\u00bf]{_NEXT}{_NEXT}|[\u00f1-\u00f3]{_NEXT}{_NEXT}{_NEXT}"
    f"|\u00f4[\u0080-\u008f]{_NEXT}{_NEXT}|(?s:.))"
)
# ISO 8859-1 does not have this character.
_BETWEEN = "\uffff"
_MESSAGE = ["instance_name", "message_id"]


def empty_as_null(text: Column) -> Column:
    """Return null for empty text in an optional column (section 0)."""
    return F.when(text != "", text)


def fold(text: Column) -> Column:
    """Return the text with the letters A to Z in lower case and all other characters unchanged.

    Spark's ``lower`` is fast, but differs from Python's outside ASCII. Hashing ten million GUIDs took 1.1 s with
    ``lower``, 1.8 s with this function and 4.4 s with ``translate`` only.
    """
    is_ascii = F.octet_length(text) == F.length(text)
    return F.when(is_ascii, F.lower(text)).otherwise(fold_any(text))


def fold_any(text: Column) -> Column:
    """Fold a text with less generated code but more time, for rare texts."""
    return F.translate(text, _UPPER, _UPPER.lower())


def conversation_id(text: Column) -> Column:
    """Return a conversation id in the form that is compared, hashed and written."""
    return fold(text)


def is_guid(text: Column) -> Column:
    """Return whether a text is a GUID of 36 characters in any case, without braces."""
    return text.rlike(GUID)


def leading_address(service_name: Column) -> Column:
    """Return the address that a TRANSPORT route reads from a service name, or empty text (section 3).

    It has no blanks around it, so folding is enough to compare two. Returning null instead would search twice.
    """
    return F.regexp_extract(service_name, _ADDRESS_IN_NAME, 1)


def read_brokers(rows: DataFrame, **text_columns: str) -> DataFrame:
    """Add a column for each name, with the broker instance in a text column (`rules.text.broker_id`).

    It is folded, without blanks or braces, and null if the text is not a broker instance. The steps are separate
    selects. Spark would repeat their code some thirty times in one expression, too much for Java to compile.
    """
    # Spark generates half the code for a column that is never null.
    with_brokers = rows.withColumns({name: F.coalesce(text, F.lit("")) for name, text in text_columns.items()})
    for step in (_folded, _without_braces, _if_an_id):
        with_brokers = with_brokers.withColumns({name: step(F.col(name)) for name in text_columns})
    return with_brokers


def _folded(text: Column) -> Column:
    """Trim and fold a text, with a faster path for a text that looks like a bare GUID.

    Blanks sort before the digits, and braces after the letters.
    """
    is_ascii = (F.length(text) == _GUID_LENGTH) & (F.octet_length(text) == _GUID_LENGTH)
    is_bare = is_ascii & text.between("0", "z") & (text.substr(-1, 1) > " ")
    return F.when(is_bare, F.lower(text)).otherwise(fold_any(F.btrim(text, F.lit(BLANKS))))


def _without_braces(text: Column) -> Column:
    inner = F.btrim(text.substr(F.lit(2), F.length(text) - 2), F.lit(BLANKS))
    return F.when(text.startswith("{") & text.endswith("}"), inner).otherwise(text)


def _if_an_id(text: Column) -> Column:
    return F.when((text != "") & (text != ZERO_GUID), text)


def is_utf8(text: Column) -> Column:
    """Return whether the bytes of a text are UTF-8. Spark accepts any bytes."""
    if hasattr(F, "is_valid_utf8"):
        return F.is_valid_utf8(text)
    # Before Spark 4.0: encoding a text with Java replaces its invalid bytes.
    return F.encode(text, "UTF-8") == text.cast("binary")


def readable(text: Column) -> Column:
    r"""Return a text with each undecodable byte written as ``\xNN``, as by `rules.text.decode_utf8`."""
    # ISO 8859-1 has a character for each byte, so Java's regular expressions can match bytes.
    bytes_of = F.decode(text.cast("binary"), "ISO-8859-1")
    parts = F.split(F.regexp_replace(bytes_of, _CHARACTER_OR_BYTE, f"$1{_BETWEEN}"), _BETWEEN)
    escaped = F.transform(parts, _escape_lone_byte)
    joined = F.encode(F.array_join(escaped, ""), "ISO-8859-1").cast("string")
    return F.when(is_utf8(text), text).otherwise(joined)


def _escape_lone_byte(part: Column) -> Column:
    r"""Return the bytes of a valid character unchanged, and a single byte outside ASCII as ``\xNN``."""
    is_lone = (F.length(part) == 1) & (part >= "\u0080")
    return F.when(is_lone, F.concat(F.lit("\\x"), F.lower(F.hex(F.encode(part, "ISO-8859-1"))))).otherwise(part)


def hash_dialog_id(conversation_id: Column) -> Column:
    """Return the dialog-ID hash (section 6) of a folded conversation id, as a bigint."""
    return F.xxhash64(conversation_id)


def is_int(number: Column) -> Column:
    """Return whether an integer fits 32 bits."""
    return number.between(*INT_RANGE)


def is_missing(name: str, kind: object) -> Column:
    """Return whether a required value is null, or empty text."""
    value = F.col(name)
    return value.isNull() | (value == "") if kind == ColumnKind.STRING else value.isNull()


def is_well_formed() -> Column:
    """Return whether a message is valid apart from its instance and database. Null means false."""
    texts = (F.col("message_id") != "") & (F.col("to_service_name") != "")
    values = F.col("is_initiator").isNotNull() & F.col("enqueue_time").isNotNull()
    hops = F.col("hops_remaining").isNull() | is_int(F.col("hops_remaining"))
    # One check of the joined texts needs less code. The blanks between texts cannot complete a character.
    utf8 = is_utf8(F.concat_ws(" ", *DECODED))
    return texts & values & hops & utf8 & is_guid(F.col("conversation_id"))


def is_in(instances: Collection[str]) -> Column:
    """Return whether a row belongs to one of these instances. The result is never null."""
    return F.coalesce(F.col("instance_name").isin(*instances), F.lit(False)) if instances else F.lit(False)


def find_codes(instance_is_known: Column, database_is_known: Column, quarantined: Collection[str]) -> list[Column]:
    """Return a column for each rejection code, null if it does not apply, in the order of tables.md.

    Instances that are ``quarantined`` are not known.
    """
    database = empty_as_null(F.col("database_name"))
    conversation = empty_as_null(F.col("conversation_id"))
    instance = empty_as_null(F.col("instance_name"))
    missing = [
        _code(is_missing(field.name, field.kind), Rejection.missing(field.name))
        for field in MESSAGES
        if not field.nullable
    ]
    return [
        *missing,
        *(_code(~is_utf8(F.col(name)), Rejection.not_utf8(name)) for name in TEXTS),
        _code(~is_int(F.col("hops_remaining")), Rejection.out_of_range("hops_remaining")),
        _code(~is_guid(conversation), Rejection.CONVERSATION_ID_NOT_A_GUID),
        F.when(is_in(quarantined), str(Rejection.INSTANCE_QUARANTINED)).when(
            instance.isNotNull() & ~instance_is_known, str(Rejection.UNKNOWN_INSTANCE)
        ),
        _code(database.isNotNull() & instance_is_known & ~database_is_known, Rejection.UNKNOWN_DATABASE),
    ]


def _code(applies: Column, code: str) -> Column:
    return F.when(applies, F.lit(str(code)))


def readable_texts() -> dict[str, Column]:
    """Return the texts of a message in the form that ``rejected_messages`` stores, by column."""
    return {name: readable(F.col(name)) for name in TEXTS}


def last_rows(resolved: DataFrame) -> DataFrame:
    """Return the row of each message's last attempt."""
    later_attempts = resolved.where("attempt > 1").groupBy(*_MESSAGE).agg(F.max("attempt").alias("last_attempt"))
    return (
        resolved.join(later_attempts, _MESSAGE, how="left")
        .where(F.col("attempt") == F.coalesce("last_attempt", "attempt"))
        .select(*resolved.columns)
    )


# A select that converts an input frame to its declared columns (tables.md, 'Types that are accepted').


_MICROSECONDS_A_DAY = 86_400_000_000


def conform(frame: DataFrame, key: str) -> DataFrame:
    """Return the declared columns of table ``key``, in order, in the types that the rules use.

    Columns are matched without case, as in Spark. Extra columns are left out, and missing optional ones are null.
    Integers become bigint, so that a value that does not fit its column can be reported. Raises InputError naming
    every column that is missing or has a type that is not accepted.
    """
    schema, types = TABLES[key], {field.name.lower(): field.dataType for field in frame.schema}
    shape_of(frame, key)
    return frame.select(
        *(
            _convert(F.col(f"`{field.name}`"), types.get(field.name, NullType()), field.kind).alias(field.name)
            for field in schema
        )
    )


def in_shape(rows: DataFrame, shape: Schema, values: Mapping[str, Column] | None = None) -> DataFrame:
    """Select the columns of a schema in its types. ``values`` has the columns that ``rows`` does not have."""
    own_values = values or {}
    # Types are texts, because pyspark needs five calls to the JVM for any other form.
    return rows.select(*(own_values.get(f.name, F.col(f.name)).cast(str(f.kind)).alias(f.name) for f in shape))


def as_declared(rows: DataFrame, shape: Schema) -> DataFrame:
    """Declare the required columns of a schema as not nullable, without changing the rows.

    Spark treats a column as nullable unless an expression is never null. This one costs less than writing nulls.
    """
    return rows.select(
        *(
            F.col(f.name) if f.nullable else F.coalesce(F.col(f.name), _some_value(f.kind)).alias(f.name)
            for f in shape
        )
    )


def _some_value(kind: AnyKind) -> Column:
    """Return any value of a kind except null."""
    if kind == ColumnKind.TIMESTAMP:
        return F.timestamp_seconds(F.lit(0))
    empty = F.array() if isinstance(kind, ArrayOf) else F.lit("" if kind == ColumnKind.STRING else 0)
    return empty.cast(str(kind))


def no_rows(spark: SparkSession, shape: Schema) -> DataFrame:
    """Return an empty frame of a schema."""
    return in_shape(spark.range(0), shape, {name: F.lit(None) for name in shape.names})


def _convert(column: Column, actual: DataType, wanted: AnyKind) -> Column:
    kind = str(ColumnKind.BIGINT if wanted == ColumnKind.INT else wanted)
    if isinstance(actual, NullType):
        return F.lit(None).cast(kind)
    if isinstance(actual, TimestampNTZType):
        return _as_utc(column)
    if wanted == ColumnKind.STRING:
        return _plain_text(column, actual)
    if isinstance(actual, ArrayType):
        return F.transform(column.cast(kind), lambda element: _plain_text(element, actual.elementType))
    return column.cast(kind)


def _plain_text(column: Column, kind: DataType) -> Column:
    """Convert a text to the binary collation, so that names are compared exactly."""
    collation = getattr(kind, "collation", "UTF8_BINARY")
    if isinstance(kind, StringType) and collation != "UTF8_BINARY":
        return F.call_function("collate", column, F.lit("UTF8_BINARY"))
    return column.cast(StringType())


def _as_utc(time: Column) -> Column:
    """Read a time without zone as UTC.

    It is built from its parts, because a cast would read it in the session's time zone.
    """
    days = F.datediff(F.to_date(time), F.lit("1970-01-01").cast("date")).cast("bigint")
    seconds = (F.hour(time) * 3600 + F.minute(time) * 60).cast("bigint") * 1_000_000
    micros = (F.date_part(F.lit("SECOND"), time) * 1_000_000).cast("bigint")
    return F.timestamp_micros(days * _MICROSECONDS_A_DAY + seconds + micros)
