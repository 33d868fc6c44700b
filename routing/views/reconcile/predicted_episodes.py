"""Predict every episode. Shared facts are stored once, and rows refer to them by number."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import lcm
from typing import NamedTuple

from routing.plan.verdicts import KeyedMessages, MessageJudge, may_ask
from routing.rules import reconciling
from routing.rules.deciding import Decision
from routing.rules.reconciling import PairClass, PairComparison
from routing.rules.rejecting import is_sound, rejections
from routing.rules.resolving import (
    DialogFacts,
    RoutedMessage,
    Verdict,
    bound_broker,
    plain_columns,
)
from routing.rules.text import comparable_address
from routing.terms import FORWARD_DROPPED, MSDB, TRANSMISSION_QUEUE, ReadRow, Rejection, TableRow
from routing.views.reconcile.episodes import (
    EpisodeCount,
    EpisodeGroup,
    GroupAnswers,
    ObservedEpisode,
    PickedInstances,
)


class EpisodePrediction(NamedTuple):
    """An episode's prediction and class. ``verdict`` is None if ``rejections`` prevent a prediction.

    ``picks`` is the number of broker instances that the dialog-ID hash picks from, or None without a pick.
    """

    verdict: Verdict | None
    picks: int | None
    compared: PairComparison
    rejections: tuple[str, ...] = ()


class _Question(NamedTuple):
    """An episode as a message with its dialog, and the decisions for equal messages."""

    message: RoutedMessage
    dialog: DialogFacts
    keyed: KeyedMessages

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The possible decisions: one, or one for each broker instance that step 3 may pick."""
        return self.keyed.decisions(self.message.t)


@dataclass
class EpisodePredictor:
    """Judges each episode as a message by the rules (sections 0 to 6).

    If episodes may ask for a route, pass all of them to `find_openers` before the first is judged.
    """

    messages: MessageJudge

    def find_openers(self, episodes: Iterable[ObservedEpisode]) -> None:
        """Find out which episodes open a request for a route (section 5)."""
        asking = asking_instances(self.messages)
        self.messages.find_openers(
            self.list_messages(episode for episode in episodes if episode.instance in asking)
        )

    def list_messages(self, episodes: Iterable[ObservedEpisode]) -> Iterator[tuple[RoutedMessage, DialogFacts]]:
        """Yield the messages of predictable episodes with their dialogs."""
        answers_to_ask = map(self._ask, episodes)
        return ((episode.message, episode.dialog) for episode in answers_to_ask if isinstance(episode, _Question))

    def predict(self, episode: ObservedEpisode) -> EpisodePrediction:
        """Predict an episode as of its start, and compare."""
        question = self._ask(episode)
        if not isinstance(question, _Question):
            why = f"There is no prediction: {', '.join(question)}."
            return EpisodePrediction(None, None, PairComparison(PairClass.NOT_PREDICTED, why), question)
        message = question.message
        verdict = self.messages.verdict(message, question.dialog)
        picks = {decision.pick for decision in question.decisions}
        decisions, hops = question.decisions if len(picks) > 1 else (), message.hops_remaining
        alternatives = [question.keyed.verdict_of(decision, hops) for decision in decisions]
        in_msdb = message.database in (None, MSDB) or verdict.rerouted_from is not None
        compared = reconciling.compare(episode.message, verdict, alternatives, in_msdb=in_msdb)
        return EpisodePrediction(verdict, len(picks) if len(picks) > 1 else None, compared)

    def varies(self, episode: ObservedEpisode) -> tuple[tuple[int, ...], int, bool]:
        """Return the further facts that decide an episode: times, the dialog-ID hash, and requests.

        The times (microseconds) are those at which decisions for such messages change. The number is the divisor
        of the hash. The last value is True if the episode asks for a route, so that it needs its own question.
        """
        question = self._ask(episode)
        if not isinstance(question, _Question):
            return (), 1, False
        timelines = [question.keyed.timeline]
        event_broker = _broker_of_event(episode)
        if event_broker is not None:
            # An event's id is a pick or the message's own id, depending on the time.
            for broker in (event_broker, episode.own):
                message = replace(question.message, broker=broker)
                timelines.append(self._of_key(message, question.dialog).keyed.timeline)
        changes = sorted({moment for timeline in timelines for moment in timeline.changes})
        decided = [timeline.at(t).choices for timeline in timelines for t in ((changes or [0])[0] - 1, *changes)]
        asks = any(decision.asks or decision.asks_again for decisions in decided for decision in decisions)
        return tuple(changes), lcm(*map(len, decided)), asks

    def _ask(self, episode: ObservedEpisode) -> _Question | tuple[str, ...]:
        codes = self._rejections(episode)
        if codes or episode.service is None or episode.is_initiator is None:
            return codes
        event_broker, dialog = _broker_of_event(episode), episode.dialog
        # Queue rows that an older release imported have no broker instance.
        queued_broker = None if event_broker is not None else episode.message.broker_instance
        hops = episode.message.hops_remaining if episode.message.source == FORWARD_DROPPED else None
        message = RoutedMessage(
            f"{episode.conversation}:{'I' if episode.is_initiator else 'T'}",
            episode.conversation,
            episode.is_initiator,
            episode.first_at,
            episode.instance,
            episode.database,
            episode.service,
            queued_broker or episode.own,
            hops,
        )
        question = self._of_key(message, dialog)
        if event_broker is None or episode.is_named or bound_broker(message, dialog) is not None:
            return question
        # The id of an event is the picked one, or otherwise the earlier id of the message.
        picked = {decision.pick for decision in question.decisions}
        return question if event_broker in picked else self._of_key(replace(message, broker=event_broker), dialog)

    def _of_key(self, message: RoutedMessage, dialog: DialogFacts) -> _Question:
        return _Question(message, dialog, self.messages.keyed(message, dialog))

    def _rejections(self, episode: ObservedEpisode) -> tuple[str, ...]:
        instance, conversation = self.messages.instances.get(episode.instance), episode.conversation
        database, is_known = episode.database, False
        if instance is not None:
            is_known = database in instance.databases if database is not None else episode.is_arrival
        if is_known and is_sound(
            conversation, conversation, episode.is_initiator, episode.first_at, episode.service, None
        ):
            return ()
        row: ReadRow = {
            "message_id": conversation,
            "conversation_id": conversation,
            "is_initiator": episode.is_initiator,
            "enqueue_time": episode.first_at,
            "instance_name": episode.instance,
            "database_name": database,
            "to_service_name": episode.service,
            "hops_remaining": None,
        }
        codes = rejections(row, instance)
        if not episode.is_arrival and database is None:
            codes.append(Rejection.missing("database_name"))
        return tuple(codes)


