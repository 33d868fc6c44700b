"""Draw the messages, dialogs and route requests of random estates."""

from __future__ import annotations

import random
from typing import Any

from . import estate_words as words
from .estate_words import cased, maybe, pick, spelt_id
from .messages import REQUIRED_COLUMNS

Row = dict[str, Any]
Tables = dict[str, list[Row]]
BAD_CONVERSATIONS = (
    "42",
    "{" + words.CONVERSATIONS[1] + "}",
    words.CONVERSATIONS[1] + "\n",
    " " + words.CONVERSATIONS[1],
    words.CONVERSATIONS[1].replace("-", ""),
    words.CONVERSATIONS[1][:-1] + "g",
    words.CONVERSATIONS[1][:-1] + "\u0661",
)


def random_messages(rng: random.Random, tables: Tables, count: int, prefix: str) -> list[Row]:
    """Draw messages for the configuration in the tables. Some are bad, and some share id and time."""
    messages: list[Row] = []
    numbered = [f"m{n}" for n in range(count // 2 + 1)]
    for _ in range(count):
        message = _message(rng, tables, pick(rng, (2, numbered), (1, words.MESSAGE_IDS)))
        if messages and rng.random() < 0.08:
            twin = rng.choice(messages)
            for column in ("message_id", "enqueue_time", "observed_at", "to_service_name"):
                message[column] = twin[column]
        if rng.random() < 0.06:
            _spoil(rng, message, prefix)
        messages.append(message)
    return messages


def _message(rng: random.Random, tables: Tables, message_id: str) -> Row:
    instance = rng.choice(tables["instances"])["instance_name"]
    here = {
        table: [row for row in tables[table] if row["instance_name"] == instance]
        for table in ("routes", "databases", "services")
    }
    senders = [row["name"] for row in here["databases"]]
    able = [row["name"] for row in here["databases"] if row["is_broker_enabled"] is not False]
    database = pick(rng, (5, (None, "")), (8 if able else 0, able or [""]), (1, senders))
    scope = database or "msdb"
    named = [row["remote_service_name"] for row in here["routes"] if row["remote_service_name"]]
    own = [
        row["remote_service_name"]
        for row in here["routes"]
        if row["remote_service_name"] and row["database_name"] == scope
    ]
    own_services = [row["name"] for row in here["services"]]
    service = pick(
        rng,
        (6 if own else 0, own or [""]),
        (2 if named else 0, named or [""]),
        (3 if own_services else 0, own_services or [""]),
        (0.5, words.PLAIN_SERVICES),
        (1, words.OWN_SERVICES),
        (0.7, words.FAR_SERVICES + words.BROKEN_SERVICES),
        (0.3, [words.CONFIGURATION_SERVICE]),
        (1.5, [words.UNROUTED_SERVICE]),
    )
    bound_routes = [row for row in here["routes"] if row["broker_instance"]]
    apt = [row["broker_instance"] for row in bound_routes if row["remote_service_name"] == service]
    ids = [row["broker_instance"] for row in bound_routes]
    ids += 2 * [row["service_broker_guid"] for row in here["databases"]]
    broker = rng.choice(words.NO_BROKER_IDS)
    if rng.random() < 0.55:
        broker = pick(rng, (5 if apt else 0, apt or [""]), (4, ids), (1, words.BROKER_IDS))
        broker = spelt_id(rng, broker.strip("{} \t\r\n"))
    return {
        "message_id": message_id,
        "conversation_id": cased(rng, rng.choice(words.CONVERSATIONS)),
        "is_initiator": rng.random() < 0.65,
        "message_sequence_number": rng.choice((None, 0, 1, 2**40)),
        "enqueue_time": rng.choice(words.MOMENTS),
        "observed_at": maybe(rng, 0.25, rng.choice(words.MOMENTS)),
        "instance_name": instance,
        "database_name": database,
        "to_service_name": service,
        "to_broker_instance": broker,
        "hops_remaining": rng.choice((None, None, 5, 5, 1, 0, -1)),
        # No rule reads it, so no random number is drawn for it.
        "from_service_name": (None, "", "//sender", "//Sender ")[len(service) % 4],
    }


def _spoil(rng: random.Random, message: Row, prefix: str) -> None:
    """Give a message up to three faults."""
    for _ in range(rng.randint(1, 3)):
        fault = rng.randrange(5)
        if fault == 0:
            column = rng.choice(REQUIRED_COLUMNS)
            text = isinstance(message[column], str)
            message[column] = rng.choice((None, "")) if text else None
        elif fault == 1:
            message["conversation_id"] = rng.choice(BAD_CONVERSATIONS)
        elif fault == 2:
            message["instance_name"] = prefix + rng.choice(("nowhere", "ghost", "HUB", "hub "))
        elif fault == 3:
            message["database_name"] = rng.choice(("Unlisted", "ALPHA", "msdb ", "Alpha ", " "))
        else:  # a service of blanks is a name; nothing is wrong with it
            message["to_service_name"] = " "


def random_dialogs(rng: random.Random, tables: Tables) -> list[Row]:
    """Draw dialog endpoints with distinct keys, for conversations of the messages."""
    dialogs: dict[tuple[Any, ...], Row] = {}
    for message in tables["messages"]:
        wanted = (message["instance_name"], message["conversation_id"], message["is_initiator"])
        if not message["database_name"] or not all(map(_filled, wanted)) or rng.random() < 0.5:
            continue
        database = message["database_name"]
        is_initiator = message["is_initiator"]
        if rng.random() < 0.15:  # the other end, or another database's
            database, is_initiator = rng.choice((("Alpha", is_initiator), (database, not is_initiator)))
        conversation = message["conversation_id"]
        key = (message["instance_name"], database, conversation.lower(), is_initiator)
        dialogs[key] = {
            "instance_name": message["instance_name"],
            "database_name": database,
            "conversation_id": cased(rng, conversation),
            "is_initiator": is_initiator,
            "conversation_group_id": maybe(rng, 0.5, words.CONVERSATIONS[2]),
            "far_service": maybe(rng, 0.5, message["to_service_name"]),
            "far_broker_instance": _broker(rng, 0.4),
            "lifetime": maybe(rng, 0.12, rng.choice(words.MOMENTS)),
            "acknowledged_at": maybe(rng, 0.6, rng.choice(words.MOMENTS)),
            "acknowledged_broker_instance": _broker(rng, 0.5),
        }
    return list(dialogs.values())


def _filled(value: Any) -> bool:
    return value is not None and value != ""


def _broker(rng: random.Random, share: float) -> str | None:
    """Draw a broker instance for a dialog, or a notation for none."""
    if rng.random() < share:
        return spelt_id(rng, rng.choice(words.BROKER_IDS))
    return rng.choice(words.NO_BROKER_IDS)


def random_requests(rng: random.Random, tables: Tables) -> list[Row]:
    """Draw requests on record, open or ended, by messages or not, earlier or later, and duplicates.

    An end before the request itself is odd but valid.
    """
    requests: list[Row] = []
    # A separate generator keeps the estates the same as before requests had owners.
    whose = random.Random(repr(tables["messages"]))
    for message in tables["messages"]:
        wanted = [message[column] for column in REQUIRED_COLUMNS]
        if not all(map(_filled, wanted)) or rng.random() < 0.8:
            continue
        its_time = message["observed_at"] or message["enqueue_time"]
        its_own = rng.random() < 0.5
        scope = message["database_name"] or "msdb"
        requests.append(
            {
                "instance_name": message["instance_name"],
                "database_name": scope if rng.random() < 0.7 else "msdb",
                "service_name": message["to_service_name"],
                "requested_at": its_time if its_own else rng.choice(words.MOMENTS),
                "message_id": message["message_id"] if its_own else rng.choice((*words.MESSAGE_IDS, "m1")),
                "ended_at": maybe(rng, 0.75, rng.choice(words.MOMENTS)),
                **_whose(whose, message),
            }
        )
        if rng.random() < 0.1:
            requests.append({**requests[-1], "ended_at": rng.choice((None, *words.MOMENTS))})
    return requests


def _whose(rng: random.Random, message: Row) -> Row:
    """Draw the owner of a request: the message's own endpoint, another one, or none."""
    own, other = message["conversation_id"], rng.choice(words.CONVERSATIONS)
    conversation = pick(rng, (5, [own]), (3, [other]), (1, [None, "", f"{{{own}}}", *BAD_CONVERSATIONS]))
    role = message["is_initiator"] if rng.random() < 0.8 else rng.choice((True, False, None))
    return {"conversation_id": cased(rng, conversation) if conversation else conversation, "is_initiator": role}
