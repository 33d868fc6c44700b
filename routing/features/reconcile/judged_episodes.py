"""Every episode beside its prediction: what they have in common told once, and for each row a number."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from routing.features.reconcile.episode import ObservedEpisode
from routing.features.reconcile.groups import EpisodeGroup, GroupAnswers, PickedInstances
from routing.features.reconcile.predicting import EpisodePrediction, EpisodePredictor
from routing.rules.reconciling import PairClass
from routing.rules.text import comparable_address
from routing.terms import TRANSMISSION_QUEUE

SAMPLED = 400
"""So many contradicted episodes of an instance, and of others, are looked at for a cause."""


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


@dataclass
class JudgedEpisodes:
    """All episodes, judged in their order.

    ``prediction_of`` and ``group_of`` have, for each, the places in ``predictions`` and ``groups``. ``balanced``
    is by instance, service and number of broker ids.
    """

    groups: list[EpisodeGroup] = field(default_factory=list)
    prediction_of: array[int] = field(default_factory=lambda: array("q"))
    group_of: array[int] = field(default_factory=lambda: array("q"))
    balanced: dict[tuple[str, str, int], PickedInstances] = field(default_factory=dict)
    _predictions: dict[PredictionColumns, int] = field(default_factory=dict, repr=False)
    _grouped: dict[GroupAnswers, int] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, episodes: Iterable[ObservedEpisode], predictor: EpisodePredictor) -> JudgedEpisodes:
        """Judge episodes as of their starts; the predictor knows already which of them ask for routes."""
        judged = cls()
        for episode in episodes:
            at = episode.first_at
            judged.add(episode, predictor.predict(episode), 1, episode.observations, at, at)
        return judged

    def add(
        self,
        episode: ObservedEpisode,
        predicted: EpisodePrediction,
        episodes: int,
        observations: int,
        since: int,
        until: int,
    ) -> None:
        """Add an episode that stands for some, of so many observations, which began from one time to another."""
        prediction, answers = _prediction_columns(predicted), answers_of(episode, predicted)
        self.prediction_of.append(self._predictions.setdefault(prediction, len(self._predictions)))
        place = self._grouped.get(answers)
        if place is None:
            place = self._grouped[answers] = len(self.groups)
            self.groups.append(EpisodeGroup(answers, 0, since, until))
        group = self.groups[place]
        group.episodes += episodes
        group.observations += observations
        group.first_at, group.last_at = min(group.first_at, since), max(group.last_at, until)
        self.group_of.append(place)
        if prediction.broker_instances and episode.service and _tells_pick(episode):
            key = (episode.instance, episode.service, prediction.broker_instances)
            picks = self.balanced.setdefault(key, PickedInstances())
            picks.episodes += episodes
            picks.same += episodes * (prediction.predicted_broker_instance == episode.broker_told)

    @property
    def predictions(self) -> list[PredictionColumns]:
        """The texts of predictions, each once."""
        return list(self._predictions)

    @property
    def has_trouble(self) -> bool:
        """Whether there is anything of which a cause is looked for."""
        wanted = (PairClass.CONTRADICTED, PairClass.NOT_PREDICTED)
        return any(group.answers.kind in wanted for group in self.groups)

    @property
    def contradicted(self) -> set[str]:
        """The instances that have contradicted episodes."""
        kinds = ((group.answers.instance, group.answers.kind) for group in self.groups)
        return {instance for instance, kind in kinds if kind is PairClass.CONTRADICTED}

    def sampled(self, starts: Sequence[int]) -> Mapping[str, list[int]]:
        """Sample places of contradicted episodes and of others, by instance with contradicted ones.

        Of each kind a few hundred, evenly over time; ``starts`` are when they began.
        """
        off, others = self._contradicted()
        return {
            instance: [*_spread(places, starts), *_spread(others[instance], starts)]
            for instance, places in off.items()
        }

    def _contradicted(self) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        answers = [group.answers for group in self.groups]
        off: dict[str, list[int]] = {}
        others: dict[str, list[int]] = {}
        for place, group in enumerate(self.group_of):
            one = answers[group]
            if one.kind is not PairClass.NOT_PREDICTED:
                kinds = off if one.kind is PairClass.CONTRADICTED else others
                kinds.setdefault(one.instance, []).append(place)
        return off, {instance: others.get(instance, []) for instance in off}


def answers_of(episode: ObservedEpisode, predicted: EpisodePrediction) -> GroupAnswers:
    """Return the facts that episodes of one group share."""
    verdict, seen = predicted.verdict, episode.seen
    return GroupAnswers(
        episode.instance,
        episode.database,
        episode.service,
        predicted.compared.kind,
        episode.source,
        seen.outcome,
        seen.error_number,
        None if seen.next_hop is None else comparable_address(seen.next_hop),
        seen.broker_instance,
        None if verdict is None else verdict.outcome,
        None if verdict is None else verdict.reason,
        None if verdict is None else verdict.route_name,
        None if verdict is None else verdict.address,
        predicted.rejections,
    )


def _prediction_columns(predicted: EpisodePrediction) -> PredictionColumns:
    verdict, (kind, why) = predicted.verdict, predicted.compared
    if verdict is None:
        return PredictionColumns(None, None, None, None, None, None, None, None, None, str(kind), why)
    step = verdict.matching_step
    return PredictionColumns(
        str(verdict.outcome),
        str(verdict.reason),
        verdict.broker_instance,
        None if step is None else int(step),
        verdict.route_name,
        verdict.address,
        verdict.mirror_address,
        verdict.destination_database,
        predicted.picks,
        str(kind),
        why,
    )


def _tells_pick(episode: ObservedEpisode) -> bool:
    """Return True if the observed id is one that SQL Server picked; a queue holds the message's own."""
    return episode.broker_told is not None and episode.source != TRANSMISSION_QUEUE


def _spread(places: Sequence[int], starts: Sequence[int]) -> Iterator[int]:
    """Yield at most `SAMPLED` of some places, evenly over time: the first of each step."""
    ordered = sorted(places, key=lambda place: starts[place])
    step = max(len(ordered) / SAMPLED, 1)
    return (place for number, place in enumerate(ordered) if not number or number // step > (number - 1) // step)
