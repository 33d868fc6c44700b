"""The transaction of a connection: how deep it is, where it and its savepoints began, and whether it is doomed."""

from __future__ import annotations

from dataclasses import dataclass, field

from routing.importing.tsql.script_statements import ConditionGuard


@dataclass(frozen=True)
class SavePoint:
    """A point to go back to: how many effects a script had by then, and how many changes could be undone."""

    effects: int
    changes: int


@dataclass
class OpenTransaction:
    """The open transaction; ``depth`` is @@TRANCOUNT, ``start`` where the outermost began, under ``guards``.

    ``line`` and ``name`` are those of its BEGIN. ``savepoints`` are names, in their order, with their marks.
    ``doomed``: an error has left nothing but ROLLBACK. ``perhaps_ended`` is the COMMIT or ROLLBACK that may have
    ended it, under a condition that only the server knows.
    """

    depth: int = 0
    start: SavePoint = SavePoint(0, 0)
    guards: tuple[ConditionGuard, ...] = ()
    name: str | None = None
    doomed: bool = False
    perhaps_ended: str | None = None
    savepoints: list[tuple[str, SavePoint]] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Return whether there is one."""
        return self.depth > 0

    @property
    def state(self) -> int:
        """Return what XACT_STATE() does."""
        return 0 if not self.is_open else (-1 if self.doomed else 1)

    def begin(self, save_point: SavePoint, guards: tuple[ConditionGuard, ...], name: str | None) -> None:
        """Begin the transaction, or one inside it."""
        if self.is_open:
            self.depth += 1
        else:
            self.reset()
            self.depth, self.start, self.guards, self.name = 1, save_point, guards, name

    def save(self, name: str, save_point: SavePoint) -> None:
        """Note a savepoint."""
        self.savepoints.append((name, save_point))

    def find_savepoint(self, name: str) -> SavePoint | None:
        """Return the newest savepoint of this name, exactly; those behind it are gone."""
        for index in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[index][0] == name:
                del self.savepoints[index + 1 :]
                return self.savepoints[index][1]
        return None

    def reset(self) -> None:
        """End the transaction."""
        self.depth, self.guards, self.name = 0, (), None
        self.doomed, self.perhaps_ended = False, None
        self.savepoints.clear()
