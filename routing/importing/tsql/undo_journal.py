"""Changes that can be undone, the newest first, as ROLLBACK does."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class UndoJournal:
    """Notes how each change of a mapping is undone."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    @property
    def length(self) -> int:
        """Return how many changes can be undone."""
        return len(self._undo)

    def put(self, mapping: MutableMapping[_Key, _Value], key: _Key, value: _Value) -> None:
        """Set a key of a mapping."""
        self._note(mapping, key)
        mapping[key] = value

    def remove(self, mapping: MutableMapping[_Key, _Value], key: _Key) -> None:
        """Remove a key of a mapping, if it is there."""
        if key in mapping:
            self._note(mapping, key)
            del mapping[key]

    def _note(self, mapping: MutableMapping[_Key, _Value], key: _Key) -> None:
        if key in mapping:
            before = mapping[key]
            self._undo.append(lambda: mapping.__setitem__(key, before))
        else:
            self._undo.append(lambda: mapping.__delitem__(key))

    def undo_to(self, length: int) -> None:
        """Undo all but the first changes, of this number."""
        while len(self._undo) > length:
            self._undo.pop()()

    def forget(self) -> None:
        """Keep all changes."""
        self._undo.clear()
