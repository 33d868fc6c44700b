"""Two neighbours of a list of the rule book in each other's place: every command must follow."""

from __future__ import annotations

from collections.abc import Iterator

from tests.mutants.mutant import Mutant

_FOLLOW = "tests/unit/test_commands_follow.py::test_all_commands_use_the_same_first_route"
_COMMANDS = ("resolve", "candidates", "explain", "trace", "check", "diff")
_STEPS = (
    "    SearchStep(MatchingStep.SERVICE, service),\n",
    "    SearchStep(MatchingStep.BALANCED, balanced),\n",
)
_TIERS = (
    '    RouteTier("B", is_local, unless_located, Reason.LOCAL_SERVICE, never),\n',
    '    RouteTier("C", is_network, always, Reason.NETWORK_ADDRESS, has_own_address),\n',
)


def _swapped(what: str, file: str, lines: tuple[str, str]) -> Iterator[Mutant]:
    before, after = "".join(lines), "".join(reversed(lines))
    for command in _COMMANDS:
        rule = f"{command} follows the order of {what}"
        tests = (f"{_FOLLOW}[{what}-{command}]",)
        yield Mutant(f"{what}-swapped-{command}", rule, file, before, after, tests)


MUTANTS = (
    *_swapped("steps", "routing/rules/matching.py", _STEPS),
    *_swapped("tiers", "routing/rules/choosing.py", _TIERS),
)
