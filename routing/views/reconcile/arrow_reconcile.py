"""Reconcile local tables without Spark: episodes → questions → answers → causes → rows.

Episodes lie in buckets by instance and service, and each bucket is processed separately.

Equal episodes share one question, which one of them asks. A question has the side without its conversation, the
answer, the broker instance, the interval between changes of its routes, and the dialog-ID hash modulo the number
of picks. An episode that may ask for a route has its own question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from routing.engines.arrow.bucketed_rows import BucketedRows, BucketObjects, RowBuckets, join_small, open_buckets
from routing.engines.arrow.decisions import TimelineTable, find_rests
from routing.engines.arrow.interned_rows import GrowingColumn, PairNumbering
from routing.engines.arrow.resolved_batches import for_each_thread
from routing.engines.arrow.text_numbers import number_groups, used_words
from routing.plan.checked_inputs import network_of
from routing.plan.verdicts import MessageJudge
from routing.process import no_search_for_cycles
from routing.rules.resolving import DialogFacts, RoutedMessage
from routing.schemas import RECONCILIATION
from routing.tables.arrow_forms import is_guid
from routing.tables.arrow_rows import arrow_schema, plain_values
from routing.tables.encoded_texts import GroupSums
from routing.tables.row_faults import read_suspects, refuse_faults
from routing.tables.table_columns import Table, TableColumns, as_dataset, rows_where
from routing.terms import TableRow
from routing.views.reconcile.arrow_episodes import ReadTables
from routing.views.reconcile.cause_search import CauseSearch
from routing.views.reconcile.episodes import (
    RENAMED,
    SIDE,
    TRAFFIC,
    GroupAnswers,
    MismatchCause,
    ObservedEpisode,
    ObservedEpisodes,
    episode_of,
)
from routing.views.reconcile.predicted_episodes import (
    EpisodePrediction,
    EpisodePredictor,
    JudgedEpisodes,
    PredictionColumns,
    asking_instances,
)

if TYPE_CHECKING:
    import pyarrow

    from routing.delta.data_files import DataFiles
    from routing.delta.ledger import ReplacedOutput

_EPISODES_AT_ONCE = 10_000
_SPREAD = {"episodes": "sum", "observations": "sum", "since": "min", "until": "max"}


def rows_of(table: pyarrow.Table) -> list[TableRow]:
    """Return rows as plain Python."""
    names = table.column_names
    columns = zip(*(plain_values(table[name]) for name in names), strict=True)
    return [dict(zip(names, row, strict=True)) for row in columns]


@dataclass
class EpisodeQuestions:
    """The questions of a bucket's episodes, which are added in parts.

    ``first`` are the episodes that ask each question first, in the order of the numbers of the ``count``
    questions. ``single_count`` counts the episodes with their own question, which have the numbers -1, -2, ….
    """

    predictor: EpisodePredictor
    first: list[pyarrow.Table] = field(default_factory=list)
    count: int = 0
    single_count: int = 0
    _keys: dict[tuple[Any, ...], int] = field(default_factory=dict)
    _spans: TimelineTable = field(default_factory=TimelineTable)
    _span_count: int = 0
    _questions: PairNumbering = field(default_factory=PairNumbering)
    _sums: GroupSums = field(default_factory=lambda: GroupSums(["question"], _SPREAD))

    def __post_init__(self) -> None:
        import pyarrow

        self._picks, self._is_alone = GrowingColumn(pyarrow.int64()), GrowingColumn(pyarrow.bool_())

    def number(self, episodes: pyarrow.Table) -> pyarrow.Array:
        """Return the numbers of the questions of episodes, in the columns of `EPISODES` and `OWN`."""
        import pyarrow
        import pyarrow.compute as pc

        keys = self._number_keys(episodes)
        is_alone = self._is_alone.array().take(keys)
        alike = pc.invert(is_alone)
        numbers = self._number_alike(episodes.filter(alike), keys.filter(alike))
        all_numbers = pc.replace_with_mask(
            pyarrow.repeat(pyarrow.scalar(0, pyarrow.int64()), len(keys)), alike, numbers
        )
        count = is_alone.true_count
        single_numbers = pyarrow.array(
            range(-1 - self.single_count, -1 - self.single_count - count, -1), pyarrow.int64()
        )
        self.single_count += count
        return pc.replace_with_mask(all_numbers, is_alone, single_numbers)

    def _number_alike(self, episodes: pyarrow.Table, keys: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of questions that other episodes may ask as well, and count these episodes."""
        import pyarrow
        import pyarrow.compute as pc

        first_at, conversations = (episodes[name].combine_chunks() for name in ("first_at", "conversation_id"))
        # An interval begins with each change, so that its number identifies the key as well.
        spans = self._spans.arrays().choose(keys, first_at, conversations)
        picks = self._picks.array().take(keys)
        has_picks = pc.greater(picks, 1)
        rests = find_rests(conversations.filter(has_picks), picks.filter(has_picks))
        zeros = pyarrow.repeat(pyarrow.scalar(0, pyarrow.int64()), len(keys))
        numbers = self._questions.number(spans, pc.replace_with_mask(zeros, has_picks, rests)).cast("int64")
        counted = pyarrow.table(
            {
                "question": numbers,
                "episodes": pyarrow.repeat(pyarrow.scalar(1, pyarrow.int64()), len(numbers)),
                "observations": episodes["observations"],
                "since": episodes["first_at"],
                "until": episodes["first_at"],
            }
        )
        if len(counted):
            self._sums.add(counted)
        places = pyarrow.table({"question": numbers, "row": pyarrow.array(range(len(numbers)), pyarrow.int64())})
        first_rows = places.group_by("question").aggregate([("row", "min")])
        new = first_rows.filter(pc.greater_equal(first_rows["question"], self.count)).sort_by("question")
        self.first.append(episodes.take(new["row_min"]))
        self.count += len(new)
        return numbers

    def judge_all(self, single_episodes: Iterable[pyarrow.Table]) -> JudgedEpisodes:
        """Return all questions, judged: first the shared ones, then those of the episodes in ``single_episodes``.

        The judge knows the route requests of the single ones.
        """
        judged = JudgedEpisodes()
        sums = self._sums.all().sort_by("question")
        spreads = zip(*(plain_values(sums[name]) for name in _SPREAD), strict=True)
        for episode, prediction in self._predict(part for table in self.first for part in _parts_of(table)):
            judged.add(episode, prediction, *next(spreads))
        for episode, prediction in self._predict(single_episodes):
            judged.add(episode, prediction, 1, episode.observations, episode.first_at, episode.first_at)
        return judged

    def _predict(self, parts: Iterable[pyarrow.Table]) -> Iterator[tuple[ObservedEpisode, EpisodePrediction]]:
        for rows in map(rows_of, parts):
            yield from ((episode, self.predictor.predict(episode)) for episode in map(episode_of, rows))

    def places(self, numbers: pyarrow.Array) -> pyarrow.Array:
        """Return the places of questions among the judged ones."""
        import pyarrow.compute as pc

        of_one = pc.subtract(self.count - 1, numbers)
        return pc.if_else(pc.less(numbers, 0), of_one, numbers)

    def _number_keys(self, episodes: pyarrow.Table) -> pyarrow.Array:
        """Return the numbers of the keys of episodes. For new keys, the varying facts are determined."""
        import pyarrow

        keys = _keys_of(episodes)
        groups = number_groups(keys, keys.column_names)
        places = pyarrow.table({"group": groups, "row": pyarrow.array(range(len(groups)), pyarrow.int64())})
        first = places.group_by("group").aggregate([("row", "min")]).sort_by("group")["row_min"]
        key_rows = list(zip(*(plain_values(keys[name].take(first)) for name in keys.column_names), strict=True))
        new = [place for place, key in enumerate(key_rows) if key not in self._keys]
        rows = rows_of(episodes.take(first.take(pyarrow.array(new, pyarrow.int64()))))
        for place, row in zip(new, rows, strict=True):
            changes, picks, is_alone = self.predictor.varies(episode_of(row))
            spans = [(change, [self._span_count + number]) for number, change in enumerate((*changes, None))]
            self._span_count += len(spans)
            self._keys[key_rows[place]] = self._spans.add(spans)
            self._picks.add(picks)
            self._is_alone.add(is_alone)
        return pyarrow.array([self._keys[key] for key in key_rows], pyarrow.int64()).take(groups)


