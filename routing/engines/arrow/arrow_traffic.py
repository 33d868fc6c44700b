"""`TrafficTable` by Arrow: few passes over few columns of tables and files, and no object of Python for a row.

Times are compared once they are read where a file's statistics might mislead: what Delta's log says of a file's
times is in milliseconds.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from routing.engines.traffic_tables import (
    ALL,
    COUNT,
    BalancedDialogs,
    BalancedTarget,
    CountedMessages,
    Filter,
    RouteUse,
    TimeSpans,
    TrafficTable,
)
from routing.schemas import TABLES, ColumnKind
from routing.tables.arrow_forms import Attempts, fold_texts, read_brokers, split_attempts, without
from routing.tables.arrow_rows import micros_in, plain_values, values_of, with_readable_texts
from routing.tables.encoded_texts import (
    WAITING,
    GroupSums,
    TextNumbering,
    TextPlaces,
    array_of,
    decoded,
    encoded,
    is_one_of,
)
from routing.tables.row_faults import read_where, repeated_values, suspicion
from routing.tables.table_columns import (
    FILE,
    TableColumns,
    as_dataset,
    in_files,
    in_files_with,
    rows_where,
    shape_of,
)
from routing.terms import MSDB, MatchingStep, ReadRow, TableRow

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

# Texts that most rows have for themselves: to number them takes longer than to read them.
_IDS = frozenset(("message_id", "conversation_id", "conversation_handle", "conversation_group_id"))
_TIMES = ("observed_at", "enqueue_time")
_USE = ("instance_name", "database_name", "rerouted_from")
_GROUP = ("instance_name", "database_name", "far_service", "conversation_group_id")
_BINDING = ("far_broker_instance", "acknowledged_broker_instance", "acknowledged_at")


@dataclass(frozen=True)
class ArrowTraffic:
    """The rows of a dataset; ``source`` is what they were made of.

    ``shape``: its columns, each with its name in the dataset; ``names``: those that it is to have. ``attempts``:
    which rows later attempts have replaced, None where there is none or these count too. ``rows_waiting`` rows
    wait before they are added up to groups.
    """

    source: Any
    dataset: pyarrow.dataset.Dataset
    shape: Mapping[str, str]
    names: Sequence[str]
    attempts: Attempts | None = None
    rows_waiting: int = WAITING

    @classmethod
    def of(cls, table: Any, key: str | None = None) -> ArrowTraffic:
        """Return the rows of a table, in the declared columns of table ``key``. Raises InputError."""
        dataset = as_dataset(table)
        if key is None:
            return cls(table, dataset, {name: name for name in dataset.schema.names}, dataset.schema.names)
        return cls(table, dataset, shape_of(dataset, key), TABLES[key].names)

    def rows(
        self,
        names: Sequence[str] | None = None,
        *,
        only: Filter = ALL,
        same: ReadRow = ALL,
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> TableColumns:
        """Return the first rows in an order; of many rows only those are read whole that may be among them."""
        wanted = self.names if names is None else names
        if not same:
            return self._columns(self._first_rows(wanted, only, order, limit), wanted)
        table = self._first_rows((*wanted, *same), only)
        table = rows_where(table, _are_same(with_readable_texts(table), same))
        return self._columns(_in_order(table, order)[:limit], wanted)

    def count(self, present: Sequence[str] = ()) -> int:
        """Return how many rows have a value in each of some columns."""
        import pyarrow.compute as pc

        if any(name not in self.shape for name in present):
            return 0
        condition = _all_of([pc.field(self.shape[name]).is_valid() for name in present])
        replaced = 0 if self.attempts is None else as_dataset(self.attempts.replaced).count_rows(filter=condition)
        return int(self.dataset.count_rows(filter=condition)) - replaced

    def groups(
        self,
        by: Sequence[str],
        *,
        least: Sequence[str] = (),
        most: Sequence[str] = (),
        varying: str | None = None,
        only: Filter = ALL,
    ) -> ArrowTraffic:
        """Return how many rows each group has, in memory; texts are numbers until all rows are read."""
        import pyarrow
        import pyarrow.compute as pc

        measures = {f"min_{name}": (name, "min") for name in least} | {
            f"max_{name}": (name, "max") for name in most
        }
        if varying is not None:
            measures |= {"_least": (varying, "min"), "_most": (varying, "max")}
        present = [name for name in by if name in self.shape]
        numbers = {name: TextNumbering() for name in present if self._is_text(name) and name not in _IDS}
        sums = GroupSums(
            present, {COUNT: "sum", **{name: how for name, (_, how) in measures.items()}}, self.rows_waiting
        )
        # What is least or greatest of some rows is not told by those that are not there.
        has_replaced = not measures
        names = dict.fromkeys((*present, *(name for name, _ in measures.values())))
        for weight, part in self._parts(names, only, numbers, has_replaced=has_replaced):
            columns = {
                name: numbers[name].number(part[name]) if name in numbers else part[name] for name in present
            }
            columns |= {name: _as_measured(part[of]) for name, (of, _) in measures.items()}
            sums.add(pyarrow.table({**columns, COUNT: pyarrow.repeat(weight, len(part))}))
        groups = sums.all()
        columns = {name: pyarrow.nulls(len(groups), pyarrow.string()) for name in by}
        columns |= {name: groups[name].cast(self._type_of(name)) for name in present if name not in numbers}
        columns |= {name: numbering.texts.take(groups[name].cast("int64")) for name, numbering in numbers.items()}
        columns[COUNT] = groups[COUNT].cast("int64")
        columns |= {
            name: groups[name].cast(_type_measured(self._type_of(of))) for name, (of, _) in measures.items()
        }
        table = pyarrow.table(columns)
        if self.attempts is not None and has_replaced:
            table = rows_where(table, pc.greater(table[COUNT], 0))
        if varying is not None:
            table = rows_where(table, pc.not_equal(table["_least"], table["_most"]))
            table = table.drop_columns(["_least", "_most"])
        return ArrowTraffic.of(table)

    def last_attempts(self, names: Sequence[str]) -> ArrowTraffic:
        """Return the rows, and know which of them do not count."""
        return replace(self, attempts=split_attempts(self.dataset, names))

    def matching(
        self,
        keys: TrafficTable | TableColumns,
        on: Sequence[str],
        *,
        names: Sequence[str],
        only: Filter = ALL,
    ) -> ArrowTraffic:
        """Return the rows that have a key, read as a whole; times are compared as numbers."""
        wanted = self._keys_of(keys, on)
        texts = {name: wanted[name].unique() for name in on if self._is_text(name) and name not in only}
        table = _times_as_numbers(self._first_rows([*names, *on], {**only, **texts}), on)
        return ArrowTraffic.of(table.join(wanted, list(on), join_type="left semi").select(list(names)))

    def _keys_of(self, keys: TrafficTable | TableColumns, on: Sequence[str]) -> pyarrow.Table:
        import pyarrow

        kinds = {name: _type_measured(self._type_of(name)) for name in on}
        if isinstance(keys, ArrowTraffic):
            table = _times_as_numbers(keys._first_rows(on), on)
            return table.select(list(on)).cast(pyarrow.schema(kinds))
        columns = keys if isinstance(keys, TableColumns) else keys.rows(on)
        return pyarrow.table({name: pyarrow.array(columns.values[name], kind) for name, kind in kinds.items()})

    def folded(
        self, name: str, wanted: Collection[str], *, only: Filter = ALL, names: Sequence[str] | None = None
    ) -> ArrowTraffic:
        """Return the rows of which a text is one of some, folded: read as a whole."""
        import pyarrow
        import pyarrow.compute as pc

        if name in self.shape:
            texts = pyarrow.array(sorted(wanted), pyarrow.string())
            text = fold_texts(pc.field(self.shape[name]))
            is_wanted = text == texts[0] if len(texts) == 1 else text.isin(texts)
        else:
            is_wanted = pc.scalar(False)
        columns = self.names if names is None else names
        condition = _all_of([is_wanted, self._condition(only)])
        rows, _ = self._find_rows(condition)
        table = rows.dataset.to_table(columns=self._fields(columns), filter=condition)
        return replace(self, dataset=as_dataset(table), shape={n: n for n in table.column_names}, names=columns)

    def in_asking_order(self, only: Filter, as_of: int | None, sizes: Iterator[int]) -> Iterator[TableColumns]:
        """Yield messages in parts: the places of all are read first, the rest of a message with its part.

        A part ends with all that have the last one's t (its id, where t is one for all).
        """
        import pyarrow.compute as pc

        condition = self._condition(only)
        by = [name for name in (_TIMES if as_of is None else ("message_id",)) if name in self.shape]
        rows = self.dataset.to_table(columns=[*(self.shape[name] for name in by), FILE], filter=condition)
        places = _places(rows, [self.shape[name] for name in by])
        ordered = pc.drop_null(pc.take(places, pc.sort_indices(places)))
        begin = 0
        while begin < len(ordered):
            first = ordered[begin]
            last = ordered[min(begin + next(sizes), len(ordered)) - 1]
            files = rows_where(rows[FILE], _is_between(places, first, last)).unique().to_pylist()
            part = in_files(self.dataset, files).to_table(columns=self._fields(self.names), filter=condition)
            yield self._columns(rows_where(part, _is_between(_places(part, by), first, last)), self.names)
            begin = pc.sum(pc.less_equal(ordered, last)).as_py()

    def doubtful_rows(self, key: str, now: int) -> TableColumns:
        """Return rows that lack a value, may share their key or are no UTF-8; of dialogs those of torn groups too.

        What rows have in common is counted first; then those that matter are read, which are mostly none.
        """
        import pyarrow.compute as pc

        condition = suspicion(self.dataset, key, self.shape)
        if key == "dialogs" and set(_GROUP) <= set(self.shape):
            condition |= pc.field(self.shape[_GROUP[-1]]).isin(self._torn_groups(now))
        return read_where(self.dataset, key, condition)

    def _torn_groups(self, now: int) -> Any:
        """Return the ids of conversation groups of which dialogs to one service are bound to different brokers."""
        import pyarrow.compute as pc

        fields = self._fields((*_GROUP, "is_initiator", *_BINDING))
        is_in_group = _all_of([fields[name] != "" for name in _GROUP[2:]])
        dialogs = self.dataset.to_table(columns=fields, filter=is_in_group)
        dialogs = with_readable_texts(rows_where(dialogs, dialogs["is_initiator"]))
        brokers = _bound_brokers(dialogs, now)
        dialogs = rows_where(dialogs.select(_GROUP).append_column("broker", brokers), pc.is_valid(brokers))
        distinct = dialogs.group_by(dialogs.column_names).aggregate([])
        return repeated_values(distinct, _GROUP)[_GROUP[-1]].unique()

    def route_uses(self) -> Iterable[RouteUse]:
        """Return the distinct routes of messages: of many rows few are different."""
        import pyarrow
        import pyarrow.compute as pc

        names = (*_USE, "route_name")
        numbers = {name: TextNumbering() for name in names}
        uses = GroupSums(names, {}, self.rows_waiting)
        for _, part in self._parts((*names, "alternative_routes"), numbered=names):
            columns = {name: numbers[name].number(part[name]) for name in names}
            uses.add(pyarrow.table(columns))
            others = part["alternative_routes"]
            if others.null_count < len(others):
                of_row = pc.list_parent_indices(others)
                other = numbers["route_name"].number(pc.struct_field(pc.list_flatten(others), "route_name"))
                uses.add(
                    pyarrow.table({**{name: columns[name].take(of_row) for name in _USE}, "route_name": other})
                )
        groups = uses.all()
        texts = {name: numbering.texts.take(groups[name].cast("int64")) for name, numbering in numbers.items()}
        return map(RouteUse._make, self._columns(pyarrow.table(texts), names).rows(*names))

    def points(
        self, step: int, services: Sequence[tuple[str, str]], instances: Sequence[str]
    ) -> Iterator[CountedMessages]:
        """Yield how many messages were decided in each step; texts are numbers until all rows are read."""
        import pyarrow

        service_places, instance_places = TextPlaces(services), TextPlaces([(name,) for name in instances])
        outcomes = TextNumbering()
        sums = GroupSums(("at", "instance", "service", "outcome"), {COUNT: "sum"}, self.rows_waiting)
        names = ("instance_name", "to_service_name", "outcome")
        for weight, part in self._parts((*names, "decided_at"), numbered=names, has_replaced=True):
            columns = {
                "at": _floor(micros_in(part["decided_at"]), step),
                "instance": instance_places.find([part["instance_name"]]),
                "service": service_places.find([part[name] for name in names[:2]]),
                "outcome": outcomes.number(part["outcome"]),
            }
            sums.add(pyarrow.table({**columns, COUNT: pyarrow.repeat(weight, len(part))}))
        groups, words = sums.all().to_pydict(), plain_values(outcomes.texts)
        for at, instance, service, outcome, messages in zip(*groups.values(), strict=True):
            if messages:
                yield CountedMessages(
                    at,
                    None if instance is None else instances[instance],
                    None if service is None else services[service][1],
                    words[outcome],
                    messages,
                )

    def balanced_dialogs(self, spans: TimeSpans) -> BalancedDialogs:
        """Return how many dialogs were balanced to each broker instance."""
        import pyarrow
        import pyarrow.compute as pc

        if not spans:
            return {}
        scopes, brokers, names = TextPlaces(list(spans)), TextNumbering(), list(spans)
        limits = [pyarrow.array(limit, pyarrow.int64()) for limit in zip(*spans.values(), strict=True)]
        dialogs = GroupSums(("scope", "broker", "dialog"), {}, self.rows_waiting)
        few = ("instance_name", "database_name", "to_service_name", "broker_instance", "rerouted_from")
        read = (*few, "conversation_id", "decided_at")
        balanced = {"matching_step": [int(MatchingStep.BALANCED)]}
        for _, part in self._parts(read, balanced, few):
            places = scopes.find([part["instance_name"], _searched(part), part["to_service_name"]])
            counts = pc.and_(pc.is_valid(places), _is_within(part, *(limit.take(places) for limit in limits)))
            columns = {"scope": places, "broker": brokers.number(part["broker_instance"])}
            dialogs.add(rows_where(pyarrow.table({**columns, "dialog": part["conversation_id"]}), counts))
        groups = dialogs.all().group_by(["scope", "broker"]).aggregate([("dialog", "count")]).to_pydict()
        words = plain_values(brokers.texts)
        counted = dict[BalancedTarget, int]()
        for scope, broker, count in zip(*groups.values(), strict=True):
            instance, database, service = names[scope]
            # Step 3 picks an id, so that none is null in what a run has written.
            named: Any = None if broker is None else words[broker]
            counted[BalancedTarget(instance, database, service, named)] = count
        return counted

    def _type_of(self, name: str) -> pyarrow.DataType:
        return self.dataset.schema.field(self.shape[name]).type

    def _is_text(self, name: str) -> bool:
        import pyarrow

        return name in self.shape and pyarrow.types.is_string(self._type_of(name))

    def _fields(self, names: Iterable[str]) -> TableRow:
        """Return columns as expressions, without those that the dataset lacks."""
        import pyarrow.compute as pc

        return {name: pc.field(self.shape[name]) for name in dict.fromkeys(names) if name in self.shape}

    def _columns(self, table: pyarrow.Table, names: Sequence[str]) -> TableColumns:
        """Return a table in some columns, each with its name here; those that are not there are null."""
        present = set(table.column_names)
        return TableColumns(
            {name: _plain(table[name]) if name in present else [None] * len(table) for name in names}
        )

    def _condition(self, only: Filter) -> Any:
        """Return the condition that each row has one of some values, by column; None where all rows do."""
        import pyarrow.compute as pc

        conditions = []
        for name, values in only.items():
            if name not in self.shape:
                conditions += [] if values is None else [pc.scalar(False)]
            elif values is None:
                conditions.append(pc.field(self.shape[name]).is_null())
            else:
                # One value is sooner compared than looked up.
                wanted, field = array_of(values, self._type_of(name)), pc.field(self.shape[name])
                conditions.append(field == wanted[0] if len(wanted) == 1 else field.isin(wanted))
        return _all_of(conditions)

    def _find_rows(self, condition: Any, *, counts: bool = False) -> tuple[ArrowTraffic, int]:
        """Return the files that have rows for which a condition holds, and with ``counts`` how many these are.

        Arrow reads every column of all files that may have such rows; so the condition's own are read first.
        """
        rows = self.dataset
        if condition is None:
            return self, rows.count_rows() if counts else 0
        if not counts and len(getattr(rows, "files", ())) < 2:
            return self, 0
        batches = rows.scanner(columns=[], filter=condition).scan_batches()
        counted: Counter[str] = Counter()
        for batch in batches:
            counted[getattr(batch.fragment, "path", "")] += len(batch.record_batch)
        return replace(self, dataset=in_files(rows, +counted)), counted.total()

    def _first_rows(
        self, names: Sequence[str], only: Filter = ALL, order: Sequence[str] = (), limit: int | None = None
    ) -> pyarrow.Table:
        """Return the first rows in an order, in some columns and those of the order."""
        condition, replaced = self._condition(only), None if self.attempts is None else self.attempts.replaced
        rows, count = self._find_rows(condition, counts=limit is not None)
        if limit is not None and count > limit:
            condition = _all_of([condition, rows._is_among_first(only, order, limit)])
            rows, _ = rows._find_rows(condition)
        read = (*names, *order, *(() if replaced is None else replaced.column_names))
        table = rows.dataset.to_table(columns=self._fields(read), filter=condition)
        if replaced is not None:
            table = without(table, replaced)
        return _in_order(table, order)[:limit]

    def _is_among_first(self, only: Filter, order: Sequence[str], limit: int) -> Any:
        """Return a condition that holds for the first rows in an order, and for few others.

        What an order begins with are texts that many rows have in common, which are counted, and a time.
        """
        import pyarrow
        import pyarrow.compute as pc

        texts = tuple(takewhile(lambda name: self._is_text(name) and name not in _IDS, order))
        before, within, wanted = None, self._condition(only), limit
        if texts:
            group, wanted = self._find_last_group(texts, only, limit)
            if group is None:
                return None
            before, of_group = self._is_below(texts, group), self._is_group(texts, group)
            within = of_group if within is None else within & of_group
        time = order[len(texts)] if len(order) > len(texts) else None
        if time is not None and time in self.shape and pyarrow.types.is_timestamp(self._type_of(time)):
            # A replaced row may be older than those that count.
            last = self._find_time(time, within, wanted + (len(self.attempts.replaced) if self.attempts else 0))
            within = _all_of([within, None if last is None else pc.field(self.shape[time]) <= last])
        return within if before is None or within is None else before | within

    def _find_last_group(
        self, texts: Sequence[str], only: Filter, limit: int
    ) -> tuple[tuple[Any, ...] | None, int]:
        """Return the group in which a list of so many rows ends, and how many of its rows are wanted."""
        import pyarrow.compute as pc

        # There are fewer of the first texts alone, and of the others only those that go with them.
        for names in dict.fromkeys((texts[:1], texts)):
            groups = _in_order(self.groups(names, only=only).dataset.to_table(), names)
            ends = pc.cumulative_sum(groups[COUNT])
            place = pc.sum(pc.less(ends, limit)).as_py() or 0
            if place == len(groups):
                return None, limit
            first = groups[names[0]][: place + 1]
            only = only if first.null_count else {**only, names[0]: first.unique()}
        before = ends[place - 1].as_py() if place else 0
        return tuple(groups[name][place] for name in texts), limit - before

    def _find_time(self, name: str, condition: Any, wanted: int) -> Any:
        """Return the time up to which there are as many rows as are wanted; None where there are no more."""
        import pyarrow.compute as pc

        column = self.dataset.to_table(columns=self._fields([name]), filter=condition)[name].combine_chunks()
        if len(column) <= wanted:
            return None
        last = column[pc.partition_nth_indices(column, pivot=wanted - 1)[wanted - 1].as_py()]
        return last if last.is_valid else None

    def _is_group(self, names: Sequence[str], group: Sequence[Any]) -> Any:
        """Return the condition that a row is of a group."""
        fields = [self._fields([name])[name] for name in names]
        return _all_of([f == one if one.is_valid else f.is_null() for f, one in zip(fields, group, strict=True)])

    def _is_below(self, names: Sequence[str], group: Sequence[Any]) -> Any:
        """Return the condition that a row is of a group that comes before one; nulls come last."""
        steps = []
        for place, (name, value) in enumerate(zip(names, group, strict=True)):
            field = self._fields([name])[name]
            is_before = field < value if value.is_valid else field.is_valid()
            steps.append(_all_of([is_before, self._is_group(names[:place], group[:place])]))
        return reduce(operator.or_, steps)

    def _parts(
        self,
        names: Iterable[str],
        only: Filter = ALL,
        numbered: Collection[str] = (),
        *,
        has_replaced: bool = False,
    ) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
        """Yield some columns of the rows that ``only`` leaves, few of which are in memory at a time.

        Texts of the ``numbered`` columns, and of those of ``only``, are numbers where they are stored so. Each
        part has a weight: 1, or with ``has_replaced`` -1 for rows that do not count, which are in other parts too.
        """
        fields = self._fields((*names, *only))
        if any(name not in self.shape and values is not None for name, values in only.items()):
            return
        tests = {name: is_one_of(values) for name, values in only.items() if name in self.shape}
        texts = {self.shape[name] for name in (*numbered, *only) if name in self.shape and name not in _IDS}
        # What all rows of a file have in common is looked at once, and not for each row.
        rows = encoded(in_files_with(self.dataset, self._condition(only)), texts)
        is_once = None if self.attempts is None or has_replaced else self.attempts.once
        # What is read ahead is what takes memory.
        scanner = rows.scanner(fields, filter=is_once, batch_readahead=4, fragment_readahead=1)
        for batch in scanner.to_batches():
            yield 1, _rows_that_pass(batch, tests)
        if self.attempts is not None:
            rest = self.attempts.replaced if has_replaced else self.attempts.last
            for batch in rest.select(list(fields)).to_batches():
                yield -1 if has_replaced else 1, _rows_that_pass(batch, tests)


def _all_of(conditions: Iterable[Any]) -> Any:
    """Return the condition that all of some hold; None, which is none, for no condition."""
    present = [condition for condition in conditions if condition is not None]
    return reduce(operator.and_, present) if present else None


def _rows_that_pass(part: pyarrow.RecordBatch, tests: Mapping[str, Callable[[Any], Any]]) -> pyarrow.RecordBatch:
    """Return the rows of a part for which tests of its columns hold."""
    import pyarrow.compute as pc

    masks = [test(part[name]) for name, test in tests.items()]
    return part.filter(reduce(pc.and_, masks)) if masks else part


def _as_measured(column: pyarrow.Array) -> pyarrow.Array:
    """Return values whose least and greatest are looked for: times as numbers."""
    import pyarrow

    return micros_in(column) if pyarrow.types.is_timestamp(column.type) else decoded(column)


def _type_measured(kind: pyarrow.DataType) -> pyarrow.DataType:
    import pyarrow

    return pyarrow.int64() if pyarrow.types.is_timestamp(kind) else kind


def _times_as_numbers(table: pyarrow.Table, names: Iterable[str]) -> pyarrow.Table:
    for name in names:
        table = table.set_column(table.column_names.index(name), name, _as_measured(table[name]))
    return table


def _in_order(table: pyarrow.Table, order: Iterable[str]) -> pyarrow.Table:
    keys = [(name, "ascending") for name in order if name in table.column_names]
    return table.sort_by(keys) if keys else table


def _plain(column: pyarrow.ChunkedArray) -> list[Any]:
    """Return the values of a column as plain ones; times are microseconds since 1970."""
    import pyarrow

    if pyarrow.types.is_timestamp(column.type):
        return values_of(column, ColumnKind.TIMESTAMP)
    is_text = pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type)
    return values_of(column, ColumnKind.STRING) if is_text else plain_values(column)


def _are_same(table: pyarrow.Table, same: ReadRow) -> pyarrow.Array:
    """Return which rows have some values, null and empty text being equal."""
    import pyarrow
    import pyarrow.compute as pc

    masks = [pyarrow.repeat(pyarrow.scalar(True), len(table))]
    for name, value in same.items():
        column = table[name].combine_chunks() if name in table.column_names else pyarrow.nulls(len(table))
        if pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type):
            masks.append(pc.equal(pc.fill_null(column, ""), value or ""))
        else:
            masks.append(column.is_null() if value is None else pc.fill_null(pc.equal(column, value), False))
    return reduce(pc.and_, masks)


def _places(rows: Any, by: Sequence[str]) -> Any:
    """Return the times of messages as microseconds, or their ids."""
    import pyarrow.compute as pc

    return pc.coalesce(*(_as_measured(rows[name]) for name in by))


def _is_between(places: Any, first: Any, last: Any) -> Any:
    import pyarrow.compute as pc

    return pc.and_(pc.greater_equal(places, first), pc.less_equal(places, last))


def _bound_brokers(dialogs: pyarrow.Table, now: int) -> pyarrow.Array:
    """Return the broker instance that each dialog is bound to: its acknowledgement's, or the named one."""
    import pyarrow
    import pyarrow.compute as pc

    far, acknowledged, at = (
        dialogs[name].combine_chunks() if name in dialogs.column_names else pyarrow.nulls(len(dialogs), kind)
        for name, kind in zip(_BINDING, (pyarrow.string(), pyarrow.string(), pyarrow.int64()), strict=True)
    )
    is_acknowledged = pc.less_equal(_as_measured(at), now)
    return pc.coalesce(pc.if_else(is_acknowledged, read_brokers(acknowledged), None), read_brokers(far))


def _floor(times: pyarrow.Array, step: int) -> pyarrow.Array:
    """Return the beginnings of the steps in which times lie, those before 1970 too."""
    import pyarrow.compute as pc

    # Whole numbers are divided towards zero.
    toward_zero = pc.multiply(pc.divide(times, step), step)
    return pc.if_else(pc.greater(toward_zero, times), pc.subtract(toward_zero, step), toward_zero)


def _searched(part: pyarrow.RecordBatch) -> pyarrow.Array:
    """Return the database whose routes were searched: msdb for what came over the network, or back."""
    import pyarrow
    import pyarrow.compute as pc

    is_back = pc.is_valid(decoded(part["rerouted_from"]))
    return pc.if_else(is_back, MSDB, pc.coalesce(decoded(part["database_name"]), pyarrow.scalar(MSDB)))


def _is_within(part: pyarrow.RecordBatch, since: pyarrow.Array, until: pyarrow.Array) -> pyarrow.Array:
    """Return whether rows were decided from some time on and before another, each row's own; null is no bound."""
    import pyarrow.compute as pc

    decided = micros_in(part["decided_at"])
    is_begun = pc.greater_equal(decided, since).fill_null(True)
    return pc.and_(is_begun, pc.less(decided, until).fill_null(True))
