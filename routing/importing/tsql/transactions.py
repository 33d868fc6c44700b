"""What a ROLLBACK undoes: the statements since the transaction began."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from routing.importing.tsql.fate import Fate
from routing.importing.tsql.statements import Guard, Statement


@dataclass(frozen=True)
class Transaction:
    """How many are open, and how many statements were noted before the outermost began, under which guards."""

    depth: int = 0
    start: int = 0
    guards: tuple[Guard, ...] = ()

    def begun(self, statements: Sequence[Statement], fate: Fate) -> Transaction:
        """BEGIN TRANSACTION; they nest."""
        if fate.why_not is not None:
            return self
        return replace(self, depth=self.depth + 1) if self.depth else Transaction(1, len(statements), fate.guards)

    def committed(self, fate: Fate) -> Transaction:
        """COMMIT ends the innermost."""
        is_its_own = fate.why_not is None and fate.guards[: len(self.guards)] == self.guards
        return replace(self, depth=self.depth - 1) if is_its_own and self.depth else self

    def surely_undoes(self, fate: Fate) -> bool:
        """Whether a ROLLBACK of this fate runs wherever the transaction does."""
        return self.depth > 0 and fate.why_not is None and fate.guards == self.guards

    def perhaps_undoes(self, fate: Fate) -> bool:
        """Whether one may run, though no error is expected."""
        return self.depth > 0 and not (fate.never or fate.after_error or self.surely_undoes(fate))


def doubted(statement: Statement, line: int) -> Statement:
    """The statement, which counts only if the ROLLBACK in this line does not run."""
    doubt = f"it counts only if the ROLLBACK in line {line} does not run, which depends on a condition"
    return statement if statement.doubt else replace(statement, doubt=doubt)