def _parts_of(table: pyarrow.Table) -> Iterator[pyarrow.Table]:
    # Only a few are Python objects at a time.
    return (table.slice(start, _EPISODES_AT_ONCE) for start in range(0, len(table), _EPISODES_AT_ONCE))


def _keys_of(episodes: pyarrow.Table) -> pyarrow.Table:
    """Return the columns of episodes that affect decisions at any time and for any dialog hash."""
    import pyarrow
    import pyarrow.compute as pc

    def holds(condition: Any) -> Any:
        return pc.fill_null(condition, fill_value=False)

    begins = episodes["first_at"]
    is_acknowledged = holds(pc.less_equal(episodes["acknowledged_at"], begins))
    names = (*SIDE, "source", "outcome", "error_number", "next_hop", "to_broker_instance", "is_named", "own")
    values = {name: episodes[name] for name in names if name != "conversation_id"}
    values |= {
        "is_guid": holds(is_guid(episodes["conversation_id"])),
        "says": holds(pc.not_equal(episodes["status_text"], "")),
        "no_hops": holds(pc.less_equal(episodes["remaining_hop_count"], 0)),
        "lived": holds(pc.greater_equal(episodes["live_time_seconds"], episodes["time_to_live_seconds"])),
        "acknowledged": pc.if_else(is_acknowledged, episodes["acknowledged_broker_instance"], None),
        "far": episodes["far_broker_instance"],
        "is_over": holds(pc.less_equal(episodes["lifetime"], begins)),
    }
    return pyarrow.table(values)


