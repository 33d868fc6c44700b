"""`TrafficTable` with Arrow: few passes over few columns, and no Python object for a row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from routing.engines.traffic_tables import (
    SENT_KEY,
    BalancedDialogs,
    BalancedTarget,
    RouteUse,
    SentKey,
    TimePoint,
    TimeSpans,
    TrafficTable,
)
from routing.schemas import TABLES, ColumnKind
from routing.tables.arrow_forms import fold_texts, read_brokers, split_attempts
from routing.tables.arrow_rows import micros_in, plain_values, values_of, with_readable_texts
from routing.tables.dataset_rows import DatasetRows, all_of, as_measured, in_order, type_measured
from routing.tables.encoded_texts import (
    WAITING,
    GroupSums,
    TextNumbering,
    TextPlaces,
    decoded,
)
from routing.tables.row_faults import read_where, repeated_values, suspicion
from routing.tables.table_columns import (
    ALL,
    COUNT,
    FILE,
    Filter,
    TableColumns,
    as_dataset,
    in_files,
    rows_where,
    shape_of,
)
from routing.terms import MSDB, MatchingStep, ReadRow

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

_TIMES = ("observed_at", "enqueue_time")
_USE = ("instance_name", "database_name", "rerouted_from")
_GROUP = ("instance_name", "database_name", "far_service", "conversation_group_id")
_BINDING = ("far_broker_instance", "acknowledged_broker_instance", "acknowledged_at")


@dataclass(frozen=True)
class ArrowTraffic:
    """The rows of a dataset in the columns ``names``. ``source`` is the original table."""

    source: Any
    stored: DatasetRows
    names: Sequence[str]

    @classmethod
    def of(cls, table: Any, key: str | None = None, rows_waiting: int = WAITING) -> ArrowTraffic:
        """Open a table in the declared columns of table ``key``. Raises InputError.

        ``rows_waiting`` rows are collected before they are added to groups.
        """
        dataset = as_dataset(table)
        names = dataset.schema.names if key is None else TABLES[key].names
        shape = dict(zip(names, names, strict=True)) if key is None else shape_of(dataset, key)
        return cls(table, DatasetRows(dataset, shape, rows_waiting=rows_waiting), names)

    def rows(
        self,
        names: Sequence[str] | None = None,
        *,
        only: Filter = ALL,
        same: ReadRow = ALL,
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> TableColumns:
        """Return the first rows in an order, ascending and with nulls last, in some columns (None: all).

        Each row has the values in ``same``, where null equals empty text. Text that is not UTF-8 is compared in
        its readable form. If the order begins with a time, few other rows are read completely.
        """
        columns = self.names if names is None else names
        if not same:
            return _columns(self.stored.first(columns, only, order, limit), columns)
        table = self.stored.first((*columns, *same), only)
        table = rows_where(table, _are_same(with_readable_texts(table), same))
        return _columns(in_order(table, order)[:limit], columns)

    def count(self, present: Sequence[str] = ()) -> int:
        """Count the rows with a value in each of some columns."""
        return self.stored.count(present)

    def groups(
        self,
        by: Sequence[str],
        *,
        least: Sequence[str] = (),
        most: Sequence[str] = (),
        varying: str | None = None,
        only: Filter = ALL,
    ) -> ArrowTraffic:
        """Group the rows by some columns, and count the rows of each group (`COUNT`) in memory.

        Each group also has the minimum of the columns in ``least`` (as ``min_NAME``) and the maximum of those in
        ``most`` (as ``max_NAME``). With ``varying``, only groups with different values in this column are
        returned.
        """
        counted = self.stored.count_groups(by, least=least, most=most, varying=varying, only=only)
        return ArrowTraffic.of(counted)

    def last_attempts(self, names: Sequence[str]) -> ArrowTraffic:
        """Return resolved messages, with the rows that a later attempt replaced marked.

        ``names`` has all columns that later operations need.
        """
        return replace(self, stored=replace(self.stored, attempts=split_attempts(self.stored.dataset, names)))

    def matching(
        self,
        keys: TrafficTable | TableColumns,
        on: Sequence[str],
        *,
        names: Sequence[str],
        only: Filter = ALL,
    ) -> ArrowTraffic:
        """Read the columns ``names`` of the rows that match a row of ``keys`` in the columns ``on``.

        Times are compared as numbers.
        """
        key_table = self._keys_of(keys, on)
        texts = {name: key_table[name].unique() for name in on if self.stored.is_text(name) and name not in only}
        table = _times_as_numbers(self.stored.first([*names, *on], {**only, **texts}), on)
        return ArrowTraffic.of(table.join(key_table, list(on), join_type="left semi").select(list(names)))

    def _keys_of(self, keys: TrafficTable | TableColumns, on: Sequence[str]) -> pyarrow.Table:
        import pyarrow

        kinds = {name: type_measured(self.stored.type_of(name)) for name in on}
        if isinstance(keys, ArrowTraffic):
            table = _times_as_numbers(keys.stored.first(on), on)
            return table.select(list(on)).cast(pyarrow.schema(kinds))
        columns = keys if isinstance(keys, TableColumns) else keys.rows(on)
        return pyarrow.table({name: pyarrow.array(columns.values[name], kind) for name, kind in kinds.items()})

    def folded(
        self, name: str, wanted: Collection[str], *, only: Filter = ALL, names: Sequence[str] | None = None
    ) -> ArrowTraffic:
        """Read the few rows with one of some folded texts in a column, ignoring the case of A to Z."""
        import pyarrow
        import pyarrow.compute as pc

        if name in self.stored.shape:
            texts = pyarrow.array(sorted(wanted), pyarrow.string())
            text = fold_texts(pc.field(self.stored.shape[name]))
            is_wanted = text == texts[0] if len(texts) == 1 else text.isin(texts)
        else:
            is_wanted = pc.scalar(False)
        columns = self.names if names is None else names
        condition = all_of([is_wanted, self.stored.condition(only)])
        table = self.stored.where(condition, columns)
        shape = {name: name for name in table.column_names}
        return replace(self, stored=replace(self.stored, dataset=as_dataset(table), shape=shape), names=columns)

    def in_asking_order(self, only: Filter, as_of: int | None, sizes: Iterator[int]) -> Iterator[TableColumns]:
        """Yield messages in parts, ordered by (t, message_id) with t as their time or ``as_of``.

        Messages without a time are left out. The next value of ``sizes`` is the number of rows of a part. A part
        ends after all messages with the same t as its last one, or the same id if all have one t. Duplicates in
        all columns that decide a message may be missing at its end. The positions of all messages are read first,
        other columns with each part.
        """
        import pyarrow.compute as pc

        stored = self.stored
        condition = stored.condition(only)
        by = [name for name in (_TIMES if as_of is None else ("message_id",)) if name in stored.shape]
        rows = stored.dataset.to_table(columns=[*(stored.shape[name] for name in by), FILE], filter=condition)
        places = _places(rows, [stored.shape[name] for name in by])
        ordered = pc.drop_null(pc.take(places, pc.sort_indices(places)))
        begin = 0
        while begin < len(ordered):
            first = ordered[begin]
            last = ordered[min(begin + next(sizes), len(ordered)) - 1]
            files = rows_where(rows[FILE], _is_between(places, first, last)).unique().to_pylist()
            part = in_files(stored.dataset, files).to_table(columns=stored.fields(self.names), filter=condition)
            yield _columns(rows_where(part, _is_between(_places(part, by), first, last)), self.names)
            begin = pc.sum(pc.less_equal(ordered, last)).as_py()

    def doubtful_rows(self, key: str, now: int) -> TableColumns:
        """Return the rows of dialogs or route_requests (``key``) that lint may have findings for at a time.

        These lack a value, may share their key, have text that is not UTF-8, or share a conversation group with a
        dialog of another broker instance. A few other rows may be among them. Keys and groups are counted first,
        so that usually no row is read completely.
        """
        import pyarrow.compute as pc

        condition = suspicion(self.stored.dataset, key, self.stored.shape)
        if key == "dialogs" and set(_GROUP) <= set(self.stored.shape):
            condition |= pc.field(self.stored.shape[_GROUP[-1]]).isin(self._split_groups(now))
        return read_where(self.stored.dataset, key, self.stored.shape, condition)

    def _split_groups(self, now: int) -> Any:
        """Return the ids of groups whose dialogs to one service are bound to different broker instances."""
        import pyarrow.compute as pc

        fields = self.stored.fields((*_GROUP, "is_initiator", *_BINDING))
        is_in_group = all_of([fields[name] != "" for name in _GROUP[2:]])
        dialogs = self.stored.dataset.to_table(columns=fields, filter=is_in_group)
        dialogs = with_readable_texts(rows_where(dialogs, dialogs["is_initiator"]))
        brokers = _bound_brokers(dialogs, now)
        dialogs = rows_where(dialogs.select(_GROUP).append_column("broker", brokers), pc.is_valid(brokers))
        distinct = dialogs.group_by(dialogs.column_names).aggregate([])
        return repeated_values(distinct, _GROUP)[_GROUP[-1]].unique()

    def route_uses(self) -> Iterable[RouteUse]:
        """Return the distinct routes that resolved messages took or might have taken, with their places."""
        import pyarrow
        import pyarrow.compute as pc

        names = (*_USE, "route_name")
        numbers = {name: TextNumbering() for name in names}
        uses = GroupSums(names, {}, self.stored.rows_waiting)
        for _, part in self.stored.parts((*names, "alternative_routes"), numbered=names):
            columns = {name: numbers[name].number(part[name]) for name in names}
            uses.add(pyarrow.table(columns))
            alternatives = part["alternative_routes"]
            if alternatives.null_count < len(alternatives):
                of_row = pc.list_parent_indices(alternatives)
                alternative_numbers = numbers["route_name"].number(
                    pc.struct_field(pc.list_flatten(alternatives), "route_name")
                )
                uses.add(
                    pyarrow.table(
                        {**{name: columns[name].take(of_row) for name in _USE}, "route_name": alternative_numbers}
                    )
                )
        groups = uses.all()
        texts = {name: numbering.texts.take(groups[name].cast("int64")) for name, numbering in numbers.items()}
        return map(RouteUse._make, _columns(pyarrow.table(texts), names).rows(*names))

    def points(
        self,
        step: int,
        services: Sequence[tuple[str, str]],
        instances: Sequence[str],
        endings: Mapping[SentKey, str],
    ) -> Iterator[TimePoint]:
        """Count the resolved messages of each time step, in steps of ``step`` microseconds.

        The ``services`` (each with its instance), ``instances`` and ``endings`` are counted separately. All others
        are None. Texts are numbers until all rows are read.
        """
        import pyarrow
        import pyarrow.compute as pc

        service_places, instance_places = TextPlaces(services), TextPlaces([(name,) for name in instances])
        keys = TextPlaces([(*key[:-1], str(key.is_initiator).lower()) for key in endings])
        ending_words = sorted(set(endings.values()))
        ending_numbers = pyarrow.array([ending_words.index(word) for word in endings.values()], pyarrow.int8())
        outcomes = TextNumbering()
        sums = GroupSums(
            ("at", "instance", "service", "outcome", "ending"), {COUNT: "sum"}, self.stored.rows_waiting
        )
        names = ("instance_name", "to_service_name", "outcome")
        # Without known endings their columns are not read.
        texts, read = (SENT_KEY[:-1], SENT_KEY) if endings else (names, names)
        for weight, part in self.stored.parts((*read, "decided_at"), numbered=texts, has_replaced=True):
            columns = {
                "at": _floor(micros_in(part["decided_at"]), step),
                "instance": instance_places.find([part["instance_name"]]),
                "service": service_places.find([part[name] for name in names[:2]]),
                "outcome": outcomes.number(part["outcome"]),
                "ending": pyarrow.nulls(len(part), pyarrow.int8()),
            }
            if endings:
                is_initiator = pc.cast(part["is_initiator"], pyarrow.string())
                places = keys.find([*(part[name] for name in SENT_KEY[:-1]), is_initiator])
                columns["ending"] = ending_numbers.take(places)
            sums.add(pyarrow.table({**columns, COUNT: pyarrow.repeat(weight, len(part))}))
        groups, words = sums.all().to_pydict(), plain_values(outcomes.texts)
        for at, instance, service, outcome, ending, messages in zip(*groups.values(), strict=True):
            if messages:
                yield TimePoint(
                    at,
                    None if instance is None else instances[instance],
                    None if service is None else services[service][1],
                    words[outcome],
                    messages,
                    None if ending is None else ending_words[ending],
                )

    def balanced_dialogs(self, spans: TimeSpans) -> BalancedDialogs:
        """Count the dialogs that were balanced to each broker instance in the time spans."""
        import pyarrow
        import pyarrow.compute as pc

        if not spans:
            return {}
        scopes, brokers, names = TextPlaces(list(spans)), TextNumbering(), list(spans)
        limits = [pyarrow.array(limit, pyarrow.int64()) for limit in zip(*spans.values(), strict=True)]
        dialogs = GroupSums(("scope", "broker", "dialog"), {}, self.stored.rows_waiting)
        key_columns = ("instance_name", "database_name", "to_service_name", "broker_instance", "rerouted_from")
        read = (*key_columns, "conversation_id", "decided_at")
        balanced = {"matching_step": [int(MatchingStep.BALANCED)]}
        for _, part in self.stored.parts(read, balanced, key_columns):
            places = scopes.find([part["instance_name"], _searched(part), part["to_service_name"]])
            counts = pc.and_(pc.is_valid(places), _is_within(part, *(limit.take(places) for limit in limits)))
            columns = {"scope": places, "broker": brokers.number(part["broker_instance"])}
            dialogs.add(rows_where(pyarrow.table({**columns, "dialog": part["conversation_id"]}), counts))
        groups = dialogs.all().group_by(["scope", "broker"]).aggregate([("dialog", "count")]).to_pydict()
        words = plain_values(brokers.texts)
        counted = dict[BalancedTarget, int]()
        for scope, broker, count in zip(*groups.values(), strict=True):
            instance, database, service = names[scope]
            # Step 3 always picks a broker instance, so no row of a run has null here.
            named: Any = None if broker is None else words[broker]
            counted[BalancedTarget(instance, database, service, named)] = count
        return counted


def _times_as_numbers(table: pyarrow.Table, names: Iterable[str]) -> pyarrow.Table:
    for name in names:
        table = table.set_column(table.column_names.index(name), name, as_measured(table[name]))
    return table


def _columns(table: pyarrow.Table, names: Sequence[str]) -> TableColumns:
    """Return some columns of a table. Columns that it lacks are null."""
    present = set(table.column_names)
    return TableColumns({name: _plain(table[name]) if name in present else [None] * len(table) for name in names})


def _plain(column: pyarrow.ChunkedArray) -> list[Any]:
    """Return the plain values of a column. Times are microseconds since 1970."""
    import pyarrow

    if pyarrow.types.is_timestamp(column.type):
        return values_of(column, ColumnKind.TIMESTAMP)
    return values_of(column, ColumnKind.STRING) if pyarrow.types.is_string(column.type) else plain_values(column)


def _are_same(table: pyarrow.Table, same: ReadRow) -> pyarrow.Array:
    """Return a mask of the rows with some values, where null equals empty text."""
    import pyarrow
    import pyarrow.compute as pc

    masks = [pyarrow.repeat(pyarrow.scalar(True), len(table))]
    for name, value in same.items():
        column = table[name].combine_chunks() if name in table.column_names else pyarrow.nulls(len(table))
        if pyarrow.types.is_string(column.type):
            masks.append(pc.equal(pc.fill_null(column, ""), value or ""))
        else:
            masks.append(column.is_null() if value is None else pc.fill_null(pc.equal(column, value), False))
    return reduce(pc.and_, masks)


def _places(rows: Any, by: Sequence[str]) -> Any:
    """Return the positions of messages: their times in microseconds, or their ids."""
    import pyarrow.compute as pc

    return pc.coalesce(*(as_measured(rows[name]) for name in by))


def _is_between(places: Any, first: Any, last: Any) -> Any:
    import pyarrow.compute as pc

    return pc.and_(pc.greater_equal(places, first), pc.less_equal(places, last))


def _bound_brokers(dialogs: pyarrow.Table, now: int) -> pyarrow.Array:
    """Return the broker instance of each dialog: from its acknowledgement, or the one it names."""
    import pyarrow
    import pyarrow.compute as pc

    far, acknowledged, at = (
        dialogs[name].combine_chunks() if name in dialogs.column_names else pyarrow.nulls(len(dialogs), kind)
        for name, kind in zip(_BINDING, (pyarrow.string(), pyarrow.string(), pyarrow.int64()), strict=True)
    )
    is_acknowledged = pc.less_equal(as_measured(at), now)
    return pc.coalesce(pc.if_else(is_acknowledged, read_brokers(acknowledged), None), read_brokers(far))


def _floor(times: pyarrow.Array, step: int) -> pyarrow.Array:
    """Return the start of each time's step, also for times before 1970."""
    import pyarrow.compute as pc

    # Integer division rounds towards zero.
    toward_zero = pc.multiply(pc.divide(times, step), step)
    return pc.if_else(pc.greater(toward_zero, times), pc.subtract(toward_zero, step), toward_zero)


def _searched(part: pyarrow.RecordBatch) -> pyarrow.Array:
    """Return the database with the searched routes. It is msdb for messages that arrived or came back."""
    import pyarrow
    import pyarrow.compute as pc

    is_back = pc.is_valid(decoded(part["rerouted_from"]))
    return pc.if_else(is_back, MSDB, pc.coalesce(decoded(part["database_name"]), pyarrow.scalar(MSDB)))


def _is_within(part: pyarrow.RecordBatch, since: pyarrow.Array, until: pyarrow.Array) -> pyarrow.Array:
    """Return a mask of the rows decided between their own two times. Null means no limit."""
    import pyarrow.compute as pc

    decided = micros_in(part["decided_at"])
    is_begun = pc.greater_equal(decided, since).fill_null(True)
    return pc.and_(is_begun, pc.less(decided, until).fill_null(True))
