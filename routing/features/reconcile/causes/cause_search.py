"""From groups of episodes to what is most likely off: the searches, in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from routing.features.reconcile.causes.changed_routes import find_change, find_hidden
from routing.features.reconcile.causes.clock_offsets import clock_cause, find_offset, has_changes
from routing.features.reconcile.causes.missing_instances import find_missing
from routing.features.reconcile.causes.misspelt_names import find_near_name
from routing.features.reconcile.causes.observed_lanes import ObservedLane, lanes_of
from routing.features.reconcile.episode import ObservedEpisode
from routing.features.reconcile.groups import EpisodeGroup, GroupAnswers, MismatchCause
from routing.rules.network import EstateNetwork
from routing.rules.reconciling import PairClass


def find_causes(
    groups: Sequence[EpisodeGroup],
    samples: Mapping[str, Sequence[tuple[ObservedEpisode, PairClass]]],
    class_at: Callable[[ObservedEpisode, int], PairClass],
    network: EstateNetwork,
) -> dict[GroupAnswers, MismatchCause]:
    """Return the likely cause of each group that contradicts the tables, or of which nothing is predicted, if any.

    ``groups`` are all there are: what is right tells since when something is wrong. ``samples`` has by instance
    some of the contradicted episodes and of the others, with their classes; ``class_at`` is the class that an
    episode would have at another time (microseconds).
    """
    # Whatever order they were found in.
    groups = sorted(groups, key=lambda group: (group.first_at, tuple(map(str, group.answers))))
    causes: dict[GroupAnswers, MismatchCause] = {}
    for group in groups:
        cause = find_missing(group.answers, network) if group.answers.rejections else None
        if cause is not None:
            causes[group.answers] = cause
    offsets = {
        instance: find_offset(sampled, class_at)
        for instance, sampled in samples.items()
        if has_changes(network.instances.get(instance))
    }
    # A name that messages ask for, wherever they do, is no slip.
    in_use = {group.answers.service for group in groups if group.answers.service is not None}
    for lane in lanes_of(groups).values():
        offset = offsets.get(lane.place.instance)
        for group in lane.off:
            cause = (
                _of_lane(group, lane, network, in_use)
                if offset is None
                else clock_cause(lane.place.instance, offset)
            )
            if cause is not None:
                causes[group.answers] = cause
    return causes


def _of_lane(
    group: EpisodeGroup, lane: ObservedLane, network: EstateNetwork, in_use: set[str]
) -> MismatchCause | None:
    """Return the first search that finds something."""
    instance = network.instances[lane.place.instance]
    return (
        find_near_name(group.answers, lane.place, instance, in_use)
        or find_change(group, lane, instance)
        or find_hidden(group, lane, instance)
    )
