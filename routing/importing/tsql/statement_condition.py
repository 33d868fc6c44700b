"""Whether a statement runs, as far as script and state tell: surely, never, perhaps."""

from __future__ import annotations

from dataclasses import dataclass, replace

from routing.importing.tsql.script_statements import ConditionGuard


@dataclass(frozen=True)
class StatementCondition:
    """The condition of a statement; ``why_not`` where it is left out.

    ``never`` tells what surely does not run from what may, ``after_error`` what runs only after an error, which a
    script is not supposed to meet; ``passed_over`` what stands under an IF that does not hold in this state.
    ``doubt`` is what a statement that is applied depends on all the same. ``guards`` are the conditions around it
    where there is no state to answer them.
    """

    why_not: str | None = None
    never: bool = False
    after_error: bool = False
    passed_over: bool = False
    doubt: str | None = None
    guards: tuple[ConditionGuard, ...] = ()

    @property
    def runs(self) -> bool:
        """Return whether it runs, or is taken to."""
        return self.why_not is None and not self.passed_over

    @property
    def is_certain(self) -> bool:
        """Return whether it runs whatever the state is."""
        return self.runs and not self.guards

    def under(self, guards: tuple[ConditionGuard, ...]) -> StatementCondition:
        """Return the condition of a branch of an IF that only a state answers."""
        return replace(self, guards=(*self.guards, *guards))

    def not_held(self) -> StatementCondition:
        """Return the condition of a branch of an IF that does not hold in this state."""
        return replace(self, passed_over=True)

    def perhaps(self, why_not: str) -> StatementCondition:
        """Return the condition of a statement that may not run."""
        return self if self.why_not else replace(self, why_not=why_not)

    def after_an_error(self, why_not: str) -> StatementCondition:
        """Return the condition of a statement that runs only after an error."""
        return self if self.why_not else replace(self, why_not=why_not, after_error=True)

    def not_run(self, why_not: str | None) -> StatementCondition:
        """Return the condition of a statement that surely does not run; None changes nothing."""
        return self if why_not is None or self.never else replace(self, why_not=why_not, never=True)

    def doubted(self, doubt: str | None) -> StatementCondition:
        """Return the condition with an assumption that it depends on; the first doubt counts."""
        return self if doubt is None or self.doubt else replace(self, doubt=doubt)


ALWAYS = StatementCondition()
