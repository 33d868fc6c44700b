"""The plan of paths: distinct keys of an estate → rules → timelines of paths, which messages are joined with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from routing.messages.key_columns import ADDRESS_ELSEWHERE, KNOWN, OWN_ADDRESS
from routing.messages.path_keying import PATH_KEY, NameClass, PathKeyRow, read_key
from routing.messages.timelines import Decided, Row, Timeline, Uses, add_row
from routing.process.garbage import no_search_for_cycles
from routing.rules.deciding import UNNAMED, scope_of
from routing.rules.estate import ARRIVALS
from routing.rules.network import Addressee, Network
from routing.rules.path_rows import PathRow, path_row, reads_address
from routing.rules.pathing import Choice, Path, Sender, Timelines, plan_paths
from routing.schemas import MESSAGE_PATHS, ArrayOf, Field, Kind, Schema
from routing.storage.columns import Columns

READS_ADDRESS = "reads_address"
# A path, by the hops that the message has left, and whether its last hop's address is that of the message's own
# service name.
_PATH = Schema(
    (
        *(Field(field.name, field.kind) for field in MESSAGE_PATHS if field.name in PathRow._fields),
        Field(READS_ADDRESS, Kind.BOOLEAN),
    )
)
PATH = tuple(_PATH.names)
# asks, asks_msdb as in `plan.CHOICE`. paths: those of 0, 1, … hops left, the last for all that have more.
_CHOICE = Schema((Field("asks", Kind.BOOLEAN), Field("asks_msdb", Kind.BOOLEAN), Field("paths", ArrayOf(_PATH))))
# Rough sizes in memory: a row of the plan, a choice, a path, a hop.
_OF_A_ROW, _OF_A_CHOICE, _OF_A_PATH, _OF_A_HOP = 300, 60, 300, 250


def follow_keys(keys: Columns, network: Network) -> Decided:
    """Follow every distinct key there and back.

    ``keys`` have the columns of `path_keying.PATH_KEY`; ``network`` is what is known for the services that they
    name.
    """
    made = PathPlanner(network)
    with no_search_for_cycles():
        numbers = [made.number(row) for row in keys.rows(*PATH_KEY)]
    return Decided(PATH_KEY, _CHOICE, numbers, made.timelines, made.uses)


class PathPlanner:
    """Follows keys; those with the same paths at all times share a timeline."""

    def __init__(self, network: Network) -> None:
        self.timelines: list[Timeline] = []
        self.uses = Uses()
        self._network, self._deciding = network, Timelines()
        self._numbers: dict[Any, int] = {}

    def number(self, row: PathKeyRow) -> int:
        """The place of a key's timeline."""
        key = read_key(row)
        back_to = None if key.sender == _ABSENT else _addressee(key.sender)
        sender = Sender(self._network.instances[key.instance], key.database, key.is_initiator, back_to)
        broker = UNNAMED if key.has_other_broker else key.broker
        rows: list[Row] = []
        uses = Uses()
        for part in plan_paths(self._network, self._deciding, sender, _addressee(key.service), broker):
            uses |= _uses(part.choices, scope_of(key.database))
            add_row(rows, (part.valid_from, part.valid_to, [_choice(choice) for choice in part.choices]))
        return self._share(rows, uses)

    def _share(self, rows: list[Row], uses: Uses) -> int:
        told = tuple((start, end, tuple(choices)) for start, end, choices in rows)
        found = self._numbers.get(told)
        if found is None:
            found = self._numbers[told] = len(self.timelines)
            self.timelines.append(Timeline(rows, _size(rows), uses))
        self.uses |= uses | Uses(has_times=len(rows) > 1)
        return found


_ABSENT = NameClass(KNOWN, None)


def _addressee(name: NameClass) -> Addressee:
    """What the rules are told of a name; of one that nothing names only its address, if it holds one."""
    if name.kind == KNOWN and name.text is not None:
        return Addressee.of_name(name.text)
    if name.kind == OWN_ADDRESS:
        return Addressee(None, name.text, holds_address=True)
    return Addressee(None, None, holds_address=name.kind == ADDRESS_ELSEWHERE)


def _uses(choices: Iterable[Choice], scope: str) -> Uses:
    asks = any(choice.decision.asks for choice in choices)
    return Uses(
        reads_addresses=any(reads_address(path.there) for choice in choices for path in choice.paths),
        asks=asks,
        asks_in_databases=asks and scope != ARRIVALS,
        asks_msdb=any(choice.decision.asks_again for choice in choices),
    )


def _choice(choice: Choice) -> tuple[Any, ...]:
    """The fields of `_CHOICE`."""
    return choice.decision.asks, choice.decision.asks_again, tuple(_path(path) for path in choice.paths)


def _path(path: Path) -> tuple[Any, ...]:
    """The fields of `_PATH`."""
    return *path_row(path), reads_address(path.there)


def _size(rows: Iterable[Row]) -> int:
    choices = [choice for _, _, choices in rows for choice in choices]
    paths = [path for *_, paths in choices for path in paths]
    hops = sum(len(path[PathRow._fields.index("hops")]) for path in paths)
    of_rows = _OF_A_ROW * len(list(rows))
    return of_rows + _OF_A_CHOICE * len(choices) + _OF_A_PATH * len(paths) + _OF_A_HOP * hops
