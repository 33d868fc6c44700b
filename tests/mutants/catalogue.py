"""All mutants of rules and of the order of runs, and the parts of the rule book that they must cover."""

from __future__ import annotations

from routing.rules.choosing import TIERS
from routing.terms import MatchingStep, Reason
from tests.mutants import (
    of_candidates,
    of_check_paths,
    of_choosing,
    of_commands,
    of_following,
    of_forms,
    of_matching,
    of_messages,
    of_protocol,
    of_reconciling,
    of_resolving,
    of_statuses,
)

MUTANTS = (
    *of_matching.MUTANTS,
    *of_choosing.MUTANTS,
    *of_resolving.MUTANTS,
    *of_following.MUTANTS,
    *of_messages.MUTANTS,
    *of_forms.MUTANTS,
    *of_protocol.MUTANTS,
    *of_reconciling.MUTANTS,
    *of_statuses.MUTANTS,
    *of_commands.MUTANTS,
    *of_candidates.MUTANTS,
    *of_check_paths.MUTANTS,
)

# Each is broken by one mutant at least, in the plain rules or, as D7's namespace, where it stands.
RULE_BOOK = (
    *(f"step {int(step)}" for step in MatchingStep),
    *(f"tier {tier.letter}" for tier in TIERS),
    *(str(reason) for reason in Reason),
    *(f"D{number}" for number in range(1, 17)),
    "order of steps",
    "order of tiers",
    "bounds of time",
    "order of requests",
    "dialog hash",
)
