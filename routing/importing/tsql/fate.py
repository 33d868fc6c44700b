"""Whether a statement runs, as far as the script tells: always, on conditions, never, perhaps."""

from __future__ import annotations

from dataclasses import dataclass, replace

from routing.importing.tsql.statements import Guard


@dataclass(frozen=True)
class Fate:
    """The conditions that a statement stands under; ``why_not`` where it is left out.

    ``never`` tells what surely does not run from what may, ``after_error`` what runs only after an error, which a
    script is not supposed to meet. ``doubt`` is what a statement that is applied depends on all the same.
    """

    guards: tuple[Guard, ...] = ()
    why_not: str | None = None
    never: bool = False
    after_error: bool = False
    doubt: str | None = None

    @property
    def is_certain(self) -> bool:
        """Whether it runs whatever the state is."""
        return not self.guards and self.why_not is None

    def under(self, guard: Guard | None, line: int) -> Fate:
        """The branch of the IF in this line; no ``guard`` where its condition is not understood."""
        if guard is None:
            return self.perhaps(f"it depends on the IF in line {line}, whose condition only the server knows")
        return replace(self, guards=(*self.guards, guard))

    def perhaps(self, why_not: str) -> Fate:
        """The same, where it cannot be known whether it runs."""
        return self if self.why_not else replace(self, why_not=why_not)

    def after_an_error(self, why_not: str) -> Fate:
        """The same, where it runs only after an error."""
        return self if self.why_not else replace(self, why_not=why_not, after_error=True)

    def not_run(self, why_not: str | None) -> Fate:
        """The same, where it surely does not run; None leaves it as it is."""
        return self if why_not is None or self.never else replace(self, why_not=why_not, never=True)

    def doubted(self, doubt: str | None) -> Fate:
        """The same, where what it depends on is taken to be so; the first doubt counts."""
        return self if doubt is None or self.doubt else replace(self, doubt=doubt)


ALWAYS = Fate()
