"""Mutants of check's ends of messages that leave their instance."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TABLE = ("tests/unit/test_check_paths.py",)
_EACH = ("tests/unit/test_check_each_message.py",)
_BOUNDS = ("tests/unit/test_check_path_bounds.py",)
_ENDS, _FOLLOWING = "routing/rules/judging.py", "routing/cases/path_following.py"
_GROUPS = "routing/views/check/grouping.py"

MUTANTS = (
    Mutant(
        "check-mirror-has-to-arrive-too",
        "check: of an address and its mirror one is enough",
        _ENDS,
        "    for enough in (PathEnd.DELIVERED, PathEnd.NOT_KNOWN):\n",
        "    for enough in ():\n",
        _TABLE,
    ),
    Mutant(
        "check-one-route-is-enough",
        "check: each of several routes has to arrive",
        _ENDS,
        "        next((judged_ways for judged_ways in judged if judged_ways.failing), None)",
        "        next((judged_ways for judged_ways in judged if all(other.failing for other in judged)), None)",
        _TABLE,
    ),
    Mutant(
        "check-no-acknowledgement",
        "check: a message arrives once its acknowledgement comes back",
        _ENDS,
        "end=PathEnd.NO_RETURN_PATH if back.failing else back.end)",
        "end=PathEnd.DELIVERED)",
        _TABLE,
    ),
    Mutant(
        "check-acknowledged-anywhere",
        "check: the acknowledgement comes back to the database that sent",
        _ENDS,
        "if path_way.hop_path.ending is Ending.DELIVERED and is_elsewhere:",
        "if path_way.hop_path.ending is Ending.DELIVERED and is_elsewhere and False:",
        _TABLE,
    ),
    Mutant(
        "check-gaps-on-the-path",
        "check: a way ends where what decides was not read",
        _FOLLOWING,
        "        if unread_gaps:\n            known_part = HopPath",
        "        if False:\n            known_part = HopPath",
        _TABLE,
    ),
    Mutant(
        "check-ways-of-a-group",
        "check: at most a hundred ways of a group are followed",
        _FOLLOWING,
        "self._ways_left[group] -= len(path.there)",
        "self._ways_left[group] -= 0",
        _BOUNDS,
    ),
    Mutant(
        "check-destination-of-the-first",
        "check: all messages of a group have one destination",
        _GROUPS,
        "            verdict.destination_database,\n            verdict.rerouted_from,",
        "            None,\n            verdict.rerouted_from,",
        _EACH,
    ),
    Mutant(
        "check-route-of-the-first",
        "check: all messages of a group were led back by one route",
        _GROUPS,
        "            verdict.destination_database,\n            verdict.rerouted_from,",
        "            verdict.destination_database,\n            None,",
        ("tests/unit/test_check_review.py",),
    ),
)
