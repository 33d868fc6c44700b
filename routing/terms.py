"""Define the vocabulary of the rule book: outcomes, reasons, steps, and SQL Server's own terms."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Any

TableRow = dict[str, Any]
"""A row of a table: its values by column."""
ReadRow = Mapping[str, Any]
"""A row that is only read."""
JsonObject = dict[str, Any]
"""An object of JSON, as ``json`` reads and writes it."""
SortKey = tuple[Any, ...]
"""A key for sorting, which is only compared."""


class Word(str, Enum):
    """A word that tables store as text. ``str(word)`` is that text on every Python version."""

    def __str__(self) -> str:
        # This is faster than ``value``, which enumerations look up with a Python function.
        return str(self._value_)


class ImportKind(Word):
    """The kind of a row of ``imports``. It is null in rows of older releases, which have only names of views."""

    VIEW = "VIEW"
    SCRIPT = "SCRIPT"


class Outcome(Word):
    """Name the outcomes of messages: the words of column ``outcome`` of ``resolved_routes``.

    Example:
        >>> routing.Outcome("SENT") == "SENT", [str(word) for word in routing.Outcome]
        (True, ['DELIVERED', 'SENT', 'FORWARDED', 'DELAYED', 'DROPPED'])
    """

    DELIVERED = "DELIVERED"
    SENT = "SENT"
    FORWARDED = "FORWARDED"
    DELAYED = "DELAYED"
    DROPPED = "DROPPED"


LEAVES = frozenset([Outcome.SENT, Outcome.FORWARDED])
"""The outcomes of a message that leaves its instance."""
ON_ITS_WAY = LEAVES | {Outcome.DELIVERED}
"""The outcomes of a message that its instance neither keeps nor drops."""
STAYS = frozenset([Outcome.DELAYED, Outcome.DROPPED])
"""The outcomes of a message that its instance keeps or drops."""

_OUTCOMES: dict[str | None, Outcome] = {outcome.value: outcome for outcome in Outcome}


def known_outcome(word: str | None) -> Outcome | None:
    """Return the outcome of a word from a table, or None for any other word."""
    return _OUTCOMES.get(word)


REJECTED = "REJECTED"
"""Takes the place of the outcome of a rejected message."""
NOT_KNOWN = "NOT_KNOWN"
"""Takes the place of an outcome if a missing export decides it."""


class Ending(Word):
    """The end of a message that was followed from instance to instance."""

    DELIVERED = "DELIVERED"
    DELAYED = "DELAYED"
    DROPPED = "DROPPED"
    LEFT_ESTATE = "LEFT_ESTATE"
    LOOP = "LOOP"
    TOO_MANY_WAYS = "TOO_MANY_WAYS"
    NOT_KNOWN = "NOT_KNOWN"


class PathEnd(Word):
    """The joint ending of a message over all its paths. DELIVERED includes the acknowledgement."""

    DELIVERED = "DELIVERED"
    DELAYED = "DELAYED"
    DROPPED = "DROPPED"
    LOOP = "LOOP"
    NO_RETURN_PATH = "NO_RETURN_PATH"
    NOT_KNOWN = "NOT_KNOWN"


class Reason(Word):
    """Name why a message has its outcome: the words of column ``reason`` of ``resolved_routes``.

    Example:
        >>> routing.Reason.NO_ROUTE == "NO_ROUTE", len(routing.Reason)
        (True, 15)
    """

    LOCAL_SERVICE = "LOCAL_SERVICE"
    NETWORK_ADDRESS = "NETWORK_ADDRESS"
    MIRROR_ADDRESS = "MIRROR_ADDRESS"
    TRANSPORT_ADDRESS = "TRANSPORT_ADDRESS"
    ROUTE_REQUESTED = "ROUTE_REQUESTED"
    NO_ROUTE = "NO_ROUTE"
    SERVICE_NOT_FOUND = "SERVICE_NOT_FOUND"
    BROKER_INSTANCE_NOT_FOUND = "BROKER_INSTANCE_NOT_FOUND"
    BROKER_DISABLED = "BROKER_DISABLED"
    SCOPE_BROKER_DISABLED = "SCOPE_BROKER_DISABLED"
    TRANSPORT_ADDRESS_INVALID = "TRANSPORT_ADDRESS_INVALID"
    FORWARDING_DISABLED = "FORWARDING_DISABLED"
    HOP_LIMIT = "HOP_LIMIT"
    ROUTING_LOOP = "ROUTING_LOOP"
    DIALOG_EXPIRED = "DIALOG_EXPIRED"


# The errors by which SQL Server reports the same situations (rule book, section 7). msdb has its own error below.
ERROR_NUMBERS: dict[Reason, int] = {
    Reason.NO_ROUTE: 9793,
    Reason.ROUTE_REQUESTED: 9770,
    Reason.SERVICE_NOT_FOUND: 9796,
    Reason.BROKER_INSTANCE_NOT_FOUND: 9795,
    Reason.FORWARDING_DISABLED: 9792,
    Reason.SCOPE_BROKER_DISABLED: 9791,
    Reason.BROKER_DISABLED: 28012,
}
MSDB_BROKER_DISABLED = 9789


class MatchingStep(IntEnum):
    """Number the steps of section 2 of the rule book. 0 is a reply from outside (section 1).

    Example:
        >>> routing.MatchingStep.BALANCED, int(routing.MatchingStep.BALANCED)
        (<MatchingStep.BALANCED: 3>, 3)
    """

    REPLY = 0
    BROKER_INSTANCE = 1
    SERVICE = 2
    BALANCED = 3
    ROUTE_REQUEST = 4
    ANY_SERVICE = 5
    SERVICE_OF_THIS_INSTANCE = 6
    NO_MATCH = 7


class Rejection(Word):
    """The reason for rejecting a row of messages. Some methods return the code for a column."""

    CONVERSATION_ID_NOT_A_GUID = "CONVERSATION_ID_NOT_A_GUID"
    UNKNOWN_INSTANCE = "UNKNOWN_INSTANCE"
    UNKNOWN_DATABASE = "UNKNOWN_DATABASE"
    INSTANCE_QUARANTINED = "INSTANCE_QUARANTINED"
    DUPLICATE_MESSAGE_ID = "DUPLICATE_MESSAGE_ID"

    @staticmethod
    def missing(column: str) -> str:
        """Return the code of a required column without a value."""
        return f"MISSING_{column.upper()}"

    @staticmethod
    def not_utf8(column: str) -> str:
        """Return the code of a text that is not UTF-8."""
        return f"NOT_UTF8_{column.upper()}"

    @staticmethod
    def out_of_range(column: str) -> str:
        """Return the code of an integer that does not fit the column's type."""
        return f"OUT_OF_RANGE_{column.upper()}"


