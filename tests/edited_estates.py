"""A second configuration derived from the first by random edits, each valid; messages and dialogs stay."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.reference import estate_words as words
from tests.reference.estates import Tables

Row = dict[str, Any]
_MOST_EDITS = 4


def edited(rng: random.Random, tables: Tables) -> Tables:
    """The tables after some edits, of which there may be none; rows that are not edited are the same."""
    found = {key: list(rows) for key, rows in tables.items()}
    for edit in rng.sample(EDITS, rng.randint(0, _MOST_EDITS)):
        edit(rng, found)
    return found


def _replaced(rng: random.Random, rows: list[Row], share: float, change: Callable[[Row], Row]) -> list[Row]:
    """The rows, of which a share is changed."""
    return [change(row) if rng.random() < share else row for row in rows]


def _drop_routes(rng: random.Random, tables: Tables) -> None:
    tables["routes"] = [row for row in tables["routes"] if rng.random() < 0.85]


def _alter_routes(rng: random.Random, tables: Tables) -> None:
    targets = ("LOCAL", "TRANSPORT", *words.OWN_TARGETS, *words.FAR_TARGETS)

    def to_another(row: Row) -> Row:
        return {**row, "address": words.spelt_address(rng, rng.choice(targets)), "mirror_address": None}

    def to_another_id(row: Row) -> Row:
        return {**row, "broker_instance": rng.choice((None, *words.BROKER_IDS))}

    def to_another_service(row: Row) -> Row:
        return {**row, "remote_service_name": rng.choice((None, *words.PLAIN_SERVICES))}

    for change in (to_another, to_another_id, to_another_service):
        tables["routes"] = _replaced(rng, tables["routes"], 0.1, change)


def _respell_routes(rng: random.Random, tables: Tables) -> None:
    """The same said in other letters: a reported address changes, and nothing else."""
    tables["routes"] = _replaced(rng, tables["routes"], 0.2, lambda row: {**row, "address": f" {row['address']}"})


def _end_routes(rng: random.Random, tables: Tables) -> None:
    def ended(row: Row) -> Row:
        return {**row, rng.choice(("lifetime", "lifetime", "valid_to")): rng.choice(words.MOMENTS)}

    def is_sound(row: Row) -> bool:
        # A bound that is moved must not make versions overlap: it is only ever moved on a route of one version.
        same = ("instance_name", "database_name", "name")
        return sum(all(row[n] == other[n] for n in same) for other in tables["routes"]) == 1

    single = [row for row in tables["routes"] if is_sound(row)]
    tables["routes"] = [
        ended(row) if any(row is one for one in single) and rng.random() < 0.2 else row for row in tables["routes"]
    ]


def _add_routes(rng: random.Random, tables: Tables) -> None:
    for number, row in enumerate(rng.sample(tables["routes"], min(4, len(tables["routes"])))):
        far = words.spelt_address(rng, rng.choice((*words.FAR_TARGETS, "LOCAL")))
        new = {**row, "name": f"New {number}", "address": far, "mirror_address": None, "lifetime": None}
        tables["routes"].append({**new, "valid_from": None, "valid_to": None})


def _add_configuration(rng: random.Random, tables: Tables) -> None:
    scopes = sorted({(row["instance_name"], row["database_name"]) for row in tables["routes"]})
    for instance, database in rng.sample(scopes, min(2, len(scopes))):
        tables["routes"].append(
            {
                "instance_name": instance,
                "database_name": database,
                "name": "Config of its own",
                "remote_service_name": words.CONFIGURATION_SERVICE,
                "address": "LOCAL",
            }
        )


def _switch_brokers(rng: random.Random, tables: Tables) -> None:
    tables["databases"] = _replaced(
        rng, tables["databases"], 0.3, lambda row: {**row, "is_broker_enabled": row["is_broker_enabled"] is False}
    )


def _give_ids(rng: random.Random, tables: Tables) -> None:
    tables["databases"] = _replaced(
        rng,
        tables["databases"],
        0.3,
        lambda row: {**row, "service_broker_guid": words.spelt_id(rng, rng.choice(words.BROKER_IDS))},
    )


def _drop_databases(rng: random.Random, tables: Tables) -> None:
    tables["databases"] = [row for row in tables["databases"] if rng.random() < 0.8]


def _move_services(rng: random.Random, tables: Tables) -> None:
    names = sorted({row["name"] for row in tables["databases"]})
    moved = _replaced(
        rng, tables["services"], 0.3, lambda row: {**row, "database_name": rng.choice(names or ["Alpha"])}
    )
    distinct = {tuple(sorted(row.items())): row for row in moved}
    tables["services"] = [row for row in distinct.values() if rng.random() < 0.9]


def _change_instances(rng: random.Random, tables: Tables) -> None:
    def changed(row: Row) -> Row:
        return {
            **row,
            "is_message_forwarding_enabled": rng.choice((True, False)),
            "addresses": rng.choice(words.OWN_ADDRESSES),
        }

    tables["instances"] = _replaced(rng, tables["instances"], 0.5, changed)


def _drop_instances(rng: random.Random, tables: Tables) -> None:
    tables["instances"] = [row for row in tables["instances"] if rng.random() < 0.6]


def _change_requests(rng: random.Random, tables: Tables) -> None:
    """Requests are lost, come to an end, and are made by messages, at any time there is."""
    kept = [row for row in tables["route_requests"] if rng.random() < 0.6]
    ended = _replaced(rng, kept, 0.4, lambda row: {**row, "ended_at": rng.choice(words.MOMENTS)})
    made = [
        {
            "instance_name": row["instance_name"],
            "database_name": row["database_name"] or "msdb",
            "service_name": row["to_service_name"],
            "requested_at": rng.choice(words.MOMENTS),
            "message_id": row["message_id"],
            "ended_at": rng.choice((None, None, *words.MOMENTS)),
        }
        for row in rng.sample(tables["messages"], min(4, len(tables["messages"])))
        if row["instance_name"] and row["to_service_name"] and row["message_id"]
    ]
    tables["route_requests"] = ended + made


EDITS = (
    _drop_routes,
    _alter_routes,
    _respell_routes,
    _end_routes,
    _add_routes,
    _add_configuration,
    _switch_brokers,
    _give_ids,
    _drop_databases,
    _move_services,
    _change_instances,
    _drop_instances,
    _change_requests,
)
