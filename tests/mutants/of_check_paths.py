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
        "        next((joint_ending for joint_ending in endings if joint_ending.failing_paths), None)",
        "        next((one for one in endings if all(other.failing_paths for other in endings)), None)",
        _TABLE,
    ),
    Mutant(
        "check-no-acknowledgement",
        "check: a message arrives once its acknowledgement comes back",
        _ENDS,
        "end=PathEnd.NO_RETURN_PATH if joint_ending.failing_paths else joint_ending.end\n",
        "end=PathEnd.DELIVERED\n",
        _TABLE,
    ),
    Mutant(
        "check-acknowledged-anywhere",
        "check: the acknowledgement comes back to the database that sent",
        _ENDS,
        "if possible_path.hop_path.ending is Ending.DELIVERED and is_elsewhere:",
        "if possible_path.hop_path.ending is Ending.DELIVERED and is_elsewhere and False:",
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
        "self._paths_left[group] -= len(path.forward_paths)",
        "self._paths_left[group] -= 0",
        _BOUNDS,
    ),
    Mutant(
        "check-destination-of-the-first",
        "check: all messages of a group have one destination",
        _GROUPS,
        "verdict.address, verdict.destination_database\n    return (",
        "verdict.address, None\n    return (",
        _EACH,
    ),
    Mutant(
        "check-route-of-the-first",
        "check: all messages of a group were led back by one route",
        _GROUPS,
        "return (*facts, *route, verdict.rerouted_from)",
        "return (*facts, *route, None)",
        ("tests/unit/test_check_review.py",),
    ),
)