def asking_instances(judge: MessageJudge) -> set[str]:
    """Return the instances with routes that let a message ask for a route."""
    return {
        name
        for name, instance in judge.instances.items()
        if any(may_ask(instance, database) for database in (None, *instance.databases))
    }


def _broker_of_event(episode: ObservedEpisode) -> str | None:
    """Return the broker instance of an event. A queue holds the id of the message, not the picked one."""
    return None if episode.message.source == TRANSMISSION_QUEUE else episode.message.broker_instance


class PredictionColumns(NamedTuple):
    """The output's columns of a prediction, except those of the cause."""

    predicted_outcome: str | None
    predicted_reason: str | None
    predicted_broker_instance: str | None
    matching_step: int | None
    route_name: str | None
    address: str | None
    mirror_address: str | None
    destination_database: str | None
    broker_instances: int | None
    kind: str
    why: str | None


_OF_VERDICT = (
    *("outcome", "reason", "broker_instance", "matching_step", "route_name", "address", "mirror_address"),
    "destination_database",
)
"""The fields of a verdict in the first columns of `PredictionColumns`."""


@dataclass
class JudgedEpisodes:
    """Questions of episodes, judged in their order.

    ``prediction_of`` and ``group_of`` have, for each, the places in ``predictions`` and ``groups``. ``balanced``
    is by instance, service and number of broker instances.
    """

    groups: list[EpisodeGroup] = field(default_factory=list)
    prediction_of: array[int] = field(default_factory=lambda: array("q"))
    group_of: array[int] = field(default_factory=lambda: array("q"))
    balanced: dict[tuple[str, str, int], PickedInstances] = field(default_factory=dict)
    _predictions: dict[PredictionColumns, int] = field(default_factory=dict, repr=False)
    _grouped: dict[GroupAnswers, int] = field(default_factory=dict, repr=False)

    def add(
        self,
        episode: ObservedEpisode,
        predicted: EpisodePrediction,
        episodes: int,
        observations: int,
        since: int,
        until: int,
    ) -> None:
        """Add an episode that represents others, with their number of observations and range of starts."""
        prediction, answers = _prediction_columns(predicted), answers_of(episode, predicted)
        self.prediction_of.append(self._predictions.setdefault(prediction, len(self._predictions)))
        place = self._grouped.setdefault(answers, len(self.groups))
        if place == len(self.groups):
            self.groups.append(EpisodeGroup(0, 0, since, until, answers))
        self.groups[place].add(EpisodeCount(episodes, observations, since, until))
        self.group_of.append(place)
        event_broker = _broker_of_event(episode)
        if prediction.broker_instances and episode.service and event_broker is not None:
            key = (episode.instance, episode.service, prediction.broker_instances)
            picks = self.balanced.setdefault(key, PickedInstances())
            picks.episodes += episodes
            picks.same += episodes * (prediction.predicted_broker_instance == event_broker)

    @property
    def predictions(self) -> list[PredictionColumns]:
        """The texts of predictions, each once."""
        return list(self._predictions)


def answers_of(episode: ObservedEpisode, predicted: EpisodePrediction) -> GroupAnswers:
    """Return the facts that episodes of one group share."""
    verdict, seen_message = predicted.verdict, episode.message
    return GroupAnswers(
        episode.instance,
        episode.database,
        episode.service,
        predicted.compared.kind,
        seen_message.source,
        seen_message.outcome,
        seen_message.error_number,
        None if seen_message.next_hop is None else comparable_address(seen_message.next_hop),
        seen_message.broker_instance,
        None if verdict is None else verdict.outcome,
        None if verdict is None else verdict.reason,
        None if verdict is None else verdict.route_name,
        None if verdict is None else verdict.address,
        predicted.rejections,
    )


def _prediction_columns(predicted: EpisodePrediction) -> PredictionColumns:
    verdict, (kind, why) = predicted.verdict, predicted.compared
    values: TableRow = dict.fromkeys(_OF_VERDICT) if verdict is None else plain_columns(verdict, _OF_VERDICT)
    return PredictionColumns._make((*values.values(), predicted.picks, str(kind), why))
