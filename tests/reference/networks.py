"""Draw random networks of instances that send, forward and mirror to each other, with messages and requests."""

from __future__ import annotations

import random
from typing import Any

from . import estate_words as words
from .estate_words import cased, maybe, pick, spelt_address, spelt_id

Row = dict[str, Any]
Tables = dict[str, list[Row]]
SERVICES = (
    "//t/stock",
    "//t/Stock",
    "tcp://n1:4022/stock",
    "TCP://n2:4022",
    "tcp://nowhere:4022/x",
    "tcp://localhost:4022/y",
)
SENDERS = ("//i/sales", "//i/sales", "tcp://n0:4022/sales")
LISTENERS = ("tcp://listener:4022", "tcp://listener:5022")
# Two of these share a machine.
_NAMES = ("n0", "n1", "n1\\two", "n2", "n3", "n4", "n5")
_IDS = tuple(f"{digit * 8}-0000-4000-8000-000000000000" for digit in "123456")
_ROUTE_NAMES = ("A", "B", "C", "D", "a", "Zone")


def random_network(rng: random.Random, n_messages: int) -> Tables:
    """Build one network with every input table. Its last instance may have neither databases nor routes."""
    tables: Tables = {
        table: [] for table in ("routes", "databases", "services", "instances", "messages", "dialogs")
    }
    names = _NAMES[: rng.randint(3, len(_NAMES))]
    ids = _IDS[: rng.randint(3, len(_IDS))]
    for name in names:
        _instance(rng, tables, name)
        if name != names[-1] or rng.random() < 0.5:
            _databases(rng, tables, name, ids)
            _routes(rng, tables, name, names, ids)
    if rng.random() < 0.3:
        _ring(tables, names[:2])
    tables["messages"] = [_message(rng, tables, f"m{number}") for number in range(n_messages)]
    tables["dialogs"] = _dialogs(rng, tables, ids)
    tables["route_requests"] = _requests(rng, tables)
    for rows in tables.values():
        rng.shuffle(rows)
    return tables


def _home(name: str) -> str:
    machine, _, instance = name.partition("\\")
    return f"tcp://{machine}:{5022 if instance else 4022}"


def _instance(rng: random.Random, tables: Tables, name: str) -> None:
    addresses = [spelt_address(rng, _home(name))]
    if rng.random() < 0.35:
        addresses.append(spelt_address(rng, rng.choice(LISTENERS)))
    tables["instances"].append(
        {
            "instance_name": name,
            "is_message_forwarding_enabled": pick(rng, (9, [True]), (1, [False, None])),
            "addresses": addresses,
        }
    )


def _databases(rng: random.Random, tables: Tables, name: str, ids: tuple[str, ...]) -> None:
    for database in (*rng.sample(("App", "Bob", "Eve"), rng.randint(1, 2)), "msdb"):
        if database == "msdb" and rng.random() < 0.5:
            continue
        guid = words.ZERO if rng.random() < 0.08 else spelt_id(rng, rng.choice(ids))
        tables["databases"].append(
            {
                "instance_name": name,
                "name": database,
                "service_broker_guid": guid,
                "is_broker_enabled": pick(rng, (30, [True, None]), (1, [False])),
            }
        )
        for service in sorted({*SERVICES, *SENDERS}):
            if rng.random() < (0.7 if service.startswith("//") else 0.4):
                tables["services"].append({"instance_name": name, "database_name": database, "name": service})


def _routes(rng: random.Random, tables: Tables, name: str, names: tuple[str, ...], ids: tuple[str, ...]) -> None:
    databases = [row["name"] for row in tables["databases"] if row["instance_name"] == name]
    # An instance keeps or forwards most messages that arrive.
    keeps = rng.choice((1.0, 60.0))
    for database in sorted({*databases, "msdb"}):
        # Each scope has its own preference for routes with a broker instance.
        taste = (rng.choice((0.0, 0.0, 0.4, 1.0)), keeps if database == "msdb" else 1.0)
        for route in rng.sample(_ROUTE_NAMES, rng.randint(2, len(_ROUTE_NAMES))):
            tables["routes"] += _versions(rng, (name, database, route), names, ids, taste)
        if rng.random() < 0.6:
            tables["routes"].append(_route((name, database, "Rest"), _address(rng, taste[1], names)))
        if rng.random() < 0.2:
            asks = {"remote_service_name": words.CONFIGURATION_SERVICE}
            tables["routes"].append(_route((name, database, "Ask"), "LOCAL", **asks))


def _ring(tables: Tables, gates: tuple[str, ...]) -> None:
    """Let two instances send replies to each other, and all other databases send replies to the first one."""
    asks = {"remote_service_name": SENDERS[0]}
    for here, there in (gates, gates[::-1]):
        tables["routes"].append(_route((here, "msdb", "0"), _home(there), **asks))
    for database in tables["databases"]:
        key = (database["instance_name"], database["name"], "0")
        if database["name"] != "msdb" and key[0] not in gates:
            tables["routes"].append(_route(key, _home(gates[0]), **asks))


