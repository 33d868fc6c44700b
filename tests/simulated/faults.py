"""The faults in the tables of a day, one at a time. The day itself is unchanged."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .day import Day, decide, play
from .estate import NOON, Row, Tables, build

LEAST = 20
"""So many messages a fault touches."""
MESSAGES = (600, 1200)


@dataclass
class Case:
    """A day, its faulty tables, the fault, and the kind and words of a correct answer."""

    kind: str
    day: Day
    tables: Tables
    instance: str | None = None
    words: tuple[str, ...] = ()


def case(kind: str, seed: int) -> Case:
    """Return a day with a fault that affects enough messages. Raises ValueError after many tries."""
    for number in range(200):
        rng = random.Random(f"{kind}-{seed}-{number}")
        simulated = FAULTS[kind](rng, build(rng))
        if simulated is not None:
            return simulated
    raise ValueError(f"no estate of seed {seed} has enough messages for {kind}")


def _day(rng: random.Random, tables: Tables) -> Day:
    return play(rng, tables, rng.randint(*MESSAGES))


def _none(rng: random.Random, tables: Tables) -> Case:
    day = _day(rng, tables)
    return Case("none", day, day.tables)


def _hidden(rng: random.Random, tables: Tables) -> Case | None:
    """A route that is in force is not in the tables."""
    day = _day(rng, tables)
    for route in _shuffled(rng, day.tables["routes"]):
        changed_tables = {**day.tables, "routes": [row for row in day.tables["routes"] if row is not route]}
        if route["remote_service_name"] is not None and _touched(day, changed_tables, route) >= LEAST:
            words = (route["remote_service_name"],)
            return Case("ROUTE_NOT_IN_TABLES", day, changed_tables, route["instance_name"], words)
    return None


def _changed(rng: random.Random, tables: Tables) -> Case | None:
    """Change a route at noon, with the old route in the tables."""
    day_long = [row for row in tables["routes"] if row["remote_service_name"] and row["valid_from"] is None]
    day_long = [row for row in day_long if row["valid_to"] is None and row["address"].startswith("tcp")]
    if not day_long:
        return None
    route = rng.choice(day_long)
    moved = {**route, "address": "tcp://moved.example:4022", "mirror_address": None, "valid_from": NOON}
    others = [row for row in tables["routes"] if row is not route]
    day = _day(rng, {**tables, "routes": [*others, {**route, "valid_to": NOON}, moved]})
    changed_tables = {**day.tables, "routes": [*others, route]}
    before = sum(row["route_name"] == route["name"] for hop, row in day.done if hop.row["enqueue_time"] < NOON)
    if before < 3 or _touched(day, changed_tables, route) < LEAST:
        return None
    return Case("ROUTE_CHANGED", day, changed_tables, route["instance_name"], (route["name"],))


def _instance(rng: random.Random, tables: Tables) -> Case | None:
    """An instance is left out of the tables."""
    day = _day(rng, tables)
    name = rng.choice(tables["instances"])["instance_name"]
    of_it = {hop.row["conversation_id"] for hop, _ in day.done if hop.row["instance_name"] == name}
    if len(of_it) < LEAST:
        return None
    changed_tables = {
        key: rows if key in ("messages", "dialogs") else [row for row in rows if row["instance_name"] != name]
        for key, rows in day.tables.items()
    }
    return Case("INSTANCE_NOT_IMPORTED", day, changed_tables, name, (name,))


def _name(rng: random.Random, tables: Tables) -> Case | None:
    """The name of a service is misspelt, in one route or where the service is held."""
    day = _day(rng, tables)
    for key, column in rng.sample([("routes", "remote_service_name"), ("services", "name")], 2):
        for row in _shuffled(rng, day.tables[key]):
            if row[column] is None:
                continue
            slip = misspelt(rng, row[column])
            changed_tables = {
                **day.tables,
                key: [{**one, column: slip} if one is row else one for one in day.tables[key]],
            }
            if _touched(day, changed_tables, row) >= LEAST:
                return Case(
                    "NEAR_NAME", day, changed_tables, row["instance_name"], (repr(row[column]), repr(slip))
                )
    return None


FAULTS: dict[str, Callable[[random.Random, Tables], Case | None]] = {
    "none": _none,
    "hidden": _hidden,
    "changed": _changed,
    "instance": _instance,
    "name": _name,
}


def misspelt(rng: random.Random, name: str) -> str:
    """A name with one slip in it."""
    place = rng.randrange(3, len(name) - 1)
    letter = name[place]
    slips = [
        name[:place] + name[place + 1 :],
        name[:place] + letter + name[place:],
        name[:place] + ("x" if letter.lower() != "x" else "y") + name[place + 1 :],
        name[:place] + letter.swapcase() + name[place + 1 :],
        name + " ",
        name + "/",
    ]
    return rng.choice([slip for slip in slips if slip != name])


def _touched(day: Day, changed_tables: Tables, changed: Row) -> int:
    """Count the conversations that SQL Server treats differently than the faulty tables say.

    ``changed`` is a row of a service or of a route to one. Only messages to this service depend on it.
    """
    name = changed.get("remote_service_name", changed["name"])
    there = (changed["instance_name"], name)
    met = [(hop, row) for hop, row in day.done if (hop.row["instance_name"], hop.row["to_service_name"]) == there]
    hops, then = [hop for hop, _ in met], [row for _, row in met]
    now = [row for _, row in decide({**changed_tables, "dialogs": day.tables["dialogs"]}, hops)]
    return len(
        {
            one["conversation_id"]
            for one, two in zip(then, now, strict=True)
            if _shown_result(one) != _shown_result(two)
        }
    )


def _shown_result(row: Row) -> tuple[object, ...]:
    """Return SQL Server's visible result of a decision."""
    return row["outcome"], row["reason"], row["address"], row["broker_instance"]


def _shuffled(rng: random.Random, rows: list[Row]) -> Iterator[Row]:
    return iter(rng.sample(rows, len(rows)))
