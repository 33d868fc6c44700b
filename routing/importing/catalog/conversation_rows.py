"""Make dialogs, messages and observed routing of conversation endpoints and the transmission queue."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter

from routing.importing.compact_rows import row_maker
from routing.importing.covered_rows import CoveredRows, name_message
from routing.rules.observed import REFUSALS, NumberTopic, topic_of
from routing.terms import TRANSMISSION_QUEUE, Outcome, TableRow

# The texts of sys.messages in English that a transmission_status may have, by SQL Server's number.
#
# In lower case, with single blanks, as far as they tell one number from all others; ``…`` stands for a value.


_CERTIFICATE = "looking up the public key certificate associated with this sql server instance"
_HANDSHAKE = "connection handshake failed."
_MSDB = "the system database msdb containing routing information is"
_PRINCIPAL = "security certificate bound to database principal"

TEXTS: dict[int, str] = {
    8490: "cannot find the remote service … because it does not exist",
    8494: "you do not have permission to access the service",
    9617: "the service queue … is currently disabled",
    9649: "a security (sspi) error occurred when connecting to another service broker",
    9652: "service broker failed to retrieve the session key for encrypting a message",
    9659: "of route … cannot be empty",
    9660: "of route … must be less than … characters long",
    9661: "the service_name and broker_instance of route … must be specified when using mirroring",
    9662: "cannot specify broker_instance without service_name in route",
    9666: "transport is disabled or not configured",
    9704: "this message could not be delivered because it failed xml validation",
    9719: "the database for this conversation endpoint is attached or restored",
    9720: "the database for the remote conversation endpoint is attached or restored",
    9723: "will not be started as the broker due to duplication in the broker instance id",
    9727: "dialog security is not available for this conversation",
    9728: "cannot find the security certificate because the lookup database principal id … is not valid",
    9730: "cannot find the security certificate because … does not correspond to a server principal",
    9731: "dialog security is unavailable for this conversation",
    9733: f"there is no private key for the {_PRINCIPAL}",
    9734: f"the length of the private key for the {_PRINCIPAL}",
    9735: f"the length of the public key for the {_PRINCIPAL}",
    9737: "the private key for the security certificate bound to the database principal … is password protected",
    9743: "of route … must be an address when using mirroring",
    9744: "of route … is not a valid address",
    9745: "the address of route … cannot be 'transport' when service_name is specified",
    9746: "the lifetime of route … must be in the range",
    9747: "the address and mirror_address of route … cannot be the same",
    9748: "protocol transport is not available",
    9749: "target queue is busy",
    9750: "no route matches the destination service name for this conversation",
    9751: "authentication failed with error",
    9752: "connection was refused. the user account of the remote server is not permitted",
    9753: "the target service broker is unreachable",
    9754: "connection attempt failed with error",
    9755: "an error occurred while receiving data",
    9756: "an internal exception occurred while connecting to an adjacent broker",
    9757: "network protocol error occurred",
    9758: "login protocol negotiation error occurred",
    9759: "an error occurred while sending data",
    9761: "the broker configuration conversation on dialog handle",
    9762: f"{_CERTIFICATE}: no certificate was found",
    9763: f"{_CERTIFICATE}: the certificate found is not valid at the current time",
    9764: f"{_CERTIFICATE}: the certificate found is too large",
    9765: f"{_CERTIFICATE}: the certificate found has no associated private key",
    9766: f"an unknown internal error … occurred while {_CERTIFICATE}",
    9767: f"{_PRINCIPAL} … has been disabled for use with begin dialog",
    9768: "a database user associated with the secure conversation was dropped",
    9770: "locating routes and security information via the broker configuration service",
    9771: "the service broker manager is disabled in single-user mode",
    9772: "cannot be enabled because there is already an enabled service broker with the same id",
    9773: "is disabled because there is already an enabled service broker with the same id",
    9776: "cannot enable the service broker in database",
    9777: "will be disabled because the service broker guid in the database",
    9779: "service broker received an end conversation message on this conversation",
    9780: "the service broker manager is initializing",
    9781: "the service broker manager is shutting down",
    9783: "dns lookup failed with error",
    9784: "service broker received an error message on this conversation",
    9785: "invalid address specified",
    9787: "an error occurred while processing broker mirroring routes",
    9788: f"{_MSDB} not available",
    9789: f"{_MSDB} not available. the broker is disabled in msdb",
    9790: f"{_MSDB} in single user mode",
    9791: "the broker is disabled in the sender's database",
    9792: "forwarding is disabled in this sql server instance",
    9793: "the target service name could not be found",
    9794: "the broker mirroring manager has not fully initialized",
    9795: "could not find the target broker in the local sql server instance",
    9796: "the target service name matched a local route, but there is no service by that name",
    9797: "classification has been delayed because the routing information is currently being updated",
    9798: "could not be classified",
    11214: "contract could not be found or the service does not accept conversations for the contract",
    11215: "does not have permission to send to the service",
    11219: "the destination queue has been disabled",
    28004: "this message could not be delivered because the … action cannot be performed in the … state",
    28005: "an exception occurred while enqueueing a message in the target queue",
    28010: "this message could not be delivered because it contains an invalid acknowledged message number",
    28011: "this message could not be delivered because its … has expired or is invalid",
    28012: "the service broker in the target database is unavailable",
    28013: "the service broker is administratively disabled",
    28014: "the database is in read-only mode",
    28015: "the database is in single-user mode",
    28016: "has been dropped because the service broker in the target database is unavailable",
    28017: "has been dropped because the target service broker is unreachable",
    28018: "the database is a replica of a mirrored database",
    28021: "could not be delivered to the local service targeted by this dialog",
    28022: f"{_CERTIFICATE}: the certificate is not yet valid",
    28023: f"{_CERTIFICATE}: the certificate has expired",
    28024: f"{_PRINCIPAL} … is not yet valid",
    28025: f"{_PRINCIPAL} … has expired",
    28026: f"{_HANDSHAKE} not enough memory available",
    28027: f"{_HANDSHAKE} there is no compatible",
    28028: f"{_HANDSHAKE} could not send a handshake message because the connection was closed by peer",
    28029: f"{_HANDSHAKE} unexpected event",
    28030: f"{_HANDSHAKE} a call to the sql server network interface failed",
    28031: f"{_HANDSHAKE} an os call failed",
    28032: "a previously existing connection with the same peer was detected during connection handshake",
    28033: "a new connection was established with the same peer",
    28034: f"{_HANDSHAKE} the login … does not have connect permission on the endpoint",
    28035: f"{_HANDSHAKE} the certificate used by the peer is invalid",
    28036: f"{_HANDSHAKE} the certificate used by this endpoint was not found",
    28037: f"{_HANDSHAKE} error … occurred while initializing the private key",
    28038: f"{_HANDSHAKE} the handshake verification failed",
    28039: f"{_HANDSHAKE} the receive sspi packet is not of type of the negotiated package",
    28045: f"{_HANDSHAKE} the certificate used by the peer does not match the one in master database",
    28047: "login attempt failed with error",
    28048: "login attempt by user … failed with error",
    28050: "the session keys for this conversation could not be created or accessed",
    28051: "could not save a dialog session key",
    28054: "service broker needs to access the master key in the database",
    28056: "does not have control permission on the service",
    28059: f"{_HANDSHAKE} the received premaster secret of size",
    28070: f"{_HANDSHAKE} the received sspi message confirm status is unexpected",
    28071: "could not be forwarded",
    28075: "the broker in the sender's database is in single user mode",
    28079: f"{_HANDSHAKE} the received sspi packet is not of the expected direction",
    28080: f"{_HANDSHAKE} the … endpoint is not configured",
    28081: f"{_HANDSHAKE} an unexpected status … was returned when trying to send a handshake message",
    28082: f"{_HANDSHAKE} an unexpected internal failure occurred when trying to marshal a message",
    28098: "a previously existing connection with the same peer was found after dns lookup",
}

OTHER_TEXTS: tuple[tuple[int, str], ...] = ((9666, "endpoint is in disabled or stopped state"),)
"""Texts of the same numbers in other versions of SQL Server."""


# sys.transmission_queue.transmission_status → SQL Server's error number, and whether routing delays it.
#
# What the numbers are about is said in `routing.rules.observed`.


_PIECES = [
    (number, len(text), tuple(piece.strip() for piece in text.split("…")))
    for number, text in (*TEXTS.items(), *OTHER_TEXTS)
]
_STANDING_ALONE = re.compile(r"(?<![\w:.\-('\"])\d{4,5}(?![\w\-(]|\.\d)")
_AFTER_ERROR = re.compile(r"\b(?:error|msg)\b(?: number)?[: ]+(\d{3,5})\b(?!\()", re.IGNORECASE)
# In any language 28005 ends its first sentence, and goes on with "Error: 15517, State: 1.".
# Chinese and Japanese have wide colons and commas.
_COLON, _COMMA = r":\uff1a", r",;\uff0c\u3001"
_EXCEPTION = re.compile(rf"[^{_COLON}]*[{_COLON}]\s*\d{{3,5}}\s*[{_COMMA}][^{_COLON}\d]*[{_COLON}]\s*\d{{1,3}}\b")
_EXCEPTION_OF_TARGET = 28005


def error_number(status: str) -> int | None:
    """Return the error number in a status text, or the number of the known text in it, or None.

    A text may contain the text of its cause. The one that begins first counts, and the longer one if both begin
    together.
    """
    for match in _STANDING_ALONE.finditer(status):
        if topic_of(int(match.group(0))) is not None:
            return int(match.group(0))
    words = " ".join(status.lower().split())
    begins = [(_find(pieces, words), -longest, number) for number, longest, pieces in _PIECES]
    matches = [(start, length, number) for start, length, number in begins if start is not None]
    if matches:
        return min(matches)[-1]
    if _EXCEPTION.match(status):
        return _EXCEPTION_OF_TARGET
    named = _AFTER_ERROR.search(status)
    return int(named.group(1)) if named else None


def _find(pieces: tuple[str, ...], words: str) -> int | None:
    """Return the beginning of the first piece, or None unless all pieces follow in order."""
    first = end = words.find(pieces[0])
    for piece in pieces:
        begin = words.find(piece, end)
        if begin < 0:
            return None
        end = begin + len(piece)
    return first


def outcome(number: int | None) -> str | None:
    """Return DELAYED if routing makes the message wait, or None if the outcome is unknown."""
    waits = topic_of(number) is NumberTopic.ROUTING and number not in REFUSALS
    return str(Outcome.DELAYED) if waits else None


_SHOWN = 3


_DIALOG = (
    *("instance_name", "database_name", "conversation_id", "is_initiator", "conversation_group_id"),
    *("far_service", "far_broker_instance", "lifetime"),
)
_NOT_ACKNOWLEDGED = ("acknowledged_at", "acknowledged_broker_instance")
_ROW_OF_ENDPOINT = itemgetter("instance_name", "database_name", "conversation_handle")


def dialogs(covered: CoveredRows, rows: Sequence[TableRow]) -> None:
    """Add a row for each endpoint. Its far broker instance may come from BEGIN DIALOG or an acknowledgement."""
    seen = set[tuple[object, ...]]()
    make_row, values_of = row_maker((*_DIALOG, *_NOT_ACKNOWLEDGED)), itemgetter(*_DIALOG)
    nothing = (None,) * len(_NOT_ACKNOWLEDGED)
    for row in rows:
        values = values_of(row)
        key = values[:4]
        if key in seen:
            covered.reject("conversation_endpoints", row, "the conversation endpoint appears twice")
            continue
        seen.add(key)
        covered.add("dialogs", make_row(values + nothing))


def messages(covered: CoveredRows, rows: Mapping[str, Sequence[TableRow]]) -> None:
    """Add the messages of the queue, each with the endpoint of its handle, and the statuses observed of them."""
    by_handle = {_ROW_OF_ENDPOINT(row): row for row in rows.get("conversation_endpoints", ())}
    seen: set[tuple[str, str]] = set()
    statuses = _StatusTexts()
    make_message, make_observation = row_maker(_MESSAGE), row_maker(_OBSERVATION)
    for row in rows.get("transmission_queue", ()):
        endpoint = by_handle.get(_ROW_OF_ENDPOINT(row))
        if endpoint is None:
            covered.without_endpoint.append(row)
            continue
        message = make_message(_message(row, endpoint))
        key = (message["instance_name"], message["message_id"])
        if key in seen:
            covered.reject("transmission_queue", row, f"the message {message['message_id']} appears twice")
            continue
        seen.add(key)
        covered.add("messages", message)
        covered.add("observed_routing", make_observation(_observe(row, message, statuses)))
    _note_statuses(covered, statuses.unknown)


def reject_without_endpoint(covered: CoveredRows) -> None:
    """Reject the rows of queues without a known dialog, because their broker instance is unknown."""
    for row in covered.without_endpoint:
        covered.reject("transmission_queue", row, _why_without_endpoint(covered, row))


def _why_without_endpoint(covered: CoveredRows, row: TableRow) -> str:
    """Return the reason why a message has no dialog: endpoints not exported, or none with its handle."""
    instance, database = row["instance_name"], row["database_name"]
    if (instance, database) not in covered.units.get("conversation_endpoints", {}):
        return f"sys.conversation_endpoints of {instance}.{database} is missing: export it as well"
    return f"no conversation endpoint has its handle {row['conversation_handle']}"


_KNOWN_BY = ("instance_name", "database_name", "conversation_id", "is_initiator", "message_sequence_number")
_MESSAGE = (
    *(*_KNOWN_BY, "message_id", "enqueue_time", "observed_at", "to_service_name", "to_broker_instance"),
    *("hops_remaining", "from_service_name"),
)
_OBSERVATION = (
    *(*_KNOWN_BY, "message_id", "observed_at", "conversation_handle", "source"),
    *("status_text", "error_number", "outcome", "to_service_name", "to_broker_instance", "from_service_name"),
)


def _message(row: TableRow, endpoint: TableRow) -> tuple[object, ...]:
    """Return the values of ``_MESSAGE``."""
    known_by = {
        "instance_name": row["instance_name"],
        "database_name": row["database_name"],
        "conversation_id": endpoint["conversation_id"],
        "is_initiator": endpoint["is_initiator"],
        "message_sequence_number": row["message_sequence_number"],
    }
    return (
        *(*known_by.values(), name_message(known_by), row["enqueue_time"], row["exported_at"]),
        *(row["to_service_name"], row["to_broker_instance"], None, row["from_service_name"]),
    )


class _StatusTexts:
    """Texts of transmission_status: each is looked up once, and counted if it is blank or unknown."""

    def __init__(self) -> None:
        self._known: dict[tuple[str | None, int | None], tuple[str, int | None, str | None]] = {}
        self.unknown: Counter[str] = Counter()

    def of_row(self, row: TableRow) -> tuple[str, int | None, str | None]:
        """Return the status of a row of the queue, its number, and the outcome that it is of."""
        written = row["transmission_status"], row["error_number"]
        known = self._known.get(written)
        if known is None:
            status, number = status_of(row)
            known = self._known[written] = status, number, outcome(number)
        if known[1] is None:
            self.unknown[known[0]] += 1
        return known


def _observe(row: TableRow, message: TableRow, statuses: _StatusTexts) -> tuple[object, ...]:
    """Return the values of ``_OBSERVATION``."""
    status, number, said_outcome = statuses.of_row(row)
    return (
        *(message[name] for name in (*_KNOWN_BY, "message_id", "observed_at")),
        *(row["conversation_handle"], TRANSMISSION_QUEUE, status or None, number, said_outcome),
        *(row["to_service_name"], row["to_broker_instance"], row["from_service_name"]),
    )


def status_of(row: TableRow) -> tuple[str, int | None]:
    """Return the status of a row of the queue and its error number, if it has one.

    The number that the server found in its own messages comes first, because the text may be in any language.
    """
    status = (row["transmission_status"] or "").strip()
    if not status:
        return status, None
    return status, row["error_number"] or error_number(status)


def _note_statuses(covered: CoveredRows, statuses: Counter[str]) -> None:
    blank = statuses.pop("", 0)
    if blank:
        why = "not tried yet, or sent and not acknowledged"
        covered.notes.append(f"{_messages_have(blank)} a blank transmission_status: {why}")
    if statuses:
        texts = ", ".join(repr(text[:100]) for text, _ in statuses.most_common(_SHOWN))
        have = _messages_have(statuses.total())
        covered.notes.append(
            f"{have} a transmission_status that is not recognised, such as {texts}; if it is in another"
            " language than English, export the queue by sbroute import queries, which adds SQL Server's number"
        )


def _messages_have(number: int) -> str:
    return "1 message has" if number == 1 else f"{number} messages have"
