"""One way to get a rule, or the order of runs, wrong: a small change of the package's text."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

# The truth tables and the worked cases by the rules alone: milliseconds.
PLAIN = ("tests/unit/rules",)


@dataclass(frozen=True)
class Mutant:
    """A rule and a change that breaks it: ``before``, which occurs once in ``file``, becomes ``after``.

    ``tests`` must fail. ``breaks`` names the broken part of the rule book, in the words of `catalogue.RULE_BOOK`.
    """

    name: str
    rule: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...] = PLAIN
    breaks: tuple[str, ...] = ()

    @property
    def is_fast(self) -> bool:
        """Whether its tests take milliseconds."""
        return self.tests == PLAIN

    @property
    def needs_spark(self) -> bool:
        """Whether its tests start a session."""
        return any(test.startswith("tests/spark/") for test in self.tests)

    def applied(self, root: Path) -> str:
        """The file's text with the change made. Raises ValueError where the list no longer fits the code."""
        text = (root / self.file).read_text(encoding="utf-8")
        if text.count(self.before) != 1:
            raise ValueError(f"{self.name}: {text.count(self.before)} times in {self.file}: {self.before!r}")
        changed = text.replace(self.before, self.after)
        ast.parse(changed, self.file)
        return changed


def in_rules(room: str, name: str, breaks: str, rule: str, before: str, after: str) -> Mutant:
    """Return a mutant of a module of the rule book. ``breaks`` has commas between its parts."""
    return Mutant(name, rule, f"routing/rules/{room}.py", before, after, breaks=tuple(breaks.split(", ")))
