"""What is said of open dialogs that get several target endpoints, and how many there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from routing.features.lint.hazards import Hazards, ProvedHazard
from routing.features.lint.lint_finding import LintFinding, finding, list_names
from routing.features.lint.open_messages import OpenChoice, OpenMessageFollower
from routing.features.lint.resolved import OpenDialogs
from routing.rules.following import OPEN_STEPS
from routing.rules.ways import MessageTrace

OpenDialogsOf = Callable[[Collection[str]], Sequence[OpenDialogs]]
"""The open dialogs of messages to some services."""
_SHOWN = 3


def several_targets(
    follower: OpenMessageFollower, hazards: Hazards, dialogs_of: OpenDialogsOf | None
) -> Iterator[LintFinding]:
    """Find SBR041: one finding for the routes of a scope that lead to the same ends, whatever the services.

    With messages it says how many open dialogs they are of that take such a choice, wherever they were sent.
    """
    risks = {} if dialogs_of is None or not hazards else _dialogs_at_risk(follower, hazards, dialogs_of)
    grouped: dict[tuple[tuple[str, str], ProvedHazard], list[OpenChoice]] = {}
    for choice, hazard in hazards.items():
        grouped.setdefault((choice[:2], hazard), []).append(choice)
    for (place, hazard), choices in grouped.items():
        shown, rest = hazard.ends[:_SHOWN], len(hazard.ends) - _SHOWN
        sentence = "open dialogs to '%s' end at " + ", ".join(["%s (%s)"] * len(shown))
        sentence += f" and {rest} more, by %s" if rest > 0 else ", by %s"
        values = [list_names(one.service for one in choices), *chain(*shown), list_names(hazard.routes)]
        risk = _Risk.together([risks[choice] for choice in choices if choice in risks])
        if risk is not None:
            also, counts = risk.phrased()
            sentence, values = sentence + also, values + counts
        yield finding("SBR041", place, hazard.routes[0], sentence, *values)


class _Risk(NamedTuple):
    """Open dialogs that take a choice: how many, and the first by id; ``is_sure``: whatever is picked later."""

    dialogs: int
    first: str
    is_sure: bool

    def phrased(self) -> tuple[str, list[str]]:
        """Return the end of a finding's message, and the values for its placeholders."""
        if self.is_sure:
            return "; dialogs at risk: %s, such as %s", [str(self.dialogs), self.first]
        return "; dialogs at risk: up to %s, by what forwarders pick for them", [str(self.dialogs)]

    @classmethod
    def together(cls, risks: Sequence[_Risk]) -> _Risk | None:
        """Add up risks; None where there are none."""
        if not risks:
            return None
        return cls(
            sum(one.dialogs for one in risks), min(one.first for one in risks), all(one.is_sure for one in risks)
        )


def _dialogs_at_risk(
    follower: OpenMessageFollower, hazards: Hazards, dialogs_of: OpenDialogsOf
) -> dict[OpenChoice, _Risk]:
    """Return the open dialogs whose messages come by each choice, at the first instance or on their way."""
    risks_by_choice: dict[OpenChoice, list[_Risk]] = {}
    for group in dialogs_of({choice.service for choice in hazards}):
        sender = follower.network.instances.get(group.instance)
        if sender is None or group.database not in sender.databases:
            continue
        traces = list(follower.traces(OpenChoice(group.instance, group.database, group.service)))
        passed = [_passed(trace, group.service, hazards) for trace in traces]
        for choice in set().union(*passed):
            is_sure = all(choice in of_hash for of_hash in passed)
            risks_by_choice.setdefault(choice, []).append(_Risk(group.dialogs, group.first, is_sure))
    together = {choice: _Risk.together(risks) for choice, risks in risks_by_choice.items()}
    return {choice: risk for choice, risk in together.items() if risk is not None}


def _passed(trace: MessageTrace, service: str, hazards: Hazards) -> set[OpenChoice]:
    """Return the proved choices that a message comes by while it is open."""
    if not trace.has_multiple_targets:
        return set()
    hops = (
        hop
        for path in trace.ways
        for hop in path.hops
        if hop.matching_step in OPEN_STEPS and hop.broker_instance is None
    )
    return {OpenChoice(hop.instance_name, hop.scope, service) for hop in hops} & hazards.keys()