ROWS_OF_ONE = 400_000
"""The number of rows in one bucket, which is in memory."""
# All episodes of a service on an instance are in one bucket, because the search for causes compares them.
_BUCKET = ("instance_name", "to_service_name")
# The judge caches one key for this number of rows, because no other bucket has the same keys.
_ROWS_OF_KEY = 20
_PLACE = "place"
# Texts that many episodes share.
_SHARED = (
    *("instance_name", "database_name", "to_service_name", "source", "outcome", "status_text"),
    *("to_broker_instance", "next_hop"),
)


@contextmanager
def open_episodes(
    tables: Mapping[str, Table],
    settings: Mapping[str, TableColumns],
    progress: Callable[[str], None],
    rows_of_one: int = ROWS_OF_ONE,
) -> Iterator[BucketedEpisodes]:
    """Reconcile Arrow tables. ``settings`` are their valid settings. Raises InputError.

    The yielded value may read temporary files, which are deleted after the block. There are as many buckets as the
    tables have parts of ``rows_of_one``. Python objects exist for one bucket at a time.
    """
    dialogs = tables.get("dialogs")
    if dialogs is not None:
        refuse_faults({"dialogs": read_suspects(dialogs, "dialogs")})
    row_count = max(as_dataset(tables[key]).count_rows() for key in TRAFFIC if key in tables)
    with open_buckets(row_count, rows_of_one) as buckets:
        progress("folding observations")
        read, episodes = ReadTables.of(tables, buckets), buckets.open("episodes")
        for folded in join_small(read.fold_all(), rows_of_one):
            episodes.add(folded, *_BUCKET)
        episodes.close()
        progress("judging episodes")
        judge = MessageJudge(network_of(settings), most_keys=max(rows_of_one // _ROWS_OF_KEY, 1))
        counted = ObservedEpisodes(as_dataset(tables["observed_routing"]).count_rows(), read.unobserved)
        bucketed = BucketedEpisodes(judge, buckets, episodes, rows_of_one, counted)
        search = bucketed.judge_all()
        progress("looking for causes")
        bucketed.answer_all(search)
        yield bucketed


@dataclass
class BucketedEpisodes:
    """Episodes in buckets by instance and service, judged and counted bucket by bucket."""

    judge: MessageJudge
    buckets: RowBuckets
    episodes: BucketedRows
    rows_of_one: int
    counted: ObservedEpisodes

    def __post_init__(self) -> None:
        # The place of each episode's question in the bucket, and the answer of each question.
        self._places, self._answers = self.buckets.open(_PLACE), self.buckets.open("answers")
        self.predictor = EpisodePredictor(self.judge)
        self._judged: BucketObjects[JudgedEpisodes] = self.buckets.open_objects("judged")

    def judge_all(self) -> CauseSearch:
        """Judge all episodes, and return a search for causes that has noted them."""
        self.judge.find_openers(self._list_asking())
        search, single_episodes = CauseSearch(self.judge.network), self.buckets.open("alone")
        with no_search_for_cycles():
            for bucket in range(self.buckets.count):
                judged = self._judge(bucket, single_episodes)
                if judged is not None:
                    search.note(judged.groups)
                    self._judged.store(bucket, judged)
        self._places.close()
        return search

    def _judge(self, bucket: int, single_episodes: BucketedRows) -> JudgedEpisodes | None:
        """Return the judged questions of a bucket.

        Episodes with their own question are added to ``single_episodes``.
        """
        import pyarrow

        questions, numbers = EpisodeQuestions(self.predictor), []
        for episodes in self._read(bucket):
            numbers.append(questions.number(episodes))
            of_one = _rows_of_one(episodes, numbers[-1])
            if len(of_one):
                single_episodes.add_to(bucket, of_one)
        if not numbers:
            return None
        single_episodes.close()
        for group_numbers in numbers:
            self._places.add_to(bucket, pyarrow.table({_PLACE: questions.places(group_numbers)}))
        return questions.judge_all(single_episodes.read_parts(bucket, _EPISODES_AT_ONCE))

    def _list_asking(self) -> Iterator[tuple[RoutedMessage, DialogFacts]]:
        import pyarrow
        import pyarrow.compute as pc

        asking = pyarrow.array(sorted(asking_instances(self.judge)), pyarrow.string())
        for bucket in range(self.buckets.count) if len(asking) else ():
            questions = EpisodeQuestions(self.predictor)
            for episodes in self._read(bucket):
                asking_episodes = rows_where(episodes, pc.is_in(episodes["instance_name"], value_set=asking))
                of_one = _rows_of_one(asking_episodes, questions.number(asking_episodes))
                for rows in map(rows_of, _parts_of(of_one)):
                    yield from self.predictor.list_messages(map(episode_of, rows))

    def _read(self, bucket: int) -> Iterator[pyarrow.Table]:
        """Yield the episodes of a bucket in the same parts each time, each in memory."""
        return self.episodes.read_parts(bucket, self.rows_of_one)

    def answer_all(self, search: CauseSearch) -> None:
        """Find the causes of all episodes, and count them."""
        with no_search_for_cycles():
            for bucket in range(self.buckets.count):
                judged = self._judged.load(bucket)
                if judged is not None:
                    causes = search.find_causes(judged.groups)
                    self.counted.add(judged.groups, causes, judged.balanced)
                    self._answers.add_to(bucket, _make_answers(judged, causes))
        self._answers.close()

    def _make_rows_of(self, bucket: int) -> Iterator[pyarrow.Table]:
        import pyarrow

        answers = self._answers.read(bucket)
        if answers is None:
            return
        for episodes, places in zip(self._read(bucket), self._places.read_parts(bucket), strict=True):
            columns = {}
            for output_field in arrow_schema(RECONCILIATION):
                name = RENAMED.get(output_field.name, output_field.name)
                if output_field.name in answers.column_names:
                    column = answers[output_field.name].combine_chunks().take(places[_PLACE].combine_chunks())
                elif name in _SHARED:
                    column = used_words(episodes[name].combine_chunks())
                else:
                    column = episodes[name].combine_chunks().cast(output_field.type)
                columns[output_field.name] = column
            yield pyarrow.table(columns)

    def write_to(self, files: DataFiles) -> None:
        """Write all rows of ``reconciliation``, with one file for each thread."""

        def work(buckets: Iterator[int]) -> None:
            file = files.open()
            for bucket in buckets:
                for rows in self._make_rows_of(bucket):
                    file.add(rows)

        for_each_thread(iter(range(self.buckets.count)), work)

    def replace_output(self, place: ReplacedOutput, metadata: str) -> tuple[Table, int]:
        """Replace an output by all rows. Return the stored rows and the new version."""
        stored = place.replace(self, metadata)
        return stored.rows(), stored.version

    def make_rows(self) -> pyarrow.Table:
        """Return all rows of ``reconciliation``."""
        import pyarrow

        shape = arrow_schema(RECONCILIATION)
        tables = chain.from_iterable(map(self._make_rows_of, range(self.buckets.count)))
        return pyarrow.concat_tables([shape.empty_table(), *(rows.cast(shape) for rows in tables)])


def _rows_of_one(episodes: pyarrow.Table, numbers: pyarrow.Array) -> pyarrow.Table:
    import pyarrow.compute as pc

    return episodes.filter(pc.less(numbers, 0))


def _make_answers(judged: JudgedEpisodes, causes: Mapping[GroupAnswers, MismatchCause]) -> pyarrow.Table:
    import pyarrow

    of_groups = [causes.get(group.answers) for group in judged.groups]
    named = [(None, None) if cause is None else (str(cause.kind), cause.text) for cause in of_groups]
    answers = _take(
        judged.predictions, PredictionColumns._fields, pyarrow.array(judged.prediction_of, pyarrow.int64())
    )
    answers |= _take(named, ("cause", "cause_text"), pyarrow.array(judged.group_of, pyarrow.int64()))
    answers["class"] = answers.pop("kind")
    return pyarrow.table(answers)


def _take(rows: list[Any], names: tuple[str, ...], places: pyarrow.Array) -> dict[str, pyarrow.Array]:
    """Return columns of some tuples, repeated for every question that has them. Texts are dictionaries."""
    import pyarrow

    schema = {field.name: field.type for field in arrow_schema(RECONCILIATION)}
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    taken_columns = {}
    for name, values in zip(names, columns, strict=True):
        column = pyarrow.array(list(values), schema.get(name, pyarrow.string()))
        is_text = column.type == pyarrow.string()
        taken_columns[name] = (column.dictionary_encode() if is_text else column).take(places)
    return taken_columns
