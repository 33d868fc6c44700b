"""How far a batch runs: what a RETURN, THROW, GOTO or error leaves out, and what makes the rest depend on it.

What leaves under a condition is an ``BlockExit``: the rest runs only where it does not. A condition that only the
server knows is taken for a check that the script passes, and what follows is named as depending on it; nothing is
named for what leaves after an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from routing.importing.tsql.statement_condition import StatementCondition


@dataclass(frozen=True)
class BlockExit:
    """One that may leave: for ``label`` of a GOTO, None for the end of the batch or TRY block.

    ``is_error``: a CATCH goes on. ``doubt`` is what the rest depends on where that is not known.
    """

    words: str
    label: str | None = None
    is_error: bool = False
    doubt: str | None = None


@dataclass
class BlockFlow:
    """The flow of a batch, or of one TRY block of it.

    ``left`` is what surely left it. ``perhaps`` is why what stands here may run all the same: a GOTO may reach it.
    """

    left: BlockExit | None = None
    perhaps: str | None = None
    exits: list[BlockExit] = field(default_factory=list)

    def restrict_condition(self, condition: StatementCondition) -> StatementCondition:
        """Return the condition of a statement that stands here."""
        if self.perhaps is not None:
            return condition.perhaps(self.perhaps)
        if self.left is not None:
            return condition.not_run(f"it stands after the {self.left.words}")
        for block_exit in self.exits:
            condition = condition.doubted(block_exit.doubt)
        return condition

    def leave(
        self, words: str, condition: StatementCondition, label: str | None = None, *, is_error: bool = False
    ) -> None:
        """Note that what stands here leaves, under this condition; ``words`` are such as ``RETURN in line 2``."""
        if condition.never or condition.passed_over:
            return
        if condition.is_certain and self.perhaps is not None:
            self.perhaps = None
        elif condition.is_certain:
            self.left = self.left or BlockExit(words, label, is_error)
        elif condition.after_error or condition.why_not is None:
            self.exits.append(BlockExit(words, label))
        else:
            why = condition.why_not.removeprefix("it ")
            doubt = f"it runs only if the {words} does not, which {why}"
            self.exits.append(BlockExit(words, label, doubt=doubt))

    def land(self, label: str) -> None:
        """Note that a label stands here: what went to it goes on."""
        comers = [block_exit for block_exit in self.exits if block_exit.label == label]
        self.exits = [block_exit for block_exit in self.exits if block_exit.label != label]
        if self.left is not None and self.left.label == label:
            self.left = self.perhaps = None
        elif self.left is not None and comers:
            self.perhaps = f"it runs only if the {comers[0].words} reaches it"
