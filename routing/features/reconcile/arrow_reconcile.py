"""Local tables reconciled without Spark: observations → episodes → judged → causes → the table's rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from routing.features.reconcile.causes.cause_search import find_causes
from routing.features.reconcile.episode import EPISODES, ObservedEpisode
from routing.features.reconcile.folding import count_observations, fold
from routing.features.reconcile.groups import GroupAnswers, MismatchCause
from routing.features.reconcile.judged_episodes import JudgedEpisodes, PredictionColumns
from routing.features.reconcile.observed_episodes import RENAMED, ObservedEpisodes
from routing.features.reconcile.predicting import EpisodePredictor, Side
from routing.plan.dialogs import KnownDialogs
from routing.plan.estate import network_of
from routing.plan.verdicts import MessageJudge
from routing.rules import text
from routing.schemas import RECONCILIATION
from routing.tables.arrow_forms import fold_texts
from routing.tables.arrow_rows import plain_values
from routing.tables.column_kinds import arrow_schema
from routing.tables.table_columns import Table, TableColumns, columns_in, rows_where, select_arrow, shape_of
from routing.terms import TRANSMISSION_QUEUE

if TYPE_CHECKING:
    import pyarrow

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

    told = _taken(judged.predictions, PredictionColumns._fields, judged.prediction_of)
    of_groups = [causes.get(group.answers) for group in judged.groups]
    named = [(None, None) if cause is None else (str(cause.kind), cause.text) for cause in of_groups]
    told |= _taken(named, ("cause", "cause_text"), judged.group_of)
    told["class"] = told.pop("kind")
    schema = arrow_schema(RECONCILIATION)
    columns = [told[f.name] if f.name in told else episodes[RENAMED.get(f.name, f.name)] for f in schema]
    return pyarrow.table([column.cast(f.type) for column, f in zip(columns, schema, strict=True)], schema=schema)


def _taken(rows: Any, names: tuple[str, ...], places: Any) -> dict[str, Any]:
    """Build columns from some tuples, each taken for every row that has it."""
    import pyarrow

    schema = {field.name: field.type for field in arrow_schema(RECONCILIATION)}
    taken = pyarrow.array(places, pyarrow.int64())
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return {
        name: pyarrow.array(list(values), schema.get(name, pyarrow.string())).take(taken)
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
    told = rows_where(episodes["conversation_id"], asked).unique()
    shape, names = shape_of(messages, "messages"), (*_SIDE, "to_broker_instance")
    rows = select_arrow(messages, [shape[name] for name in names if name in shape])
    rows = rows_where(rows, pc.is_in(fold_texts(rows[shape["conversation_id"]]), told))
    there = {name: plain_values(rows[shape[name]]) if name in shape else [None] * len(rows) for name in names}
    found: dict[Side, str | None] = {}
    for instance, database, conversation, role, broker in zip(*there.values(), strict=True):
        own = text.broker_id(broker)
        if own is not None or with_none:
            side = instance, text.empty_as_null(database), text.fold(conversation), role
            found[side] = min(filter(None, (found.get(side), own)), default=None)
    return found


def _count_unobserved(messages: Table | None, episodes: pyarrow.Table) -> int:
    """Count the ends of conversations in ``messages`` without an observation on their instance."""
    if messages is None:
        return 0
    shape, by = shape_of(messages, "messages"), ["instance_name", "conversation_id", "is_initiator"]
    rows = select_arrow(messages, [shape[name] for name in by]).rename_columns(by)
    rows = rows.set_column(1, by[1], fold_texts(rows[by[1]]))
    return len(rows.group_by(by).aggregate([]).join(episodes.select(by), by, join_type="left anti"))
