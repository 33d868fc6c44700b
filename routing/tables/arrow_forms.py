"""Arrow versions of the functions of `rules` on texts and messages, with equal results.

`tables.spark_forms` has the same functions for Spark. They take and return an array. The docstrings name functions
that also accept an expression over a dataset.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from routing.rules import text
from routing.rules.rejecting import INT_RANGE, REQUIRED, TEXTS
from routing.tables.arrow_rows import find_undecodable, plain_values
from routing.tables.table_columns import rows_where
from routing.terms import ZERO_GUID, Rejection

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

_HEX = "[0123456789abcdefABCDEF]"
_GUID = rf"\A{_HEX * 8}-{_HEX * 4}-{_HEX * 4}-{_HEX * 4}-{_HEX * 12}\z"
_MESSAGE = ("instance_name", "message_id")
_PLAIN_BROKER = r"\A[0-9a-f-]{36}\z"
_ADDRESS_IN_NAME = rf"\A(?P<address>{text.ADDRESS_WITH_PORT})(?:/|\z)"
# The dialog-ID hash is XXH64 of the 36 characters of a GUID.
_GUID_LENGTH, _SEED = 36, 42
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4 = 0x85EBCA77C2B2AE63


def empty_as_null(texts: Any) -> Any:
    """Return an Arrow array with null in place of empty texts."""
    import pyarrow.compute as pc

    return pc.if_else(pc.equal(texts, ""), None, texts)


def fold_texts(words: Any) -> Any:
    """Return texts with the letters A to Z in lower case, for an array, a table's column or an expression."""
    import pyarrow.compute as pc

    return pc.ascii_lower(words)


def is_guid(words: Any) -> Any:
    """Return whether texts are GUIDs of 36 characters in any case, for an array or an expression."""
    import pyarrow.compute as pc

    return pc.match_substring_regex(words, _GUID)


def read_brokers(words: pyarrow.Array) -> pyarrow.Array:
    """Return broker instances in the form that is compared and written. Any other text becomes null."""
    import pyarrow
    import pyarrow.compute as pc

    folded = fold_texts(words)
    # Most broker instances are stored in the form that is compared. Python converts each of the others.
    is_plain = pc.match_substring_regex(folded, _PLAIN_BROKER)
    unusual = pc.indices_nonzero(pc.or_kleene(pc.invert(is_plain), pc.equal(folded, ZERO_GUID))).to_pylist()
    if not unusual:
        return folded
    ids, written = plain_values(folded), plain_values(words)
    for place in unusual:
        ids[place] = text.broker_id(written[place])
    return pyarrow.array(ids, pyarrow.string())


def leading_addresses(names: pyarrow.Array) -> pyarrow.Array:
    """Return the address that a TRANSPORT route reads from each service name, or null without one."""
    import pyarrow.compute as pc

    return pc.struct_field(pc.extract_regex(names, _ADDRESS_IN_NAME), "address")


def hash_dialog_ids(ids: pyarrow.Array) -> pyarrow.Array:
    """Return the dialog-ID hash of each folded GUID (rule book, section 6). The array must have no nulls."""
    import pyarrow
    import pyarrow.compute as pc

    words, last = _words_of(ids)
    starts = (_SEED + _P1 + _P2, _SEED + _P2, _SEED, _SEED - _P1)
    lanes = [
        _multiply(_rotate(pc.add(_multiply(word, _P2), _unsigned(start)), 31), _P1)
        for word, start in zip(words, starts, strict=True)
    ]
    total = reduce(pc.add, (_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)))
    for lane in lanes:
        mixed = pc.bit_wise_xor(total, _multiply(_rotate(_multiply(lane, _P2), 31), _P1))
        total = pc.add(_multiply(mixed, _P1), _unsigned(_P4))
    total = pc.bit_wise_xor(pc.add(total, _unsigned(_GUID_LENGTH)), _multiply(last, _P1))
    total = pc.add(_multiply(_rotate(total, 23), _P2), _unsigned(_P3))
    for bits, factor in ((33, _P2), (29, _P3)):
        total = _multiply(pc.bit_wise_xor(total, pc.shift_right(total, _unsigned(bits))), factor)
    return pc.bit_wise_xor(total, pc.shift_right(total, _unsigned(32))).view(pyarrow.int64())


def _words_of(ids: pyarrow.Array) -> tuple[list[pyarrow.Array], pyarrow.Array]:
    """Return the 36 bytes of GUIDs as numbers: four numbers of eight bytes each and one of four bytes."""
    import pyarrow
    import pyarrow.compute as pc

    size = _GUID_LENGTH // 4
    if not len(ids):
        none = pyarrow.array([], pyarrow.uint64())
        return [none] * 4, none
    _, offsets, data = ids.buffers()
    [first] = pyarrow.Array.from_buffers(pyarrow.int32(), 1, [None, offsets], offset=ids.offset).to_pylist()
    data = data.slice(first)
    numbers = pyarrow.Array.from_buffers(pyarrow.uint32(), len(ids) * size, [None, data])
    rows = pyarrow.FixedSizeListArray.from_arrays(numbers, size)
    parts = [pc.list_element(rows, place).cast(pyarrow.uint64()) for place in range(size)]
    pairs = zip(parts[0:8:2], parts[1:8:2], strict=True)
    return [pc.bit_wise_or(low, pc.shift_left(high, _unsigned(32))) for low, high in pairs], parts[8]


