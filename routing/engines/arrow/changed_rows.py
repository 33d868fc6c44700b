"""The messages of a batch that change between two sides, as rows, as counts and as examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from routing.engines.arrow.compared_paths import HOP, WORDS, ComparedPaths
from routing.engines.arrow.message_keys import NUMBERED, numbers_of, texts_of
from routing.engines.arrow.text_numbers import used_words
from routing.result_schemas import DECIDED, ENDS, EXAMPLES, MESSAGE_CHANGES, SIDES
from routing.schemas import ColumnKind
from routing.tables.arrow_rows import arrow_schema, arrow_type, find_undecodable, plain_values, with_readable_texts
from routing.tables.encoded_texts import split_words

if TYPE_CHECKING:
    import pyarrow

_EXAMPLE = tuple(name for name in EXAMPLES.names if name not in ENDS)
GROUPED = ("instance_name", "database_name", "to_service_name")
_NUMBERS = (*(f"{name}_{side}" for side in SIDES for name in ("decision", "end")), "place")
GROUP_TEXTS = (*GROUPED, *(f"address_{side}" for side in SIDES))
GROUP = (*GROUP_TEXTS, *_NUMBERS)
"""The columns by which messages are counted. The addresses come from service names."""
AS_READ = "conversation_as_read"
"""The column of a batch with the unchanged conversation id."""
READS_ADDRESS, ENDS_OF_DECISIONS = "reads_address", "ends"
"""Columns of decisions: whether the address comes from the service name, and numbers of outcome and reason."""


class DecidedRows(NamedTuple):
    """Decisions of a side for some messages.

    ``numbers`` are those of `ComparedDecisions`, and ``texts`` the columns of `DECIDED`. ``in_names`` has the
    addresses from service names, or is None if no route reads one.
    """

    numbers: pyarrow.Array
    texts: Mapping[str, pyarrow.Array]
    in_names: pyarrow.Array | None


class PartingPaths(NamedTuple):
    """The paths of changed messages: their endings on both sides, and the first hop that differs.

    ``texts`` has the columns of `ENDING` for each side and the texts of `CHANGED_HOP`. ``ends`` has the numbers of
    endings, and ``words`` those of ending and reason. ``places`` has the numbers of the hops' places, and ``hops``
    their positions on the path.
    """

    texts: Mapping[str, pyarrow.Array]
    ends: list[pyarrow.Array]
    words: list[pyarrow.Array]
    most_words: int
    places: pyarrow.Array
    hops: pyarrow.Array

    @classmethod
    def of(cls, paths: ComparedPaths, before: pyarrow.Array, after: pyarrow.Array) -> PartingPaths:
        """Return the paths of messages from the numbers of their paths."""
        ends = [paths.ends_of(path_numbers) for path_numbers in (before, after)]
        endings, places = paths.endings(), paths.find_hops(before, after)
        texts = {
            f"{name}_{word}": column.take(end)
            for word, end in zip(SIDES, ends, strict=True)
            for name, column in endings.items()
            if name != WORDS
        }
        hops, all_words = paths.hops(), endings[WORDS]
        texts |= {name: column.take(places) for name, column in hops.items() if name != HOP}
        words = [all_words.take(end) for end in ends]
        return cls(texts, ends, words, len(all_words), places, hops[HOP].take(places))


def differ(before: DecidedRows, after: DecidedRows) -> pyarrow.Array:
    """Return a mask of messages with a different compared value. Null equals only null."""
    import pyarrow
    import pyarrow.compute as pc

    differs: Any = pyarrow.repeat(pyarrow.scalar(False), len(before.numbers))
    for name in DECIDED:
        old, new = (rows.texts[name].cast(pyarrow.string()) for rows in (before, after))
        is_other = pc.fill_null(pc.not_equal(old, new), fill_value=False)
        differs = pc.or_(differs, pc.or_(is_other, pc.not_equal(old.is_valid(), new.is_valid())))
    return differs


@dataclass(frozen=True)
class ChangedRows:
    """The changed messages at ``places`` of a batch, with their decisions and paths on both sides."""

    batch: pyarrow.RecordBatch
    places: pyarrow.Array
    decided_rows: list[DecidedRows]
    paths: PartingPaths
    compared_columns: Mapping[str, pyarrow.Array]

    def table(self, chosen: pyarrow.Array | None = None) -> pyarrow.Table:
        """Return the chosen messages, or all, in the columns of `MESSAGE_CHANGES` with texts as dictionaries."""
        import pyarrow

        def some(values: pyarrow.Array) -> pyarrow.Array:
            return values if chosen is None else values.take(chosen)

        rows = self.batch.take(some(self.places))
        columns: dict[str, pyarrow.Array] = {name: rows[name] for name in ("message_id", "is_initiator")}
        columns["conversation_id"] = rows[AS_READ]
        columns |= {name: _readable(used_words(texts_of(rows, name))) for name in NUMBERED}
        columns["message_sequence_number"] = numbers_of(rows, "message_sequence_number")
        columns["enqueue_time"] = rows["enqueued"].view(arrow_type(ColumnKind.TIMESTAMP))
        texts = {
            f"{name}_{word}": column
            for word, rows_of_side in zip(SIDES, self.decided_rows, strict=True)
            for name, column in rows_of_side.texts.items()
        }
        for name, column in {**texts, **self.paths.texts}.items():
            columns[name] = used_words(some(column))
        columns["hop"] = some(self.paths.hops)
        return with_readable_texts(pyarrow.table({name: columns[name] for name in MESSAGE_CHANGES.names}))

    def group(self) -> pyarrow.Table:
        """Count the messages by `GROUP`, in a column ``messages``. Numbers are the same in all batches."""
        import pyarrow

        numbers: dict[str, pyarrow.Array] = {}
        for name in GROUPED:
            numbers[name] = split_words(texts_of(self.batch, name))[1].take(self.places)
        no_numbers = pyarrow.nulls(len(self.places), pyarrow.int32())
        for side, rows_of_side, end in zip(SIDES, self.decided_rows, self.paths.ends, strict=True):
            in_names = rows_of_side.in_names
            numbers[f"address_{side}"] = no_numbers if in_names is None else in_names.indices
            numbers |= {f"decision_{side}": rows_of_side.numbers, f"end_{side}": end}
        numbers["place"] = self.paths.places
        names = list(numbers)
        numbers["row"] = pyarrow.array(range(len(self.places)), pyarrow.int64())
        grouped = pyarrow.table(numbers).group_by(names).aggregate([("row", "min"), ("row", "count")])
        first = grouped["row_min"].combine_chunks()
        columns: dict[str, pyarrow.Array] = {name: grouped[name] for name in _NUMBERS}
        rows = self.places.take(first)
        for name in GROUPED:
            columns[name] = _readable(used_words(texts_of(self.batch, name).take(rows)))
        for side, rows_of_side in zip(SIDES, self.decided_rows, strict=True):
            in_names = rows_of_side.in_names
            columns[f"address_{side}"] = (
                pyarrow.nulls(len(first), pyarrow.string()) if in_names is None else in_names.take(first)
            )
        texts = {name: columns[name].cast(pyarrow.string()) for name in GROUP_TEXTS}
        return pyarrow.table(
            {**texts, **{name: columns[name] for name in _NUMBERS}, "messages": grouped["row_count"]}
        )

    def find_lowest(self, shown: int) -> pyarrow.Table:
        """Return up to ``shown`` examples of each change in the columns `ENDS`, as rows of `EXAMPLES`."""
        import pyarrow
        import pyarrow.compute as pc

        first_ends = self.compared_columns[ENDS_OF_DECISIONS]
        most = max(len(first_ends), self.paths.most_words)
        code: Any = pyarrow.repeat(pyarrow.scalar(0, pyarrow.int64()), len(self.places))
        for column in (
            *(first_ends.take(side.numbers) for side in self.decided_rows),
            *self.paths.words,
        ):
            # There are few distinct words, so the products cannot overflow.
            code = pc.add(pc.multiply(code.dictionary_encode().indices.cast("int64"), most), column)
        changes, instances = code.dictionary_encode(), self._rank_instances()
        parts = []
        for change in range(len(changes.dictionary)):
            places = pc.indices_nonzero(pc.equal(changes.indices, change))
            if len(places) > shown:
                # Only the messages of the first instances are compared by their texts.
                ranks = instances.take(places)
                last = ranks.take(pc.select_k_unstable(ranks, shown, [("", "ascending")]))
                places = places.filter(pc.less_equal(ranks, pc.max(last)))
            table = self.table(places) if len(places) <= shown else self._lowest_of(places, shown)
            parts.append(table.select(EXAMPLES.names).cast(arrow_schema(EXAMPLES.optional())))
        return pyarrow.concat_tables(parts)

    def _lowest_of(self, places: pyarrow.Array, shown: int) -> pyarrow.Table:
        """Return the first ``shown`` of some messages in the order of examples."""
        import pyarrow
        import pyarrow.compute as pc

        rows = self.batch.take(self.places.take(places))
        names = {name: AS_READ if name == "conversation_id" else name for name in _EXAMPLE}
        ids = {name: rows[in_rows] for name, in_rows in names.items()}
        readable, columns = with_readable_texts(pyarrow.table(ids)), dict[str, pyarrow.Array]()
        for name in _EXAMPLE:
            texts = readable[name].cast(pyarrow.string()).combine_chunks()
            columns |= {f"has_{name}": texts.is_valid().cast("int8"), name: texts}
        order = [(name, "ascending") for name in columns]
        return self.table(places.take(pc.select_k_unstable(pyarrow.table(columns), shown, order)))

    def _rank_instances(self) -> pyarrow.Array:
        """Return the rank of each message's instance by name, with nulls first."""
        import pyarrow
        import pyarrow.compute as pc

        words, numbers = split_words(self.batch["instance_name"])
        names = plain_values(words)
        ranks = {name: rank for rank, name in enumerate(sorted({name for name in names if name is not None}), 1)}
        of_words = pyarrow.array([ranks.get(name, 0) for name in names], pyarrow.int64())
        return pc.fill_null(of_words.take(numbers.take(self.places)), 0)


def _readable(column: pyarrow.Array) -> pyarrow.Array:
    r"""Return a column with valid UTF-8 only: each undecodable byte is written as ``\xNN``."""
    import pyarrow

    if find_undecodable(column.dictionary) is None:
        return column
    words = pyarrow.array(plain_values(column.dictionary), pyarrow.string())
    return words.dictionary_encode().take(column.indices)
