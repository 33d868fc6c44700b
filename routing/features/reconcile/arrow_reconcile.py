"""Local tables reconciled without Spark: observations → episodes → judged → causes → the table's rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from routing.errors import InputError
from routing.features.reconcile.cause_search import find_causes
from routing.features.reconcile.episodes import (
    ANSWER,
    APART,
    EPISODES,
    OF_ARRIVALS,
    ORDER,
    RENAMED,
    SIDE,
    GroupAnswers,
    MismatchCause,
    ObservedEpisode,
    ObservedEpisodes,
)
from routing.features.reconcile.predicted_episodes import EpisodePredictor, JudgedEpisodes, PredictionColumns, Side
from routing.plan.checked_inputs import network_of
from routing.plan.verdicts import KnownDialogs, MessageJudge
from routing.rules import text
from routing.schemas import OBSERVED_ROUTING, RECONCILIATION
from routing.tables.arrow_forms import fold_texts
from routing.tables.arrow_rows import micros_in, plain_values
from routing.tables.column_kinds import arrow_schema
from routing.tables.table_columns import (
    Table,
    TableColumns,
    as_dataset,
    columns_in,
    rows_where,
    select_arrow,
    shape_of,
)
from routing.terms import TRANSMISSION_QUEUE

if TYPE_CHECKING:
    import pyarrow

# Observations of Arrow's tables and files, folded into episodes: columns of them, and no object for a row.


_KEY = "observed_routing"
_ALWAYS = tuple(field.name for field in OBSERVED_ROUTING if not field.nullable)
_SERVICE = "to_service_name"
_OF_CONVERSATION = ("instance_name", "conversation_id", "is_initiator")


def fold(observed: Table, messages: Table | None) -> pyarrow.Table:
    """Fold ``observed_routing`` into episodes, in the columns of `EPISODES`, each side's in the order of time.

    The service of an observation that names none is that of the message with its id in ``messages``, else of
    another observation of its conversation and role. Raises InputError where a row lacks a required value.
    """
    rows = _with_services(_read(observed), messages)
    keys = [*SIDE, *dict.fromkeys(ORDER)]
    rows = rows.sort_by([(name, "ascending") for name in keys])
    return _episodes(rows) if len(rows) else arrow_schema(EPISODES).empty_table()


def _read(observed: Any) -> pyarrow.Table:
    """Return the observations, times as microseconds, with ``is_arrival``; what the table lacks is null."""
    import pyarrow
    import pyarrow.compute as pc

    shape = shape_of(observed, _KEY)
    read = select_arrow(observed, list(shape.values()))
    there = dict(zip(shape, read.columns, strict=True))
    for name in _ALWAYS:
        lacking = there[name].null_count
        if lacking:
            raise InputError.without_value(_KEY, name, lacking)
    kinds = {field.name: field for field in arrow_schema(OBSERVED_ROUTING)}
    columns = {
        name: there[name].cast(kind.type) if name in there else pyarrow.nulls(len(read), kind.type)
        for name, kind in kinds.items()
    }
    columns["observed_at"] = micros_in(there["observed_at"])
    columns["conversation_id"] = fold_texts(columns["conversation_id"])
    forwarded = pc.is_in(columns["source"], pyarrow.array(OF_ARRIVALS))
    columns["is_arrival"] = pc.or_(forwarded, pc.fill_null(columns["is_from_network"], False))
    for name in ("database_name", _SERVICE):
        columns[name] = _empty_as_null(columns[name])
    columns["database_name"] = pc.if_else(columns["is_arrival"], None, columns["database_name"])
    return pyarrow.table(columns)


def _empty_as_null(texts: Any) -> Any:
    import pyarrow.compute as pc

    return pc.if_else(pc.equal(texts, ""), None, texts)


def _with_services(rows: pyarrow.Table, messages: Table | None) -> pyarrow.Table:
    """Return the observations, each with its service as far as anything tells it."""
    import pyarrow.compute as pc

    if messages is not None and rows[_SERVICE].null_count:
        by_id = ["instance_name", "message_id"]
        rows = _filled(rows, _services_of(_named_columns(messages, by_id), by_id), by_id)
    if rows[_SERVICE].null_count:
        named = rows_where(rows, pc.is_valid(rows[_SERVICE])).select([*_OF_CONVERSATION, _SERVICE])
        rows = _filled(rows, _services_of(named, _OF_CONVERSATION), _OF_CONVERSATION)
    return rows


def _named_columns(messages: Any, by: Sequence[str]) -> pyarrow.Table:
    shape = shape_of(messages, "messages")
    names = [*by, _SERVICE]
    return select_arrow(messages, [shape[name] for name in names]).rename_columns(names)


def _services_of(rows: pyarrow.Table, by: Sequence[str]) -> pyarrow.Table:
    """Return the first service by name of each group of rows."""
    first_services = rows.group_by(list(by)).aggregate([(_SERVICE, "min")])
    return first_services.rename_columns([*by, "service"])


def _filled(rows: pyarrow.Table, services: pyarrow.Table, by: Sequence[str]) -> pyarrow.Table:
    """Fill in the service of rows without one from their group, where it has one."""
    import pyarrow
    import pyarrow.compute as pc

    lacks = pc.is_null(rows[_SERVICE])
    lacking = rows_where(rows, lacks).drop_columns([_SERVICE]).join(services, list(by), join_type="left outer")
    lacking = lacking.rename_columns([_SERVICE if name == "service" else name for name in lacking.column_names])
    return pyarrow.concat_tables([rows_where(rows, pc.invert(lacks)), lacking.select(rows.column_names)])


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
    """Return whether each value but the first is another than the one before; null is equal to null alone."""
    import pyarrow
    import pyarrow.compute as pc

    if pyarrow.types.is_string(values.type):
        values = values.dictionary_encode().indices
    now, before = values[1:], values[:-1]
    other = pc.fill_null(pc.not_equal(now, before), False)
    return pc.or_(other, pc.not_equal(pc.is_null(now), pc.is_null(before)))


def count_observations(observed: Table) -> int:
    """Count the observations."""
    return int(as_dataset(observed).count_rows())


_AT_ONCE = 65_536
_SIDE = ("instance_name", "database_name", "conversation_id", "is_initiator")


def find(
    tables: Mapping[str, Table], settings: Mapping[str, TableColumns], progress: Callable[[str], None]
) -> ObservedEpisodes:
    """Reconcile tables of Arrow; ``settings`` are those of them without a fault. Raises InputError."""
    observed, messages = tables["observed_routing"], tables.get("messages")
    progress("folding observations")
    episodes = fold(observed, messages)
    progress("judging episodes")
    network = network_of(settings)
    dialogs = tables.get("dialogs")
    named = _named(messages, episodes, with_none=dialogs is not None)
    predictor = EpisodePredictor(MessageJudge(network), KnownDialogs.of_table(dialogs), named)
    predictor.find_openers(_stream(episodes))
    judged = JudgedEpisodes.of(_stream(episodes), predictor)
    progress("looking for causes")
    causes = _find_causes(episodes, judged, predictor)
    rows, unobserved = _rows(episodes, judged, causes), _count_unobserved(messages, episodes)
    return ObservedEpisodes(count_observations(observed), judged.groups, causes, judged.balanced, unobserved, rows)


def _rows(
    episodes: pyarrow.Table, judged: JudgedEpisodes, causes: Mapping[GroupAnswers, MismatchCause]
) -> pyarrow.Table:
    """Return the rows of ``reconciliation``, in the order of the sides, and of time within one."""
    import pyarrow

    columns_by_name = _take_columns(judged.predictions, PredictionColumns._fields, judged.prediction_of)
    of_groups = [causes.get(group.answers) for group in judged.groups]
    named = [(None, None) if cause is None else (str(cause.kind), cause.text) for cause in of_groups]
    columns_by_name |= _take_columns(named, ("cause", "cause_text"), judged.group_of)
    columns_by_name["class"] = columns_by_name.pop("kind")
    schema = arrow_schema(RECONCILIATION)
    columns = [
        columns_by_name[f.name] if f.name in columns_by_name else episodes[RENAMED.get(f.name, f.name)]
        for f in schema
    ]
    return pyarrow.table([column.cast(f.type) for column, f in zip(columns, schema, strict=True)], schema=schema)


def _take_columns(rows: Any, names: tuple[str, ...], places: Any) -> dict[str, Any]:
    """Build columns from some tuples, each taken for every row that has it."""
    import pyarrow

    schema = {field.name: field.type for field in arrow_schema(RECONCILIATION)}
    row_places = pyarrow.array(places, pyarrow.int64())
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return {
        name: pyarrow.array(list(values), schema.get(name, pyarrow.string())).take(row_places)
        for name, values in zip(names, columns, strict=True)
    }


def _stream(episodes: pyarrow.Table) -> Iterator[ObservedEpisode]:
    names = {name: name for name in EPISODES.names}
    for start in range(0, len(episodes), _AT_ONCE):
        rows = columns_in(episodes.slice(start, _AT_ONCE), EPISODES, names)
        yield from (ObservedEpisode.of_row(*row) for row in rows.rows(*EPISODES.names))


def _find_causes(
    episodes: pyarrow.Table, judged: JudgedEpisodes, predictor: EpisodePredictor
) -> Mapping[GroupAnswers, MismatchCause]:
    if not judged.has_trouble:
        return {}
    samples = {
        instance: [
            (episode, judged.groups[judged.group_of[place]].answers.kind)
            for place, episode in zip(places, _stream(episodes.take(places)), strict=True)
        ]
        for instance, places in judged.sampled(episodes["first_at"].to_pylist()).items()
    }

    return find_causes(judged.groups, samples, predictor.class_at, predictor.messages.network)


def _named(messages: Table | None, episodes: pyarrow.Table, *, with_none: bool) -> dict[Side, str | None]:
    """Return the broker ids that messages name themselves, by their sides, where observations do not tell.

    ``with_none``: also of messages that name none, which then are open unless their dialogs bind them.
    """
    import pyarrow.compute as pc

    if messages is None:
        return {}
    asked = pc.or_(
        pc.not_equal(episodes["source"], TRANSMISSION_QUEUE), pc.is_null(episodes["to_broker_instance"])
    )
    conversations = rows_where(episodes["conversation_id"], asked).unique()
    shape, names = shape_of(messages, "messages"), (*_SIDE, "to_broker_instance")
    rows = select_arrow(messages, [shape[name] for name in names if name in shape])
    rows = rows_where(rows, pc.is_in(fold_texts(rows[shape["conversation_id"]]), conversations))
    there = {name: plain_values(rows[shape[name]]) if name in shape else [None] * len(rows) for name in names}
    brokers_by_side: dict[Side, str | None] = {}
    for instance, database, conversation, role, broker in zip(*there.values(), strict=True):
        own_broker = text.broker_id(broker)
        if own_broker is not None or with_none:
            message_side = instance, text.empty_as_null(database), text.fold(conversation), role
            brokers_by_side[message_side] = min(
                filter(None, (brokers_by_side.get(message_side), own_broker)), default=None
            )
    return brokers_by_side


def _count_unobserved(messages: Table | None, episodes: pyarrow.Table) -> int:
    """Count the ends of conversations in ``messages`` without an observation on their instance."""
    if messages is None:
        return 0
    shape, by = shape_of(messages, "messages"), ["instance_name", "conversation_id", "is_initiator"]
    rows = select_arrow(messages, [shape[name] for name in by]).rename_columns(by)
    rows = rows.set_column(1, by[1], fold_texts(rows[by[1]]))
    return len(rows.group_by(by).aggregate([]).join(episodes.select(by), by, join_type="left anti"))