def _unsigned(value: int) -> Any:
    import pyarrow

    return pyarrow.scalar(value % 2**64, pyarrow.uint64())


def _multiply(numbers: Any, factor: int) -> Any:
    import pyarrow.compute as pc

    return pc.multiply(numbers, _unsigned(factor))


def _rotate(numbers: Any, bits: int) -> Any:
    import pyarrow.compute as pc

    return pc.bit_wise_or(pc.shift_left(numbers, _unsigned(bits)), pc.shift_right(numbers, _unsigned(64 - bits)))


def is_int(numbers: Any) -> Any:
    """Return whether integers fit 32 bits, for an array or an expression."""
    import pyarrow.compute as pc

    least, most = INT_RANGE
    return pc.and_kleene(pc.greater_equal(numbers, least), pc.less_equal(numbers, most))


def find_codes(
    rows: pyarrow.Table,
    instance_is_known: pyarrow.Array,
    database_is_known: pyarrow.Array,
    quarantined: Collection[str] = (),
) -> dict[str, pyarrow.Array]:
    """Return a mask of messages for each rejection code, in the order of tables.md.

    Instances that are ``quarantined`` are not known. ``rows`` must have all columns of messages. The codes for
    invalid UTF-8 are left out if no row has such text.
    """
    import pyarrow
    import pyarrow.compute as pc

    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    undecodable = {name: mask for name in TEXTS if (mask := find_undecodable(columns[name])) is not None}
    names_instance, names_database, names_conversation = (
        pc.fill_null(pc.not_equal(columns[name], ""), fill_value=False)
        for name in ("instance_name", "database_name", "conversation_id")
    )
    guid = pc.fill_null(is_guid(columns["conversation_id"]), fill_value=False)
    codes: dict[str, pyarrow.Array] = {Rejection.missing(name): _is_missing(columns[name]) for name in REQUIRED}
    codes |= {Rejection.not_utf8(name): mask for name, mask in undecodable.items()}
    codes[Rejection.out_of_range("hops_remaining")] = pc.invert(is_int(columns["hops_remaining"]))
    codes[str(Rejection.CONVERSATION_ID_NOT_A_GUID)] = pc.and_not(names_conversation, guid)
    is_quarantined = pc.is_in(columns["instance_name"], pyarrow.array([*quarantined], pyarrow.string()))
    is_unknown = pc.and_not(names_instance, instance_is_known)
    codes[str(Rejection.INSTANCE_QUARANTINED)] = is_quarantined
    codes[str(Rejection.UNKNOWN_INSTANCE)] = pc.and_not(is_unknown, is_quarantined)
    has_place = pc.and_(names_database, instance_is_known)
    codes[str(Rejection.UNKNOWN_DATABASE)] = pc.and_not(has_place, database_is_known)
    return {code: pc.fill_null(applies, fill_value=False) for code, applies in codes.items()}


def _is_missing(column: pyarrow.Array) -> pyarrow.Array:
    """Return whether required values are null, or empty text."""
    import pyarrow
    import pyarrow.compute as pc

    if pyarrow.types.is_string(column.type):
        return pc.fill_null(pc.equal(column, ""), fill_value=True)
    return column.is_null()


@dataclass(frozen=True)
class Attempts:
    """The messages with several attempts.

    ``once`` is a condition for the rows of all other messages. ``last`` has the last attempt of each message, and
    messages of other instances with the same ids. ``replaced`` has the earlier attempts.
    """

    once: Any
    last: pyarrow.Table
    replaced: pyarrow.Table


def split_attempts(rows: pyarrow.dataset.Dataset, names: Sequence[str]) -> Attempts | None:
    """Return the messages with several attempts, in the named columns and those that identify an attempt.

    Returns None without a second attempt. The files' statistics usually show this without reading rows.
    """
    import pyarrow.compute as pc

    later_attempts = rows.to_table(columns=[*_MESSAGE, "attempt"], filter=pc.field("attempt") > 1)
    if not len(later_attempts):
        return None
    last = later_attempts.group_by(list(_MESSAGE)).aggregate([("attempt", "max")])
    columns = list(dict.fromkeys((*names, *_MESSAGE, "attempt")))
    has_id = pc.field("message_id").isin(last["message_id"].combine_chunks())
    both = rows.to_table(columns=columns, filter=has_id).join(last, list(_MESSAGE), join_type="left outer")
    # A message of another instance, tried once, may have the same id.
    is_last = pc.equal(both["attempt"], pc.coalesce(both["attempt_max"], both["attempt"]))
    both = both.select(columns)
    return Attempts(~has_id, rows_where(both, is_last), rows_where(both, pc.invert(is_last)))


def without(rows: pyarrow.Table, replaced: pyarrow.Table) -> pyarrow.Table:
    """Remove replaced rows."""
    if not len(replaced):
        return rows
    removed = replaced.select([*_MESSAGE, "attempt"])
    return rows.join(removed, [*_MESSAGE, "attempt"], join_type="left anti")
