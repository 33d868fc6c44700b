"""Compare the verdict on a message with SQL Server's report about it.

`rules.observed` compares numbers. This module adds pairs that only events have. SQL Server's hash is not
published, so another pick of the same broker instances does not contradict the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from routing.rules import observed, text
from routing.rules.observed import NumberAgreement
from routing.rules.resolving import Verdict
from routing.terms import FORWARD_DROPPED, LEAVES, STAYS, Outcome, Reason, Word


class PairClass(Word):
    """The class of an observation compared with its prediction."""

    CONFIRMED = "CONFIRMED"
    COMPATIBLE = "COMPATIBLE"
    CONTRADICTED = "CONTRADICTED"
    NOT_OBSERVED = "NOT_OBSERVED"
    NOT_PREDICTED = "NOT_PREDICTED"


MATCHING = (PairClass.CONFIRMED, PairClass.COMPATIBLE)
"""The classes that do not contradict the tables."""


class SeenMessage(NamedTuple):
    """The facts that SQL Server reported about a message.

    ``outcome`` is None if it is unknown. ``broker_instance`` is folded, ``next_hop`` keeps its spelling.
    ``is_unknown_text``: a status text without a known number. Hops and seconds come from events of forwarded
    messages, and are otherwise None.
    """

    source: str
    outcome: Outcome | None = None
    error_number: int | None = None
    broker_instance: str | None = None
    next_hop: str | None = None
    is_unknown_text: bool = False
    hops_remaining: int | None = None
    time_to_live_seconds: int | None = None
    live_time_seconds: int | None = None


class PairComparison(NamedTuple):
    """The class of a pair. ``why`` is an explanation in one sentence, or None."""

    kind: PairClass
    why: str | None = None


_OF_AGREEMENT = {
    NumberAgreement.AGREES: PairClass.CONFIRMED,
    NumberAgreement.COMPATIBLE: PairClass.COMPATIBLE,
    NumberAgreement.CONTRADICTS: PairClass.CONTRADICTED,
    NumberAgreement.SAYS_NOTHING: PairClass.NOT_OBSERVED,
}

UNKNOWN_TEXT = PairComparison(PairClass.NOT_OBSERVED, "A text that this project does not know.")
NOTHING_SAID = PairComparison(PairClass.NOT_OBSERVED, "Not tried yet, or not about a route.")
WAITS = PairComparison(PairClass.COMPATIBLE, "A blank status: sent, and not acknowledged yet.")
ALIKE = PairComparison(PairClass.CONFIRMED)
NO_NUMBER = PairComparison(PairClass.COMPATIBLE, "The same outcome; SQL Server did not say why.")
LIVED_LONG = PairComparison(PairClass.COMPATIBLE, "Its lifetime was over, which no route shows.")
OTHER_OUTCOME = PairComparison(PairClass.CONTRADICTED, "SQL Server itself had another outcome.")
OTHER_HOP = PairComparison(PairClass.CONTRADICTED, "SQL Server sent it to another address.")
OTHER_BROKER = PairComparison(PairClass.CONTRADICTED, "SQL Server bound it to another broker instance.")
OTHER_OF_TIER = PairComparison(PairClass.COMPATIBLE, "Another route that is as good, and balanced over.")
CALLED_OTHERWISE = "SQL Server's event calls the message {}."
OTHER_PICK = PairComparison(
    PairClass.COMPATIBLE, "Another pick of the same broker instances; the hash of SQL Server is not published."
)


@dataclass(frozen=True)
class PairRule:
    """A condition on an observation and a prediction, with their class."""

    holds: Callable[[SeenMessage, Verdict, bool], bool]
    says: Callable[[SeenMessage, Verdict, bool], PairComparison]


def _by_number(observed_message: SeenMessage, verdict: Verdict, in_msdb: bool) -> PairComparison:
    """Compare by the number (`rules.observed`), and by the outcome of the event."""
    compared = observed.compare(verdict.reason, observed_message.error_number, in_msdb=in_msdb)
    kind = _OF_AGREEMENT[compared.agreement]
    if kind is PairClass.CONFIRMED and observed_message.outcome not in (None, verdict.outcome):
        return PairComparison(PairClass.COMPATIBLE, CALLED_OTHERWISE.format(observed_message.outcome))
    return PairComparison(kind, compared.why)


def _by_hop(observed_message: SeenMessage, verdict: Verdict, in_msdb: bool) -> PairComparison:
    """Compare equal outcomes by address and broker instance, if SQL Server reported them."""
    hop = None if observed_message.next_hop is None else text.comparable_address(observed_message.next_hop)
    if hop is not None and hop not in _compared([verdict.address, verdict.mirror_address]):
        return OTHER_OF_TIER if hop in _compared(verdict.addresses) else OTHER_HOP
    if None not in (observed_message.broker_instance, verdict.broker_instance) and (
        observed_message.broker_instance != verdict.broker_instance
    ):
        return OTHER_BROKER
    return ALIKE


def _compared(addresses: Iterable[str | None]) -> set[str]:
    return {text.comparable_address(address) for address in addresses if address is not None}


def _lived_long(observation: SeenMessage, verdict: Verdict, in_msdb: bool) -> bool:
    lived, allowed = observation.live_time_seconds, observation.time_to_live_seconds
    return observation.source == FORWARD_DROPPED and lived is not None and allowed is not None and lived >= allowed


def _is_blank(observation: SeenMessage, verdict: Verdict, in_msdb: bool) -> bool:
    return observation.outcome is None and observation.error_number is None


def _is_same_without_why(observation: SeenMessage, verdict: Verdict, in_msdb: bool) -> bool:
    """Return True if an event reports DELAYED or DROPPED without a reason, and its hops show none."""
    hops = observation.hops_remaining
    tells_why = verdict.reason is Reason.HOP_LIMIT and hops is not None and hops <= 0
    return observation.outcome in STAYS and not tells_why


RULES = (
    PairRule(lambda observation, verdict, _: observation.is_unknown_text, lambda *_: UNKNOWN_TEXT),
    PairRule(_lived_long, lambda *_: LIVED_LONG),
    PairRule(lambda observation, verdict, _: observation.error_number is not None, _by_number),
    PairRule(lambda *pair: _is_blank(*pair) and pair[1].outcome in LEAVES, lambda *_: WAITS),
    PairRule(_is_blank, lambda *_: NOTHING_SAID),
    PairRule(lambda observation, verdict, _: observation.outcome is not verdict.outcome, lambda *_: OTHER_OUTCOME),
    PairRule(_is_same_without_why, lambda *_: NO_NUMBER),
    PairRule(lambda *_: True, _by_hop),
)
"""The first rule that holds decides. The last one holds for every pair with the predicted outcome."""


def compare(
    observation: SeenMessage, verdict: Verdict, alternatives: Sequence[Verdict] = (), *, in_msdb: bool = False
) -> PairComparison:
    """Compare an observation with a verdict. ``in_msdb``: the last search was in msdb.

    ``alternatives`` are the verdicts of the other broker instances that step 3 may pick (section 2.3).
    """
    comparison = _compare(observation, verdict, in_msdb)
    if comparison.kind is PairClass.CONTRADICTED:
        kinds = (_compare(observation, other, in_msdb).kind for other in alternatives)
        if any(kind in MATCHING for kind in kinds):
            return OTHER_PICK
    return comparison


def _compare(observation: SeenMessage, verdict: Verdict, in_msdb: bool) -> PairComparison:
    rule = next(rule for rule in RULES if rule.holds(observation, verdict, in_msdb))
    return rule.says(observation, verdict, in_msdb)
