"""Read observations, messages and dialogs from Arrow tables and files, and fold observations into episodes.

Large tables are read once, in buckets by conversation. Each bucket is folded and joined separately in Arrow
columns, without an object for each row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from routing.engines.arrow.bucketed_rows import BucketedRows, RowBuckets
from routing.engines.arrow.text_numbers import number_groups
from routing.errors import InputError
from routing.rules.resolving import DIALOG_COLUMNS, MATTERS
from routing.schemas import OBSERVED_ROUTING, TABLES
from routing.tables.arrow_forms import empty_as_null, fold_texts, read_brokers
from routing.tables.arrow_rows import arrow_schema, micros_in
from routing.tables.encoded_texts import GroupSums, encoded
from routing.tables.table_columns import Table, as_dataset, rows_where, shape_of
from routing.views.reconcile.episodes import ANSWER, APART, END, EPISODES, OF_ARRIVALS, ORDER, OWN, SIDE

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

_KEY = "observed_routing"
_ALWAYS = tuple(field.name for field in OBSERVED_ROUTING if not field.nullable)
_SERVICE = "to_service_name"
_BY_ID = ("instance_name", "message_id")
# The columns of observations that are read: the side, the order within it, and the answer.
_READ = tuple(dict.fromkeys((*SIDE, *ORDER)))
# The number of message ids that one pass over all messages looks up.
_IDS_AT_ONCE = 4_000_000
_ROWS_AT_ONCE = 1 << 18
_CONVERSATION = "conversation_id"
_IDS = (_CONVERSATION, "message_id")
_SIDE = ("instance_name", _CONVERSATION, "is_initiator")


def read_observations(observed: Table, messages: Table | None) -> Iterator[pyarrow.Table]:
    """Yield batches of the observations, each with its service if it or its message has one.

    An observation without a service gets the service of the message with its id in ``messages``. Times are
    microseconds. Missing columns are null. Raises InputError at the end if a row lacks a required value.
    """
    import pyarrow
    import pyarrow.compute as pc

    shape, rows = shape_of(observed, _KEY), as_dataset(observed)
    lacking: Counter[str] = Counter()
    waiting: list[pyarrow.Table] = []
    names = [name for name in shape if name in (*_READ, *_ALWAYS, "is_from_network")]
    for batch in _scan(rows, [shape[name] for name in names]):
        observations = pyarrow.table(batch).rename_columns(names)
        lacking.update({name: observations[name].null_count for name in _ALWAYS})
        if lacking.total():
            continue
        read = _normalize(observations)
        if messages is None or not read[_SERVICE].null_count:
            yield read
            continue
        asks = pc.and_(pc.is_null(read[_SERVICE]), pc.is_valid(read["message_id"]))
        yield rows_where(read, pc.invert(asks))
        waiting.append(rows_where(read, asks))
        if sum(map(len, waiting)) >= _IDS_AT_ONCE:
            yield _fill_by_message(pyarrow.concat_tables(waiting), messages)
            waiting.clear()
    for name in _ALWAYS:
        if lacking[name]:
            raise InputError.without_value(_KEY, name, lacking[name])
    if waiting and messages is not None:
        yield _fill_by_message(pyarrow.concat_tables(waiting), messages)


def _scan(rows: pyarrow.dataset.Dataset, names: list[str]) -> Iterator[pyarrow.RecordBatch]:
    """Read some columns, some rows at a time: texts that rows share as numbers, for groups of rows are read whole.

    Arrow would read 64 such parts ahead.
    """
    shared = encoded(rows, [name for name in names if name.lower() not in _IDS])
    scanner = shared.scanner(names, batch_size=_ROWS_AT_ONCE, batch_readahead=2, fragment_readahead=1)
    yield from scanner.to_batches()


def _normalize(observations: pyarrow.Table) -> pyarrow.Table:
    """Return observations in the columns of `_READ`, times as microseconds, with ``is_arrival``."""
    import pyarrow
    import pyarrow.compute as pc

    kinds = {field.name: field for field in arrow_schema(OBSERVED_ROUTING)}
    columns = {
        name: observations[name].cast(kind.type)
        if name in observations.column_names
        else pyarrow.nulls(len(observations), kind.type)
        for name, kind in kinds.items()
        if name != "observed_at"
    }
    columns["observed_at"] = micros_in(observations["observed_at"])
    columns["conversation_id"] = fold_texts(columns["conversation_id"])
    forwarded = pc.is_in(columns["source"], pyarrow.array(OF_ARRIVALS))
    columns["is_arrival"] = pc.or_(forwarded, pc.fill_null(columns["is_from_network"], False))
    for name in ("database_name", _SERVICE):
        columns[name] = empty_as_null(columns[name])
    columns["database_name"] = pc.if_else(columns["is_arrival"], None, columns["database_name"])
    return pyarrow.table({name: columns[name] for name in _READ})


def _fill_by_message(rows: pyarrow.Table, messages: Table) -> pyarrow.Table:
    """Return observations, which have ids of messages, with the services of these: the first one by name."""
    import pyarrow
    import pyarrow.compute as pc

    shape, ids = shape_of(messages, "messages"), pc.unique(rows["message_id"])
    sums = GroupSums(_BY_ID, {_SERVICE: "min"})
    for batch in _scan(as_dataset(messages), [shape[name] for name in (*_BY_ID, _SERVICE)]):
        some = pyarrow.table(batch).rename_columns([*_BY_ID, _SERVICE])
        some = rows_where(some, pc.is_in(some["message_id"], value_set=ids))
        if len(some):
            sums.add(pyarrow.table({name: some[name].cast(pyarrow.string()) for name in some.column_names}))
    services = sums.all()
    if not len(services):
        return rows
    lacking = rows.drop_columns([_SERVICE]).join(services, list(_BY_ID), join_type="left outer")
    return lacking.select(rows.column_names)


def fold(rows: pyarrow.Table) -> pyarrow.Table:
    """Return the episodes of observations in the columns of `EPISODES`, those of a side in the order of time.

    All observations of a conversation are there. One that has no service has that of another observation of its
    conversation and role.
    """
    rows = _fill_by_conversation(rows)
    rows = rows.sort_by([(name, "ascending") for name in _READ])
    return _episodes(rows) if len(rows) else arrow_schema(EPISODES).empty_table()


def _fill_by_conversation(rows: pyarrow.Table) -> pyarrow.Table:
    """Fill in the services that other observations of the conversation and role name: the first one by name."""
    import pyarrow
    import pyarrow.compute as pc

    if not rows[_SERVICE].null_count:
        return rows
    groups = number_groups(rows, _SIDE)
    groups_of_rows = pyarrow.table({"group": groups, _SERVICE: rows[_SERVICE]}).group_by("group")
    least = groups_of_rows.aggregate([(_SERVICE, "min")])
    of_group = least[f"{_SERVICE}_min"].combine_chunks().take(pc.index_in(groups, value_set=least["group"]))
    place = rows.column_names.index(_SERVICE)
    return rows.set_column(place, _SERVICE, pc.coalesce(rows[_SERVICE], of_group))


def _episodes(rows: pyarrow.Table) -> pyarrow.Table:
    """Return the episodes of observations that are in the order of their sides, and of time within one."""
    import pyarrow
    import pyarrow.compute as pc

    times = rows["observed_at"].combine_chunks()
    gaps = pc.subtract(times[1:], times[:-1])
    begins = pc.greater_equal(gaps, APART)
    for name in (*SIDE, *ANSWER):
        begins = pc.or_(begins, _differs(rows[name].combine_chunks()))
    starts = pyarrow.concat_arrays([pyarrow.array([True]), begins])
    first = pc.indices_nonzero(starts)
    last = pc.subtract(pyarrow.concat_arrays([first[1:], pyarrow.array([len(rows)], first.type)]), 1)
    first_rows = rows.take(first)
    columns = {name: first_rows[name] for name in EPISODES.names if name in first_rows.column_names}
    columns["first_at"], columns["last_at"] = times.take(first), times.take(last)
    columns["observations"] = pc.add(pc.subtract(last.cast("int64"), first.cast("int64")), 1)
    return pyarrow.table({name: columns[name] for name in EPISODES.names}).cast(arrow_schema(EPISODES))


def _differs(values: pyarrow.Array) -> pyarrow.Array:
    """Return for each value except the first whether it differs from the previous one. Null equals only null."""
    import pyarrow
    import pyarrow.compute as pc

    if pyarrow.types.is_string(values.type):
        values = values.dictionary_encode().indices
    now, before = values[1:], values[:-1]
    differs = pc.fill_null(pc.not_equal(now, before), False)
    return pc.or_(differs, pc.not_equal(pc.is_null(now), pc.is_null(before)))


@dataclass
class ReadTables:
    """Rows by the conversation: observations, ends of messages, and dialogs that may change a decision.

    ``unobserved`` counts the ends of messages that nobody observed, of the buckets that have been folded.
    """

    observed: BucketedRows
    messages: BucketedRows | None
    dialogs: BucketedRows | None
    unobserved: int = 0

    @classmethod
    def of(cls, tables: Mapping[str, Table], buckets: RowBuckets) -> ReadTables:
        """Read the tables. Raises InputError."""
        messages, dialogs = tables.get("messages"), tables.get("dialogs")

        def fill(name: str, rows: Iterator[pyarrow.Table]) -> BucketedRows:
            bucketed = buckets.open(name)
            for rows_of_part in rows:
                if len(rows_of_part):
                    bucketed.add(rows_of_part, _CONVERSATION)
            bucketed.close()
            return bucketed

        observed = fill("observed", read_observations(tables["observed_routing"], messages))
        return cls(
            observed,
            None if messages is None else fill("messages", _read_messages(messages)),
            None if dialogs is None else fill("dialogs", _read_dialogs(dialogs)),
        )

    def fold_all(self) -> Iterator[pyarrow.Table]:
        """Yield the episodes, those of a bucket at a time, with the columns `OWN`."""
        for bucket in range(self.observed.count):
            observed, messages, dialogs = (
                None if sorted_rows is None else sorted_rows.read(bucket)
                for sorted_rows in (self.observed, self.messages, self.dialogs)
            )
            folded = None if observed is None else fold(observed)
            if messages is not None:
                self.unobserved += _count_unobserved(messages, folded)
            if folded is not None:
                yield self._with_own(folded, messages, dialogs)

    def _with_own(
        self, episodes: pyarrow.Table, messages: pyarrow.Table | None, dialogs: pyarrow.Table | None
    ) -> pyarrow.Table:
        """Return episodes with the columns `OWN`, which come from their messages and dialogs."""
        import pyarrow
        import pyarrow.compute as pc

        texts, whole = pyarrow.string(), pyarrow.int64()
        kinds = dict(zip(OWN, (pyarrow.bool_(), texts, texts, texts, whole, whole), strict=True))
        columns = {name: pyarrow.nulls(len(episodes), kind) for name, kind in kinds.items()}
        if messages is not None:
            ends = messages.group_by(list(END)).aggregate([("own", "min")]).rename_columns([*END, "own"])
            # If there are dialogs, a message without a broker instance may get one from its dialog.
            if self.dialogs is None:
                ends = rows_where(ends, pc.is_valid(ends["own"]))
            named = ends.append_column("is_named", pyarrow.repeat(pyarrow.scalar(True), len(ends)))
            columns |= _look_up(episodes, named, ("is_named", "own"))
        if dialogs is not None:
            columns |= _look_up(episodes, dialogs, DIALOG_COLUMNS)
        for name, kind in kinds.items():
            episodes = episodes.append_column(name, columns[name].cast(kind))
        return episodes


def _read_messages(messages: Table) -> Iterator[pyarrow.Table]:
    """Read the ends of conversations that messages are of, with the lowest broker instance that one names."""
    import pyarrow

    names = (*END, "to_broker_instance")
    for rows in _read(messages, "messages", names):
        words = rows["to_broker_instance"].combine_chunks().dictionary_encode()
        named_brokers = read_brokers(words.dictionary.cast(pyarrow.string())).take(words.indices)
        ends = _clean_ends(rows).append_column("own", named_brokers)
        yield ends.group_by(list(END)).aggregate([("own", "min")]).rename_columns([*END, "own"])


def _read_dialogs(dialogs: Table) -> Iterator[pyarrow.Table]:
    import pyarrow
    import pyarrow.compute as pc

    for rows in _read(dialogs, "dialogs", (*END, *DIALOG_COLUMNS)):
        may_decide = reduce(pc.or_, (pc.is_valid(rows[name]) for name in MATTERS))
        deciding = rows_where(rows, may_decide)
        ends = _clean_ends(deciding)
        for name in DIALOG_COLUMNS:
            is_time = pyarrow.types.is_timestamp(deciding[name].type)
            ends = ends.append_column(name, micros_in(deciding[name]) if is_time else deciding[name])
        yield ends


def _read(table: Table, key: str, names: tuple[str, ...]) -> Iterator[pyarrow.Table]:
    """Yield batches of some columns of a table. Missing columns are null."""
    import pyarrow

    shape = shape_of(table, key)
    read_names = [name for name in names if name in shape]
    kinds = {field.name: field.type for field in arrow_schema(TABLES[key].optional())}
    for batch in _scan(as_dataset(table), [shape[name] for name in read_names]):
        rows = dict(zip(read_names, batch.columns, strict=True))
        columns = {name: rows[name] if name in rows else pyarrow.nulls(len(batch), kinds[name]) for name in names}
        texts = {name for name in names if kinds[name] == pyarrow.string()}
        yield pyarrow.table(
            {n: column.cast(pyarrow.string()) if n in texts else column for n, column in columns.items()}
        )


def _clean_ends(rows: pyarrow.Table) -> pyarrow.Table:
    """Return the ends of conversations in their form for comparison: the columns `END`."""
    import pyarrow

    columns = {name: rows[name] for name in END}
    columns["database_name"] = empty_as_null(rows["database_name"])
    columns[_CONVERSATION] = fold_texts(rows[_CONVERSATION])
    return pyarrow.table(columns)


def _look_up(episodes: pyarrow.Table, ends: pyarrow.Table, names: tuple[str, ...]) -> dict[str, pyarrow.Array]:
    """Join columns of the ends of conversations to episodes. Ends are unique, and missing ones are null."""
    import pyarrow

    rows = _with_plain_keys(episodes.select(END))
    rows = rows.append_column("row", pyarrow.array(range(len(rows)), pyarrow.int64()))
    joined = rows.join(_with_plain_keys(ends), list(END), join_type="left outer").sort_by("row")
    return {name: joined[name] for name in names}


def _with_plain_keys(rows: pyarrow.Table) -> pyarrow.Table:
    """Replace nulls in the ends of rows, because Arrow's joins never match nulls. Databases are never empty."""
    import pyarrow.compute as pc

    database = pc.fill_null(rows["database_name"], "")
    role = pc.fill_null(rows["is_initiator"].cast("int8"), 2)
    rows = rows.set_column(rows.column_names.index("database_name"), "database_name", database)
    return rows.set_column(rows.column_names.index("is_initiator"), "is_initiator", role)


def _count_unobserved(messages: pyarrow.Table, episodes: pyarrow.Table | None) -> int:
    ends = messages.group_by(list(_SIDE)).aggregate([])
    return len(ends if episodes is None else ends.join(episodes.select(_SIDE), list(_SIDE), join_type="left anti"))
