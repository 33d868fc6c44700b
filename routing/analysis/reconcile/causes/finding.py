"""From groups of episodes to causes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from routing.analysis.reconcile.episode import Episode
from routing.analysis.reconcile.groups import Answers, Cause, Group
from routing.rules.network import Network
from routing.rules.reconciling import Class


def find_causes(
    groups: Sequence[Group],
    samples: Mapping[str, Sequence[tuple[Episode, Class]]],
    class_at: Callable[[Episode, int], Class],
    network: Network,
) -> dict[Answers, Cause]:
    """The causes of groups."""
    return {}