def _versions(
    rng: random.Random,
    key: tuple[str, str, str],
    names: tuple[str, ...],
    ids: tuple[str, ...],
    taste: tuple[float, float],
) -> list[Row]:
    """Draw one or two versions of a route. `taste` has the share of broker instances and the weight of LOCAL."""
    bound, local = taste

    def version(**bounds: Any) -> Row:
        address, mirror = _address(rng, local, names), None
        if address.lower().strip().startswith("tcp") and rng.random() < 0.12:
            mirror = spelt_address(rng, _home(rng.choice(names)))
        return _route(
            key,
            address,
            mirror_address=mirror,
            remote_service_name=pick(rng, (7, SERVICES[:1]), (2, SERVICES), (6, SENDERS), (1, [None])),
            broker_instance=spelt_id(rng, rng.choice(ids)) if rng.random() < bound else None,
            lifetime=maybe(rng, 0.08, rng.choice(words.MOMENTS)),
            **bounds,
        )

    if rng.random() < 0.85:
        return [version()]
    cut = rng.choice(words.MOMENTS)
    return [version(valid_to=cut), version(valid_from=cut)]


def _route(key: tuple[str, str, str], address: str, **columns: Any) -> Row:
    empty = dict.fromkeys(
        ("remote_service_name", "broker_instance", "lifetime", "mirror_address", "valid_from", "valid_to")
    )
    instance, database, name = key
    fixed = {"instance_name": instance, "database_name": database, "name": name, "address": address}
    return {**empty, **fixed, **columns}


def _address(rng: random.Random, local: float, names: tuple[str, ...]) -> str:
    others = [_home(name) for name in names]
    address = pick(
        rng,
        (local, ["LOCAL"]),
        (9, others),
        (1.5, LISTENERS),
        (0.7, ["tcp://partner:4022"]),
        (
            1.2,
            ["tcp://localhost:4022", "tcp://.:4022", "tcp://localhost:5022", "tcp://.:5022", "tcp://[::1]:9999"],
        ),
        (2, ["TRANSPORT"]),
    )
    return spelt_address(rng, address)


def _message(rng: random.Random, tables: Tables, message_id: str) -> Row:
    database = rng.choice(tables["databases"])
    from_target = rng.random() < 0.2
    guids = [row["service_broker_guid"] for row in tables["databases"]]
    return {
        "message_id": message_id,
        "conversation_id": cased(rng, rng.choice(words.CONVERSATIONS)),
        "is_initiator": not from_target,
        "enqueue_time": rng.choice(words.MOMENTS),
        "observed_at": maybe(rng, 0.2, rng.choice(words.MOMENTS)),
        "instance_name": database["instance_name"],
        "database_name": database["name"] if rng.random() < 0.85 else None,
        "to_service_name": pick(rng, (9, SERVICES[:1]), (4, SERVICES[1:]), (1, SENDERS), (0.3, ["//t/unknown"])),
        "to_broker_instance": rng.choice(guids) if from_target or rng.random() < 0.1 else None,
        "hops_remaining": rng.choice((None, None, None, 6, 3, 2, 1, 0)),
        "from_service_name": pick(rng, (6, SENDERS), (1, SERVICES), (1, [None, ""])),
    }


def _dialogs(rng: random.Random, tables: Tables, ids: tuple[str, ...]) -> list[Row]:
    dialogs: dict[tuple[Any, ...], Row] = {}
    for message in tables["messages"]:
        if message["database_name"] is None or rng.random() < 0.7:
            continue
        columns = ("instance_name", "database_name", "conversation_id", "is_initiator")
        key = {column: message[column] for column in columns}
        key["conversation_id"] = key["conversation_id"].lower()
        dialogs[tuple(key.values())] = {
            **key,
            "far_broker_instance": maybe(rng, 0.2, rng.choice(ids)),
            "lifetime": maybe(rng, 0.1, rng.choice(words.MOMENTS)),
            "acknowledged_at": rng.choice(words.MOMENTS),
            "acknowledged_broker_instance": maybe(rng, 0.3, rng.choice(ids)),
        }
    return list(dialogs.values())


def _requests(rng: random.Random, tables: Tables) -> list[Row]:
    # A separate generator keeps the networks the same as before requests had owners.
    whose = random.Random(repr(tables["messages"]))
    asking = [row for row in tables["routes"] if row["remote_service_name"] == words.CONFIGURATION_SERVICE]
    return [
        {
            "instance_name": route["instance_name"],
            "database_name": route["database_name"],
            "service_name": service,
            "requested_at": rng.choice(words.MOMENTS),
            "message_id": f"r{number}",
            "ended_at": maybe(rng, 0.6, rng.choice(words.MOMENTS)),
            "conversation_id": maybe(whose, 0.8, cased(whose, whose.choice(words.CONVERSATIONS))),
            "is_initiator": whose.choice((True, True, False, None)),
        }
        for number, route in enumerate(asking)
        for service in {**dict.fromkeys(SERVICES), **dict.fromkeys(SENDERS)}
        if rng.random() < 0.5
    ]
