"""The forms that Spark needs of what the rules read, each equal to that of plain Python (`rules`).

Forms of texts, as `tables.arrow_forms` has them for Arrow: fold, GUID, broker instance, leading address, hash, and
bytes that are no UTF-8. Forms of messages: what they lack, the reasons to set one aside, and the last attempt.
Names are compared exactly, so none of these touches one; addresses are compared folded, and so are broker
instances, which are read in several steps (`read_brokers`).
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
)

from routing.rules.rejecting import DECODED, INT_RANGE, TEXTS
from routing.schemas import MESSAGES, TABLES, AnyKind, ArrayOf, ColumnKind, Schema
from routing.tables.table_columns import shape_of
from routing.terms import BLANKS, ZERO_GUID, Rejection

_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_HOST = r"(?:\[[0-9A-Fa-f:.]+(?:%[^/:\[\] \t\n\r]+)?\]|[^/:\[\] \t\n\r]+)"
_SCHEME = r"[tT][cC][pP]://"
_ADDRESS_IN_NAME = rf"\A({_SCHEME}{_HOST}:[0-9]{{1,5}})(?:/|\z)"
# Characters listed, nothing repeated: Java takes two thirds of the time that it needs for ranges and counts.
_HEX = "[0123456789abcdefABCDEF]"
GUID = rf"\A{_HEX * 8}-{_HEX * 4}-{_HEX * 4}-{_HEX * 4}-{_HEX * 12}\z"
_GUID_LENGTH = 36
# The bytes of a character beyond ASCII in UTF-8, or one byte; a byte is a character of ISO 8859-1 here.
_NEXT = "[\u0080-\u00bf]"
_CHARACTER_OR_BYTE = (
    f"([\u00c2-\u00df]{_NEXT}|\u00e0[\u00a0-\u00bf]{_NEXT}|[\u00e1-\u00ec\u00ee\u00ef]{_NEXT}{_NEXT}"
    f"|\u00ed[\u0080-\u009f]{_NEXT}|\u00f0[\u0090-\u00bf]{_NEXT}{_NEXT}|[\u00f1-\u00f3]{_NEXT}{_NEXT}{_NEXT}"
    f"|\u00f4[\u0080-\u008f]{_NEXT}{_NEXT}|(?s:.))"
)
# No character of ISO 8859-1.
_BETWEEN = "\uffff"
_MESSAGE = ["instance_name", "message_id"]


def empty_as_null(text: Column) -> Column:
    """Return null for empty text in an optional column (section 0)."""
    return F.when(text != "", text)


def fold(text: Column) -> Column:
    """Return the text with the letters A to Z in lower case; every other character stays as it is.

    Spark's own ``lower`` is fast, and right where all is ASCII; on other characters it differs from Python's. To
    hash ten million GUIDs took 1.1 s with ``lower``, 1.8 s with this, 4.4 s with ``translate`` alone.
    """
    is_ascii = F.octet_length(text) == F.length(text)
    return F.when(is_ascii, F.lower(text)).otherwise(fold_any(text))


def fold_any(text: Column) -> Column:
    """Fold a text in less code but more time, for rare texts."""
    return F.translate(text, _UPPER, _UPPER.lower())


def conversation_id(text: Column) -> Column:
    """Return a conversation id as it is compared, hashed and written."""
    return fold(text)


def is_guid(text: Column) -> Column:
    """Return whether a text is the 36 characters of a GUID in any case, without braces."""
    return text.rlike(GUID)


def leading_address(service_name: Column) -> Column:
    """Return the address that a TRANSPORT route reads from a service name, empty without one (section 3).

    Nothing stands around it: folded it is as two are compared. To make it null takes another search, unless it is
    a column before.
    """
    return F.regexp_extract(service_name, _ADDRESS_IN_NAME, 1)


def read_brokers(rows: DataFrame, **text_columns: str) -> DataFrame:
    """Return rows with more columns, each by its name the broker instance that the text of another column gives.

    As it is compared and written (`rules.text.broker_id`): no blanks, no braces, folded; null when none. Narrow;
    every row is kept. Spark puts an expression in the place of every column that names it, unless a projection of
    its own has it: in one expression these steps would be made thirty times over, longer than Java compiles.
    """
    # What is never null takes half the code.
    with_brokers = rows.withColumns({name: F.coalesce(text, F.lit("")) for name, text in text_columns.items()})
    for step in (_folded, _without_braces, _if_an_id):
        with_brokers = with_brokers.withColumns({name: step(F.col(name)) for name in text_columns})
    return with_brokers


def _folded(text: Column) -> Column:
    """Return no blanks around, folded; what is as long as a GUID and bare is spared what takes time.

    Blanks come before the digits, and braces after the letters.
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
    """Return whether the bytes of a text are UTF-8; Spark itself takes any."""
    if hasattr(F, "is_valid_utf8"):
        return F.is_valid_utf8(text)
    # Before Spark 4.0: Java reads and writes them, and puts other bytes in the place of those that are none.
    return F.encode(text, "UTF-8") == text.cast("binary")


def readable(text: Column) -> Column:
    r"""Return a text with each byte that cannot be decoded as ``\xNN``, as `rules.text.decode_utf8` writes it."""
    # A character for each byte, so that Java's expressions see bytes.
    bytes_of = F.decode(text.cast("binary"), "ISO-8859-1")
    parts = F.split(F.regexp_replace(bytes_of, _CHARACTER_OR_BYTE, f"$1{_BETWEEN}"), _BETWEEN)
    escaped = F.transform(parts, _escape_lone_byte)
    joined = F.encode(F.array_join(escaped, ""), "ISO-8859-1").cast("string")
    return F.when(is_utf8(text), text).otherwise(joined)