LOCAL_ADDRESS = "LOCAL"
TRANSPORT_ADDRESS = "TRANSPORT"
MSDB = "msdb"
SYSTEM_DATABASES = frozenset(["master", "model", MSDB, "tempdb"])
"""The databases of SQL Server itself, to whose services nobody routes."""
TRANSMISSION_QUEUE = "TRANSMISSION_QUEUE"
"""The source of the status in a transmission queue (column ``source`` of ``observed_routing``)."""
CLASSIFY_EVENT = "CLASSIFY_EVENT"
FORWARD_SENT = "FORWARD_SENT"
FORWARD_DROPPED = "FORWARD_DROPPED"
UNDELIVERABLE = "UNDELIVERABLE"
EVENT_SOURCES = (CLASSIFY_EVENT, FORWARD_SENT, FORWARD_DROPPED, UNDELIVERABLE)
"""The sources of rows from Extended Events."""
BROKER_CONFIGURATION_SERVICE = "SQL/ServiceBroker/BrokerConfiguration"
ZERO_GUID = "00000000-0000-0000-0000-000000000000"
MISSING_ROUTE_NAMESPACE = "https://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice/MissingRoute"
BLANKS = " \t\n\r"
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]", ".")

DEFAULT_BROADCAST_LIMIT = "512MB"
AUTO, SPARK, LOCAL_ENGINE = "auto", "spark", "local"
STOP, QUARANTINE = "stop", "quarantine"
ON_CONFIG_FAULT = (STOP, QUARANTINE)
"""Values of ``resolve.on_config_fault``: a faulty row stops the run, or only its instance is not decided."""
ENGINES = (AUTO, SPARK, LOCAL_ENGINE)
"""Values of ``resolve.engine``: Spark, the local engine (Arrow and delta-rs), or the command chooses."""
