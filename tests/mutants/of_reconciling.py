"""Mutants of comparing SQL Server's actions with the routes."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_WHOLE = ("tests/unit/test_reconcile.py", "tests/unit/test_reconcile_causes.py")


def _rule(name: str, rule: str, before: str, after: str) -> Mutant:
    return Mutant(name, rule, "routing/rules/reconciling.py", before, after)


def _room(room: str, name: str, rule: str, before: str, after: str) -> Mutant:
    return Mutant(name, rule, f"routing/views/reconcile/{room}.py", before, after, tests=_WHOLE)


MUTANTS = (
    _rule(
        "delayed-is-dropped",
        "an event's other word beside a number that agrees is compatible",
        "if kind is PairClass.CONFIRMED and observed_message.outcome not in (None, verdict.outcome):",
        "if kind is PairClass.CONTRADICTED and observed_message.outcome not in (None, verdict.outcome):",
    ),
    _rule(
        "other-pick-contradicts",
        "what follows from another pick of the same ids is compatible",
        "if any(kind in MATCHING for kind in kinds):",
        "if all(kind in MATCHING for kind in kinds):",
    ),
    _rule(
        "mirror-is-another-hop",
        "a message that goes to the mirror goes where it is sent",
        "if hop is not None and hop not in _compared([verdict.address, verdict.mirror_address]):",
        "if hop is not None and hop not in _compared([verdict.address]):",
    ),
    _rule(
        "blank-of-what-is-delayed",
        "a blank status is compatible with what leaves alone",
        "pair[1].outcome in LEAVES",
        "pair[1].outcome in (*LEAVES, Outcome.DELAYED)",
    ),
    _rule(
        "lives-for-ever",
        "what was dropped when its time to live was over is compatible",
        "lived is not None and allowed is not None and lived >= allowed",
        "lived is not None and allowed is not None and lived > allowed",
    ),
    _room(
        "episodes",
        "episodes-a-minute-apart",
        "observations less than 192 seconds apart are one episode",
        "APART = 192_000_000",
        "APART = 128_000_000",
    ),
    _room(
        "predicted_episodes",
        "picked-id-is-bound",
        "the id of an event is a pick where the open message is balanced over it",
        "return question if event_broker in picked else",
        "return question if event_broker not in picked else",
    ),
    _room(
        "predicted_episodes",
        "judged-at-its-end",
        "an episode is judged as of its start",
        "            episode.is_initiator,\n            episode.first_at,\n",
        "            episode.is_initiator,\n            episode.first_at + 192_000_000,\n",
    ),
    _room(
        "arrow_reconcile",
        "one-service-in-many-buckets",
        "what was right for a service tells since when it is wrong",
        '_BUCKET = ("instance_name", "to_service_name")',
        '_BUCKET = ("conversation_id",)',
    ),
    _room(
        "arrow_reconcile",
        "asked-for-in-a-bucket",
        "a request for a route is opened by the first of all observations",
        "self.judge.find_openers(self._list_asking())",
        "self.judge.find_openers(())",
    ),
    _room(
        "cause_search",
        "right-again-is-a-change",
        "a route changed where what was right was not seen again",
        "if _observed_facts(earlier.answers) not in facts_seen_again and",
        "if _observed_facts(earlier.answers) in facts_seen_again or",
    ),
    _room(
        "cause_search",
        "names-in-use-are-slips",
        "a name that messages ask for is no slip",
        "if service is not None and service not in in_use and is_near(place.service, service):",
        "if service is not None and is_near(place.service, service):",
    ),
)