def _escape_lone_byte(part: Column) -> Column:
    """Return the bytes of a character as they are, and one byte beyond ASCII, which is no character, as text."""
    is_lone = (F.length(part) == 1) & (part >= "\u0080")
    return F.when(is_lone, F.concat(F.lit("\\x"), F.lower(F.hex(F.encode(part, "ISO-8859-1"))))).otherwise(part)


def hash_dialog_id(conversation_id: Column) -> Column:
    """Return the dialog-ID hash (section 6) of an id as it is compared: Spark's own expression, a bigint."""
    return F.xxhash64(conversation_id)


def is_int(number: Column) -> Column:
    """Return whether an integer is one of 32 bits."""
    return number.between(*INT_RANGE)


def is_missing(name: str, kind: object) -> Column:
    """Return whether a required value is null, or empty text."""
    value = F.col(name)
    return value.isNull() | (value == "") if kind == ColumnKind.STRING else value.isNull()


def is_well_formed() -> Column:
    """Return whether a message has all required columns, whatever its instance and database; null for no."""
    texts = (F.col("message_id") != "") & (F.col("to_service_name") != "")
    values = F.col("is_initiator").isNotNull() & F.col("enqueue_time").isNotNull()
    hops = F.col("hops_remaining").isNull() | is_int(F.col("hops_remaining"))
    # All at once, which is less code for each row: what stands between two texts is no part of a character.
    utf8 = is_utf8(F.concat_ws(" ", *DECODED))
    return texts & values & hops & utf8 & is_guid(F.col("conversation_id"))


def find_codes(instance_is_known: Column, database_is_known: Column) -> list[Column]:
    """Return the rejection codes of a message, each null where it does not apply, in the order of tables.md."""
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
        _code(instance.isNotNull() & ~instance_is_known, Rejection.UNKNOWN_INSTANCE),
        _code(database.isNotNull() & instance_is_known & ~database_is_known, Rejection.UNKNOWN_DATABASE),
    ]


def _code(applies: Column, code: str) -> Column:
    return F.when(applies, F.lit(str(code)))


def readable_texts() -> dict[str, Column]:
    """Return the texts of a message as ``rejected_messages`` stores them, by column."""
    return {name: readable(F.col(name)) for name in TEXTS}


def last_rows(resolved: DataFrame) -> DataFrame:
    """Return the last row of each message: a row that a later attempt has replaced is left out."""
    again = resolved.where("attempt > 1").groupBy(*_MESSAGE).agg(F.max("attempt").alias("last_attempt"))
    return (
        resolved.join(again, _MESSAGE, how="left")
        .where(F.col("attempt") == F.coalesce("last_attempt", "attempt"))
        .select(*resolved.columns)
    )


# One select a table that brings an input frame to its declared columns (tables.md, 'Types that are accepted').


_MICROSECONDS_A_DAY = 86_400_000_000


def conform(frame: DataFrame, key: str) -> DataFrame:
    """Return the declared columns of table ``key``, in order, in the types that the rules work with.

    Columns are matched without case, as Spark does. Extra ones are left out, missing optional ones are null.
    Integers come out as bigint, so that a value which does not fit its column is still there to be reported.
    Raises InputError naming every column that is missing or of a type that is not accepted.
    """
    schema, types = TABLES[key], _types_by_name(frame.schema)
    shape_of(frame, key)
    return frame.select(
        *(
            _convert(F.col(f"`{field.name}`"), types.get(field.name, NullType()), field.kind).alias(field.name)
            for field in schema
        )
    )


def _types_by_name(columns: StructType) -> dict[str, DataType]:
    """Return the types of columns by their names in lower case."""
    return {field.name.lower(): field.dataType for field in columns}


def in_shape(rows: DataFrame, shape: Schema, values: Mapping[str, Column] | None = None) -> DataFrame:
    """Select the columns of a schema in its types; ``values`` are the columns that are not there by name."""
    own_values = values or {}
    # Types as text: pyspark hands over any other form of them by way of JSON and the session, five calls for one.
    return rows.select(*(own_values.get(f.name, F.col(f.name)).cast(str(f.kind)).alias(f.name) for f in shape))


def as_declared(rows: DataFrame, shape: Schema) -> DataFrame:
    """Declare the columns of a schema that are never null as not nullable; the rows stay as they are.

    Spark takes a column for nullable unless an expression says otherwise. This one costs less than writing a null.
    """
    return rows.select(
        *(
            F.col(f.name) if f.nullable else F.coalesce(F.col(f.name), _some_value(f.kind)).alias(f.name)
            for f in shape
        )
    )


def _some_value(kind: AnyKind) -> Column:
    """Return a value of a kind that is not null."""
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
    """Return the text in the binary collation, whatever the column's own, so that names are compared exactly."""
    collation = getattr(kind, "collation", "UTF8_BINARY")
    if isinstance(kind, StringType) and collation != "UTF8_BINARY":
        return F.call_function("collate", column, F.lit("UTF8_BINARY"))
    return column.cast(StringType())


def _as_utc(time: Column) -> Column:
    """Return a time without zone as the UTC moment it names.

    Built from its parts: a cast would read it in the session's zone, and that need not be UTC.
    """
    days = F.datediff(F.to_date(time), F.lit("1970-01-01").cast("date")).cast("bigint")
    seconds = (F.hour(time) * 3600 + F.minute(time) * 60).cast("bigint") * 1_000_000
    micros = (F.date_part(F.lit("SECOND"), time) * 1_000_000).cast("bigint")
    return F.timestamp_micros(days * _MICROSECONDS_A_DAY + seconds + micros)
