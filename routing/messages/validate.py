"""Faults of configuration rows, and the rejection of message rows (tables.md).

A check is a Column that is null when a row is fine and a sentence when it is not, all from `check`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing import schemas
from routing.errors import InputError
from routing.messages import ids
from routing.schemas import KEYS
from routing.terms import ZERO_GUID, Rejection

# Tables whose doubled keys are faults; a doubled route request asks the same thing twice and changes nothing.
_UNIQUE = ("databases", "services", "instances", "dialogs")
# As many faults are told; the others are counted.
_SHOWN = 20
INT_RANGE = (-(2**31), 2**31 - 1)
_EVER = (-(2**63), 2**63 - 1)


def check(is_fault: Column, sentence: str, *values: Column) -> Column:
    """The maker of all checks: null when fine, else the sentence with its ``%s`` filled."""
    shown = [F.coalesce(F.substring(value, 1, 100), F.lit("NULL")) for value in values]
    return F.when(is_fault, F.format_string(sentence, *shown) if shown else F.lit(sentence))


def check_rows(tables: Mapping[str, DataFrame]) -> None:
    """Stop where a configuration, dialogs or route_requests row is at fault. Raises InputError."""
    found = findings(tables)
    rows = found.orderBy("table_name", "row_key", "fault").limit(_SHOWN).collect()
    if rows:
        shown = [f"{row.table_name} ({row.row_key}): {row.fault}" for row in rows]
        raise InputError.faulty_rows(shown, len(rows) if len(rows) < _SHOWN else found.count())


def findings(tables: Mapping[str, DataFrame]) -> DataFrame:
    """All faults of conformed configuration, dialogs and route_requests rows.

    Columns: table_name, row_key, fault (all text). Empty where everything is fine.
    """
    parts = [_row_faults(key, frame) for key, frame in tables.items() if key in KEYS]
    parts.append(_doubled_keys({key: tables[key] for key in _UNIQUE if key in tables}))
    parts.append(_version_faults(tables["routes"]))
    return reduce(DataFrame.unionByName, parts)


def _row_faults(key: str, frame: DataFrame) -> DataFrame:
    checks = [
        check(_is_missing(field.name, str(field.kind)), f"{field.name} is missing")
        for field in schemas.INPUTS[key]
        if not field.nullable
    ]
    checks += _SPECIAL_CHECKS[key]() if key in _SPECIAL_CHECKS else []
    faults = F.array_compact(F.array(*checks))
    return frame.select(
        F.lit(key).alias("table_name"), _row_key(key).alias("row_key"), F.explode(faults).alias("fault")
    )


def _is_missing(name: str, kind: str) -> Column:
    value = F.col(name)
    return value.isNull() | (value == "") if kind == "string" else value.isNull()


def _row_key(key: str) -> Column:
    parts = (F.coalesce(F.substring(F.col(name).cast("string"), 1, 100), F.lit("NULL")) for name in KEYS[key])
    return F.concat_ws(", ", *parts)


def _bad_addresses() -> list[Column]:
    address, mirror = F.col("address"), F.col("mirror_address")
    keyword = ids.is_local(address) | ids.is_transport(address)
    given = ids.empty_as_null(mirror)
    return [
        check(
            ~(keyword | ids.is_tcp(address)) & (address != ""),
            "address '%s' is neither LOCAL, TRANSPORT nor tcp://HOST[:PORT]",
            address,
        ),
        check(~ids.is_tcp(given), "mirror_address '%s' is not tcp://HOST[:PORT]", mirror),
        check(given.isNotNull() & keyword, "mirror_address stands beside address '%s'", address),
    ]


def _bad_own_addresses() -> list[Column]:
    bad = F.filter("addresses", lambda a: (a != "") & ~ids.is_tcp(a))
    return [check(F.size(bad) > 0, "address '%s' is not tcp://HOST[:PORT]", F.get(bad, F.lit(0)))]


def _bad_databases() -> list[Column]:
    database_id, guid = F.col("database_id"), F.col("service_broker_guid")
    is_blank = ids.broker_id(guid).isNull() & ~guid.contains(ZERO_GUID) & (guid != "")
    return [
        check(
            ~database_id.between(*INT_RANGE),
            "database_id %s does not fit an int",
            database_id.cast("string"),
        ),
        check(is_blank, "service_broker_guid is missing"),
    ]


# Made when asked for: some Spark versions make no Column without a session.
_SPECIAL_CHECKS: dict[str, Callable[[], list[Column]]] = {
    "routes": _bad_addresses,
    "instances": _bad_own_addresses,
    "databases": _bad_databases,
}


def _doubled_keys(tables: Mapping[str, DataFrame]) -> DataFrame:
    """Keys that several rows have; all tables are counted in one aggregate, four key columns wide."""
    width = max(len(KEYS[key]) for key in tables)
    parts = []
    for key, frame in tables.items():
        values = [F.col(name).cast("string") for name in KEYS[key]]
        if key == "dialogs":
            values[KEYS[key].index("conversation_id")] = ids.conversation_id(F.col("conversation_id"))
        values += [F.lit(None).cast("string")] * (width - len(values))
        parts.append(
            frame.select(F.lit(key).alias("table_name"), *(v.alias(f"k{n}") for n, v in enumerate(values)))
        )
    names = [f"k{n}" for n in range(width)]
    counted = reduce(DataFrame.unionByName, parts).groupBy("table_name", *names).agg(F.count("*").alias("rows"))
    return counted.where("rows > 1").select(
        "table_name",
        F.concat_ws(", ", *(F.substring(name, 1, 100) for name in names)).alias("row_key"),
        F.format_string("%s rows have this key", F.col("rows").cast("string")).alias("fault"),
    )


def _version_faults(routes: DataFrame) -> DataFrame:
    """Doubled keys and overlapping versions of one route: in order, each must end before the next begins."""
    name = ("instance_name", "database_name", "name")
    start = F.coalesce(F.unix_micros("valid_from"), F.lit(_EVER[0]))
    end = F.coalesce(F.unix_micros("valid_to"), F.lit(_EVER[1]))
    spans = F.sort_array(F.collect_list(F.struct(start.alias("start"), end.alias("end"))))
    versions = routes.groupBy(*name).agg(spans.alias("spans")).where(F.size("spans") > 1)
    lasting = F.filter("spans", lambda s: s["start"] < s["end"])
    return versions.select(
        F.lit("routes").alias("table_name"),
        F.concat_ws(", ", *name).alias("row_key"),
        F.explode(
            F.array_compact(
                F.array(
                    check(
                        _a_pair(F.col("spans"), lambda a, b: a["start"] == b["start"]),
                        "several rows have this key and the same valid_from",
                    ),
                    check(
                        _a_pair(lasting, lambda a, b: (a["end"] > b["start"]) & (a["start"] != b["start"])),
                        "its versions overlap",
                    ),
                )
            )
        ).alias("fault"),
    )


def _a_pair(spans: Column, is_fault: Callable[[Column, Column], Column]) -> Column:
    """Whether any two neighbours of a sorted array are at fault."""
    size = F.size(spans)
    first = F.slice(spans, F.lit(1), F.greatest(size - 1, F.lit(0)))
    second = F.slice(spans, F.lit(2), F.greatest(size - 1, F.lit(0)))
    return F.exists(F.zip_with(first, second, is_fault), lambda fault: fault)


def message_faults(instance_is_known: Column, database_is_known: Column) -> list[Column]:
    """The rejection codes of a message row, each null where it does not apply, in the order of tables.md."""
    database = ids.empty_as_null(F.col("database_name"))
    codes = [
        check(_is_missing(field.name, str(field.kind)), Rejection.missing(field.name))
        for field in schemas.MESSAGES
        if not field.nullable
    ]
    given = ids.empty_as_null(F.col("conversation_id"))
    instance = ids.empty_as_null(F.col("instance_name"))
    return [
        *codes,
        check(~F.col("hops_remaining").between(*INT_RANGE), Rejection.out_of_range("hops_remaining")),
        check(~ids.is_guid(given), str(Rejection.CONVERSATION_ID_NOT_A_GUID)),
        check(instance.isNotNull() & ~instance_is_known, str(Rejection.UNKNOWN_INSTANCE)),
        check(database.isNotNull() & instance_is_known & ~database_is_known, str(Rejection.UNKNOWN_DATABASE)),
    ]
