"""Find faults in rows of the configuration, dialogs and route_requests (tables.md).

Each column is checked as a whole. Single rows are read only to describe their faults.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

from routing.errors import InputError
from routing.rules import text
from routing.rules.rejecting import is_int
from routing.rules.text import UndecodedText
from routing.rules.timeline import SECOND
from routing.schemas import INPUTS, KEYS, ColumnKind
from routing.tables.arrow_forms import fold_texts
from routing.tables.arrow_rows import find_undecodable
from routing.tables.encoded_texts import encoded
from routing.tables.table_columns import (
    FILE,
    TableColumns,
    as_dataset,
    in_files,
    joined,
    read_arrow,
    rows_where,
    shape_of,
)
from routing.terms import ZERO_GUID

# Tables whose duplicate keys are faults. A duplicate route request changes nothing.
_UNIQUE = ("databases", "services", "instances", "dialogs")
_VERSIONED = ("instance_name", "database_name", "name")
_EVER = (-(2**63), 2**63 - 1)
# Limits of the characters of a value and of the faults that are shown. The other faults are counted.
_CHARACTERS = 100
SHOWN = 20
_DAY = 86_400
# Python's calendar ends with year 9999, Spark's does not. The calendar repeats itself every 400 years.
_CYCLE_DAYS, _CYCLE_YEARS = 146_097, 400


class RowFault(NamedTuple):
    """The fault of a row, or of all rows of a key. ``instance`` is that of the row, or None if it has none."""

    table_name: str
    row_key: str
    fault: str
    instance: str | None = None

    def __str__(self) -> str:
        return f"{self.table_name} ({self.row_key}): {self.fault}"


def findings(tables: Mapping[str, TableColumns]) -> Iterator[RowFault]:
    """Yield all faults of the given tables."""
    for key, columns in tables.items():
        if key in KEYS:
            yield from _row_faults(key, columns)
        if key in _UNIQUE:
            yield from _doubled_keys(key, columns)
    if "routes" in tables:
        yield from _version_faults(tables["routes"])


def refuse_faults(tables: Mapping[str, TableColumns]) -> None:
    """Raise InputError if a row has a fault."""
    faults = list(findings(tables))
    if faults:
        raise InputError.faulty_rows(first_texts(faults), len(faults))


def first_texts(faults: Iterable[RowFault]) -> list[str]:
    """Return the first `SHOWN` faults as texts."""
    return [str(one) for one in sorted(faults, key=lambda one: one[:3])[:SHOWN]]


def phrase(sentence: str, *values: str | None) -> str:
    """Fill each ``%s`` of a sentence with up to 100 characters of a value, or NULL for None."""
    shown = tuple("NULL" if value is None else value[:_CHARACTERS] for value in values)
    return sentence % shown if shown else sentence


def time_text(micros: int) -> str:
    """Return a time as Spark writes it in UTC, such as ``2026-01-05 10:30:00``, with a fraction if it has one."""
    seconds, fraction = divmod(micros, SECOND)
    days, second = divmod(seconds, _DAY)
    cycles, rest = divmod(days, _CYCLE_DAYS)
    day = date(1970, 1, 1) + timedelta(days=rest)
    year = day.year + cycles * _CYCLE_YEARS
    written = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    return f"{written}-{day:%m-%d} {clock}" + (f".{fraction:06d}".rstrip("0") if fraction else "")


def _row_faults(key: str, columns: TableColumns) -> Iterator[RowFault]:
    for place, fault in (*_missing(key, columns), *_undecoded(columns), *_SPECIAL.get(key, _nothing)(columns)):
        shown = (_shown(columns.values[name][place]) for name in KEYS[key])
        row_key = ", ".join("NULL" if part is None else part for part in shown)
        yield RowFault(key, row_key, fault, _instance(columns.values["instance_name"][place]))


def _instance(name: str | None) -> str | None:
    """Return the instance that a row names, or None if the name is missing or not UTF-8."""
    return None if isinstance(name, UndecodedText) else name or None


def _missing(key: str, columns: TableColumns) -> Iterator[tuple[int, str]]:
    """Yield required values that are null, or empty text."""
    for field in INPUTS[key]:
        if not field.nullable:
            absent = (None, "") if field.kind == ColumnKind.STRING else (None,)
            for place in _places(columns.values[field.name], absent):
                yield place, f"{field.name} is missing"


def _undecoded(columns: TableColumns) -> Iterator[tuple[int, str]]:
    """Yield texts that are not UTF-8."""
    for name, place, value in columns.undecoded():
        yield place, phrase(f"{name} '%s' is not UTF-8", value)


def _places(values: Sequence[Any], wanted: Collection[Any]) -> list[int]:
    """Return the places where a column has one of some values."""
    if not any(value in values for value in wanted):
        return []
    return [place for place, value in enumerate(values) if value in wanted]


def _bad(values: Sequence[str | None], is_bad: Callable[[str], bool]) -> list[int]:
    """Return the places of bad texts in a column. Each distinct text is checked once."""
    return _places(values, {value for value in set(values) if value and is_bad(value)})


def _shown(value: Any) -> str | None:
    """Return a part of a key as Spark casts it to text, shortened."""
    if isinstance(value, bool):
        return str(value).lower()
    return time_text(value) if isinstance(value, int) else value if value is None else value[:_CHARACTERS]


def _nothing(_: TableColumns) -> Iterator[tuple[int, str]]:
    return iter(())


def _is_keyword(address: str | None) -> bool:
    return text.is_local(address) or text.is_transport(address)


def _bad_routes(routes: TableColumns) -> Iterator[tuple[int, str]]:
    addresses, mirrors = routes.values["address"], routes.values["mirror_address"]
    for place in _bad(addresses, lambda address: not _is_keyword(address) and not text.is_tcp(address)):
        yield place, phrase("address '%s' is neither LOCAL, TRANSPORT nor tcp://HOST[:PORT]", addresses[place])
    for place in _bad(mirrors, lambda mirror: not text.is_tcp(mirror)):
        yield place, phrase("mirror_address '%s' is not tcp://HOST[:PORT]", mirrors[place])
    for place in _bad(mirrors, bool):
        if _is_keyword(addresses[place]):
            yield place, phrase("mirror_address is given with address '%s'", addresses[place])


def _bad_instances(instances: TableColumns) -> Iterator[tuple[int, str]]:
    for place, addresses in enumerate(instances.values["addresses"]):
        bad = [address for address in addresses or () if address and not text.is_tcp(address)]
        if bad:
            yield place, phrase("address '%s' is not tcp://HOST[:PORT]", bad[0])


def _is_blank(guid: str) -> bool:
    return text.broker_id(guid) is None and ZERO_GUID not in guid


def _bad_databases(databases: TableColumns) -> Iterator[tuple[int, str]]:
    for place, number in enumerate(databases.values["database_id"]):
        if number is not None and not is_int(number):
            yield place, phrase("database_id %s does not fit an int", str(number))
    for place in _bad(databases.values["service_broker_guid"], _is_blank):
        yield place, "service_broker_guid is missing"


_SPECIAL: dict[str, Callable[[TableColumns], Iterator[tuple[int, str]]]] = {
    "routes": _bad_routes,
    "instances": _bad_instances,
    "databases": _bad_databases,
}


def _doubled_keys(key: str, columns: TableColumns) -> Iterator[RowFault]:
    """Yield a fault for each key that several rows have."""
    values = [columns.values[name] for name in KEYS[key]]
    if key == "dialogs":
        place = KEYS[key].index("conversation_id")
        values[place] = [None if value is None else text.fold(value) for value in values[place]]
    for key_values, rows in Counter(zip(*values, strict=True)).items():
        if rows > 1:
            row_key = ", ".join(part for part in map(_shown, key_values) if part is not None)
            instance = _instance(key_values[KEYS[key].index("instance_name")])
            yield RowFault(key, row_key, f"{rows} rows have this key", instance)


def _version_faults(routes: TableColumns) -> Iterator[RowFault]:
    """Yield duplicate keys and overlapping versions of a route. Each version must end before the next begins."""
    versioned_keys = {name for name, rows in Counter(routes.rows(*_VERSIONED)).items() if rows > 1}
    spans: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    if versioned_keys:
        for *name, start, end in routes.rows(*_VERSIONED, "valid_from", "valid_to"):
            if tuple(name) in versioned_keys:
                span = (_EVER[0] if start is None else start, _EVER[1] if end is None else end)
                spans.setdefault(tuple(name), []).append(span)
    for version_key, versions in spans.items():
        versions.sort()
        row_key = ", ".join(part for part in version_key if part is not None)
        instance = _instance(version_key[0])
        if any(one[0] == other[0] for one, other in pairwise(versions)):
            yield RowFault("routes", row_key, "several rows have this key and the same valid_from", instance)
        lasting = [span for span in versions if span[0] < span[1]]
        if any(one[1] > other[0] != one[0] for one, other in pairwise(lasting)):
            yield RowFault("routes", row_key, "its versions overlap", instance)


# Tables that grow with the traffic. Arrow selects the rows that may have faults, and only these are checked.


_ID, _END = "conversation_id", "is_initiator"
# Columns with a distinct text in most rows. Numbering these takes longer than reading them.
_DISTINCT = (_ID, "conversation_group_id", "message_id")


def read_suspects(table: Any, key: str) -> TableColumns:
    """Read the rows of dialogs or route_requests that may have faults.

    These lack a value, may share their key or have text that is not UTF-8. Raises InputError for wrong columns.
    """
    rows, shape = as_dataset(table), shape_of(table, key)
    return read_where(rows, key, shape, suspicion(rows, key, shape))


def read_where(rows: Any, key: str, shape: Mapping[str, str], condition: Any) -> TableColumns:
    """Read the rows of a dataset that meet a condition, and those with text that is not UTF-8.

    ``shape`` is the result of `shape_of`.
    """
    # Arrow reads every column of all files that may have such rows. These files really have some.
    files = rows.to_table(columns=[FILE], filter=condition)[FILE].unique().to_pylist()
    matching_rows = read_arrow(in_files(rows, files), key, condition)
    texts = [shape[field.name] for field in INPUTS[key] if field.kind == ColumnKind.STRING and field.name in shape]
    if not _any_undecodable(encoded(rows, set(texts) - {shape.get(name) for name in _DISTINCT}), texts):
        return matching_rows
    return joined(matching_rows, *_read_undecodable(rows, key, texts, condition))


def _any_undecodable(rows: Any, texts: Sequence[str]) -> bool:
    """Return whether some columns have text that is not UTF-8."""
    batches = rows.scanner(texts).to_batches()
    return any(find_undecodable(batch[name]) is not None for batch in batches for name in texts)


def _read_undecodable(rows: Any, key: str, texts: Sequence[str], condition: Any) -> Iterator[TableColumns]:
    """Read the rows that do not meet a condition and have text that is not UTF-8."""
    import pyarrow
    import pyarrow.compute as pc

    may_be_decodable = ~pc.coalesce(condition, pc.scalar(False))
    for batch in rows.scanner(filter=may_be_decodable).to_batches():
        bad = [mask for name in texts if (mask := find_undecodable(batch[name])) is not None]
        if bad:
            places = pc.indices_nonzero(reduce(pc.or_, bad))
            yield read_arrow(pyarrow.table(batch).take(places), key)


def suspicion(rows: Any, key: str, shape: Mapping[str, str]) -> Any:
    """Return Arrow's condition that a row lacks a value or may share its key.

    ``shape`` is the result of `shape_of`.
    """
    import pyarrow.compute as pc

    condition = _lacks(key, shape)
    if key == "dialogs":
        condition |= fold_texts(pc.field(shape[_ID])).isin(_doubled_ids(rows, shape))
    return condition


def _lacks(key: str, shape: Mapping[str, str]) -> Any:
    """Return Arrow's condition that a row lacks a required value."""
    import pyarrow.compute as pc

    required = [field for field in INPUTS[key] if not field.nullable]
    missing = [pc.field(shape[field.name]).is_null() for field in required]
    empty = [pc.field(shape[field.name]) == "" for field in required if field.kind == ColumnKind.STRING]
    return reduce(operator.or_, [*missing, *empty])


def _doubled_ids(rows: Any, shape: Mapping[str, str]) -> Any:
    """Return the folded ids of conversations with several rows for the same endpoint."""
    import pyarrow.compute as pc

    ends = {_ID: fold_texts(pc.field(shape[_ID])), _END: pc.field(shape[_END])}
    return repeated_values(rows.to_table(columns=ends), ends)[_ID].drop_null().unique()


def repeated_values(rows: Any, names: Any) -> Any:
    """Return the combinations of values that occur in several rows."""
    import pyarrow.compute as pc

    counted = rows.group_by(list(names)).aggregate([([], "count_all")])
    return rows_where(counted, pc.greater(counted["count_all"], 1))
