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
class BlockCourse:
    """Where the batch, or one TRY block of it, stands.

    ``left`` is what surely left it. ``perhaps`` is why what stands here may run all the same: a GOTO may reach it.
    """

    left: BlockExit | None = None
    perhaps: str | None = None
    exits: list[BlockExit] = field(default_factory=list)

    def settle(self, fate: StatementCondition) -> StatementCondition:
        """Return the fate of a statement that stands here."""
        if self.perhaps is not None:
            return fate.perhaps(self.perhaps)
        if self.left is not None:
            return fate.not_run(f"it stands after the {self.left.words}")
        for found in self.exits:
            fate = fate.doubted(found.doubt)
        return fate

    def leave(
        self, words: str, fate: StatementCondition, label: str | None = None, *, is_error: bool = False
    ) -> None:
        """Note that what stands here leaves, under this fate; ``words`` are such as ``RETURN in line 2``."""
        if fate.never or fate.passed_over:
            return
        if fate.is_certain and self.perhaps is not None:
            self.perhaps = None
        elif fate.is_certain:
            self.left = self.left or BlockExit(words, label, is_error)
        elif fate.after_error or fate.why_not is None:
            self.exits.append(BlockExit(words, label))
        else:
            why = fate.why_not.removeprefix("it ")
            doubt = f"it runs only if the {words} does not, which {why}"
            self.exits.append(BlockExit(words, label, doubt=doubt))

    def land(self, label: str) -> None:
        """Note that a label stands here: what went to it goes on."""
        comers = [found for found in self.exits if found.label == label]
        self.exits = [found for found in self.exits if found.label != label]
        if self.left is not None and self.left.label == label:
            self.left = self.perhaps = None
        elif self.left is not None and comers:
            self.perhaps = f"it runs only if the {comers[0].words} reaches it"
