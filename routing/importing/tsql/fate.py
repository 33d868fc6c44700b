"""Whether a statement runs, as far as the script tells: always, on conditions, never, perhaps."""

from __future__ import annotations

from dataclasses import dataclass

from routing.importing.tsql.statements import Guard


@dataclass(frozen=True)
class Fate:
    """The conditions that a statement stands under; ``why_not`` where it is left out.

    ``never`` tells what surely does not run from what may.
    """

    guards: tuple[Guard, ...] = ()
    why_not: str | None = None
    never: bool = False

    @property
    def is_certain(self) -> bool:
        """Whether it runs whatever the state is."""
        return not self.guards and self.why_not is None

    def under(self, guard: Guard | None, line: int) -> Fate:
        """The branch of the IF in this line; no ``guard`` where its condition is not understood."""
        if guard is None:
            return self.perhaps(f"it depends on the IF in line {line}, whose condition only the server knows")
        return Fate((*self.guards, guard), self.why_not, self.never)

    def perhaps(self, why_not: str) -> Fate:
        """The same, where it cannot be known whether it runs."""
        return self if self.why_not else Fate(self.guards, why_not)

    def not_run(self, why_not: str | None) -> Fate:
        """The same, where it surely does not run; None leaves it as it is."""
        return self if why_not is None or self.never else Fate(self.guards, why_not, never=True)


ALWAYS = Fate()
