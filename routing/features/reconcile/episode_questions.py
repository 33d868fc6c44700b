"""The questions that episodes of Arrow put to the rules: one for all that are alike, asked by one episode.

What of an episode makes a difference is its question: the side without its conversation, the answer, what it is
bound to, between which changes of its routes it began, and what the dialog-ID hash leaves when it is divided by
the number of picks. One that may ask for a route is a question by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from routing.engines.arrow.decisions import GrowingColumn, PairNumbering, TimelineTable, find_rests
from routing.engines.arrow.text_numbers import number_groups
from routing.features.reconcile.episodes import SIDE, episode_of
from routing.features.reconcile.predicted_episodes import JudgedEpisodes, predictor_of
from routing.plan.verdicts import MessageJudge
from routing.rules.resolving import DialogFacts, RoutedMessage
from routing.tables.arrow_forms import is_guid
from routing.tables.arrow_rows import plain_values
from routing.tables.encoded_texts import GroupSums

if TYPE_CHECKING:
    import pyarrow

_SPREAD = {"episodes": "sum", "observations": "sum", "since": "min", "until": "max"}


def rows_of(table: pyarrow.Table) -> list[dict[str, Any]]:
    """Return rows as plain Python."""
    names = table.column_names
    columns = zip(*(plain_values(table[name]) for name in names), strict=True)
    return [dict(zip(names, row, strict=True)) for row in columns]


@dataclass
class EpisodeQuestions:
    """The questions of all episodes, which come part by part.

    ``first`` is the episode, as a row, that asks each question first; ``alone`` counts those that ask by
    themselves, which have the numbers -1, -2, ….
    """

    judge: MessageJudge
    first: list[dict[str, Any]] = field(default_factory=list)
    alone: int = 0
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
        single_numbers = pyarrow.array(range(-1 - self.alone, -1 - self.alone - count, -1), pyarrow.int64())
        self.alone += count
        return pc.replace_with_mask(all_numbers, is_alone, single_numbers)

    def _number_alike(self, episodes: pyarrow.Table, keys: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of questions that other episodes may ask as well, and count these episodes."""
        import pyarrow
        import pyarrow.compute as pc

        first_at, conversations = (episodes[name].combine_chunks() for name in ("first_at", "conversation_id"))
        # An interval begins with each change, so that its number tells the key as well.
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
        new = first_rows.filter(pc.greater_equal(first_rows["question"], len(self.first))).sort_by("question")
        self.first.extend(rows_of(episodes.take(new["row_min"])))
        return numbers

    def judge_all(self, alone: Callable[[], Iterator[pyarrow.Table]]) -> JudgedEpisodes:
        """Return all questions, judged: those of many episodes, then those of one.

        ``alone`` reads the latter, part by part, each time that it is called.
        """
        self.judge.find_openers(self._ask(alone()))
        judged = JudgedEpisodes()
        sums = {row["question"]: row for row in rows_of(self._sums.all())}
        predictor = predictor_of(self.judge, self.first)
        for number, row in enumerate(self.first):
            episode, spread = episode_of(row), sums[number]
            judged.add(episode, predictor.predict(episode), *(spread[name] for name in _SPREAD))
        for table in alone():
            rows = rows_of(table)
            predictor = predictor_of(self.judge, rows)
            for episode in map(episode_of, rows):
                at = episode.first_at
                judged.add(episode, predictor.predict(episode), 1, episode.observations, at, at)
        return judged

    def _ask(self, alone: Iterator[pyarrow.Table]) -> Iterator[tuple[RoutedMessage, DialogFacts]]:
        """Yield the episodes that may ask for routes, as messages."""
        for table in alone:
            rows = rows_of(table)
            yield from predictor_of(self.judge, rows).list_asking(map(episode_of, rows))

    def places(self, numbers: pyarrow.Array) -> pyarrow.Array:
        """Return the places of questions among those that are judged."""
        import pyarrow.compute as pc

        of_one = pc.subtract(len(self.first) - 1, numbers)
        return pc.if_else(pc.less(numbers, 0), of_one, numbers)

    def _number_keys(self, episodes: pyarrow.Table) -> pyarrow.Array:
        """Return the numbers of the keys of episodes; of new ones it is found out what varies."""
        import pyarrow

        keys = _keys_of(episodes)
        groups = number_groups(keys, keys.column_names)
        places = pyarrow.table({"group": groups, "row": pyarrow.array(range(len(groups)), pyarrow.int64())})
        first = places.group_by("group").aggregate([("row", "min")]).sort_by("group")["row_min"]
        key_rows = list(zip(*(plain_values(keys[name].take(first)) for name in keys.column_names), strict=True))
        new = [place for place, key in enumerate(key_rows) if key not in self._keys]
        rows = rows_of(episodes.take(first.take(pyarrow.array(new, pyarrow.int64()))))
        predictor = predictor_of(self.judge, rows)
        for place, row in zip(new, rows, strict=True):
            changes, picks, is_alone = predictor.varies(episode_of(row))
            spans = [(change, [self._span_count + number]) for number, change in enumerate((*changes, None))]
            self._span_count += len(spans)
            self._keys[key_rows[place]] = self._spans.add(spans)
            self._picks.add(picks)
            self._is_alone.add(is_alone)
        return pyarrow.array([self._keys[key] for key in key_rows], pyarrow.int64()).take(groups)


def _keys_of(episodes: pyarrow.Table) -> pyarrow.Table:
    """Return the columns of episodes that make a difference at any time, whatever a dialog is hashed to."""
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
