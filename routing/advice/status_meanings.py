"""Read a transmission_status: the number and the numbers in its text → what is wrong, and what solves it.

Numbers are those of sys.messages; public cases of trouble establish the rows. A text is read for its
numbers, which are the same in every language, and for the reason that SQL Server gives of a certificate.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from routing.rules.observed import REFUSALS
from routing.terms import Word


class StatusTrouble(Word):
    """The trouble that a status reports."""

    NO_ROUTE = "NO_ROUTE"
    ROUTE_REQUESTED = "ROUTE_REQUESTED"
    REQUEST_FAILED = "REQUEST_FAILED"
    SERVICE_NOT_HERE = "SERVICE_NOT_HERE"
    BROKER_NOT_HERE = "BROKER_NOT_HERE"
    FORWARDING_OFF = "FORWARDING_OFF"
    SENDER_BROKER_OFF = "SENDER_BROKER_OFF"
    MSDB_BROKER_OFF = "MSDB_BROKER_OFF"
    PASSING = "PASSING"
    NOT_TAKEN_THERE = "NOT_TAKEN_THERE"
    NO_ENDPOINT = "NO_ENDPOINT"
    BAD_ADDRESS = "BAD_ADDRESS"
    NAME_NOT_RESOLVED = "NAME_NOT_RESOLVED"
    NOTHING_LISTENS = "NOTHING_LISTENS"
    CLOSED_BY_OTHER_SIDE = "CLOSED_BY_OTHER_SIDE"
    NETWORK_FAILS = "NETWORK_FAILS"
    CONNECTION_REPLACED = "CONNECTION_REPLACED"
    OWNER_NOT_VALID = "OWNER_NOT_VALID"
    MASTER_KEY_CLOSED = "MASTER_KEY_CLOSED"
    NO_SESSION_KEY = "NO_SESSION_KEY"
    NO_PERMISSION = "NO_PERMISSION"
    NO_CONNECT = "NO_CONNECT"
    CERTIFICATE_NOT_YET_VALID = "CERTIFICATE_NOT_YET_VALID"
    CERTIFICATE_EXPIRED = "CERTIFICATE_EXPIRED"
    NO_DIALOG_CERTIFICATE = "NO_DIALOG_CERTIFICATE"
    NO_ENDPOINT_CERTIFICATE = "NO_ENDPOINT_CERTIFICATE"
    NO_BINDING = "NO_BINDING"
    HANDSHAKE_FAILED = "HANDSHAKE_FAILED"
    QUEUE_OFF = "QUEUE_OFF"
    QUEUE_BUSY = "QUEUE_BUSY"
    TARGET_BROKER_OFF = "TARGET_BROKER_OFF"
    TARGET_DATABASE_CLOSED = "TARGET_DATABASE_CLOSED"
    TARGET_EXCEPTION = "TARGET_EXCEPTION"
    CONTRACT_NOT_TAKEN = "CONTRACT_NOT_TAKEN"
    MESSAGE_REFUSED = "MESSAGE_REFUSED"
    DOUBLED_ID = "DOUBLED_ID"
    RESTORED = "RESTORED"
    SERVICE_GONE = "SERVICE_GONE"
    CONVERSATION_ENDED = "CONVERSATION_ENDED"
    STATEMENT_REFUSED = "STATEMENT_REFUSED"
    OTHER_NUMBER = "OTHER_NUMBER"
    UNREAD = "UNREAD"


CONNECTION_TROUBLES = frozenset(
    [
        *(
            StatusTrouble.NO_ENDPOINT,
            StatusTrouble.BAD_ADDRESS,
            StatusTrouble.NAME_NOT_RESOLVED,
            StatusTrouble.NOTHING_LISTENS,
        ),
        *(
            StatusTrouble.CLOSED_BY_OTHER_SIDE,
            StatusTrouble.NETWORK_FAILS,
            StatusTrouble.NO_CONNECT,
            StatusTrouble.HANDSHAKE_FAILED,
        ),
        StatusTrouble.NO_ENDPOINT_CERTIFICATE,
    ]
)
"""What keeps one instance from connecting to another."""
PASSING_TROUBLES = frozenset([StatusTrouble.PASSING, StatusTrouble.QUEUE_BUSY, StatusTrouble.CONNECTION_REPLACED])
"""What passes by itself: SQL Server tries again."""

WORDS: dict[StatusTrouble, str] = {
    StatusTrouble.NO_ROUTE: (
        "SQL Server finds no route for the service name, or a LOCAL route alone while no database of the "
        "instance holds the service. Create the route, or correct its service name, broker instance or "
        "lifetime; names are compared exactly. On the target's side it says the same of a reply: there a "
        "route for the service that sent is missing."
    ),
    StatusTrouble.ROUTE_REQUESTED: (
        "A route is being asked for, and all messages of the conversation wait until that request ends: see "
        "that the SQL/ServiceBroker/BrokerConfiguration service exists, that its program answers, and that it"
        " ends its conversation. A service of the sender's own instance needs a LOCAL route that names it, "
        "since the BrokerConfiguration route comes before AutoCreatedLocal."
    ),
    StatusTrouble.REQUEST_FAILED: (
        "The conversation that asked for a route ended with the error that the text names: mend the "
        "BrokerConfiguration service, or create the route that it was asked for."
    ),
    StatusTrouble.SERVICE_NOT_HERE: (
        "A LOCAL route matches, and no database of the instance holds the service: create the route to where "
        "it is; names are compared exactly."
    ),
    StatusTrouble.BROKER_NOT_HERE: (
        "A LOCAL route matches, and no database of the instance has the broker instance that the dialog is bound "
        "to: correct the route's broker instance, or end the dialog and begin it anew."
    ),
    StatusTrouble.FORWARDING_OFF: (
        "The message was to be forwarded and forwarding is off: enable MESSAGE_FORWARDING on the Service "
        "Broker endpoint, or correct the msdb route."
    ),
    StatusTrouble.SENDER_BROKER_OFF: ("The broker of the sending database is off: ENABLE_BROKER there."),
    StatusTrouble.MSDB_BROKER_OFF: ("The broker of msdb is off: ENABLE_BROKER there."),
    StatusTrouble.PASSING: (
        "SQL Server could not route at that moment (starting, single-user mode, or routes that were being "
        "changed) and tries again by itself."
    ),
    StatusTrouble.NOT_TAKEN_THERE: (
        "The instance at the route's address does not take the message. There, compare exactly the names of "
        "the service and the broker instance of its database, see that the database is online and its broker on, "
        "and that the routes of its msdb lead to it."
    ),
    StatusTrouble.NO_ENDPOINT: (
        "The sending instance has no Service Broker endpoint that could reach another instance: create one "
        "there, STATE = STARTED."
    ),
    StatusTrouble.BAD_ADDRESS: ("The address of the route is none: it has the form TCP://HOST:PORT."),
    StatusTrouble.NAME_NOT_RESOLVED: (
        "The host name in the route's address is not resolved on the sending server: correct the name, or the DNS."
    ),
    StatusTrouble.NOTHING_LISTENS: (
        "Nothing listens at the route's address: see that the Service Broker endpoint there is STARTED, that "
        "it listens on the port of the address, and that a firewall lets the port through."
    ),
    StatusTrouble.CLOSED_BY_OTHER_SIDE: (
        "The other side accepted the connection and closed it: the two endpoints disagree on authentication, "
        "certificates or encryption, the login lacks CONNECT permission on the endpoint, or the port is that "
        "of something else. The error log of the other side has 28047 and the number that says which."
    ),
    StatusTrouble.NETWORK_FAILS: (
        "The network between the two servers fails (a firewall that drops packets, a wrong host, a route that"
        " is down, a timeout): test the address and the port from the sending server, such as by "
        "Test-NetConnection."
    ),
    StatusTrouble.CONNECTION_REPLACED: (
        "Two connections to the same instance met and one of them is closed: SQL Server goes on with the other."
    ),
    StatusTrouble.OWNER_NOT_VALID: (
        "The owner of the database is not a valid login of this server, as after a restore or an attach, or "
        "of a domain that cannot be asked: give the database another owner."
    ),
    StatusTrouble.MASTER_KEY_CLOSED: (
        "The master key of the database is missing or cannot be opened by the server, as after a restore: "
        "create it, or open it and encrypt it by the service master key."
    ),
    StatusTrouble.NO_SESSION_KEY: (
        "A dialog with encryption needs a master key in the database, which the service master key can open: "
        "create it. Within one instance BEGIN DIALOG … WITH ENCRYPTION = OFF does without."
    ),
    StatusTrouble.NO_PERMISSION: (
        "The user that sends has no permission to send to the service: GRANT SEND ON SERVICE in the target's "
        "database, to the user of the remote service binding; to public only where anybody may send."
    ),
    StatusTrouble.NO_CONNECT: (
        "The login of the other side may not connect to the endpoint: GRANT CONNECT ON ENDPOINT to it there."
    ),
    StatusTrouble.CERTIFICATE_NOT_YET_VALID: (
        "The certificate is not valid yet: compare its start date with the clock of the server (both in UTC),"
        " wait, or install one that is valid now."
    ),
    StatusTrouble.CERTIFICATE_EXPIRED: (
        "The certificate is out of date: create another one, give it to the endpoint or the user, and its "
        "public part to the other side."
    ),
    StatusTrouble.NO_DIALOG_CERTIFICATE: (
        "The user of the dialog has no certificate that can be used: create one for the user, and bind the "
        "user to the service by a remote service binding; or BEGIN DIALOG … WITH ENCRYPTION = OFF."
    ),
    StatusTrouble.NO_ENDPOINT_CERTIFICATE: (
        "A certificate of the endpoints is missing or cannot be used: see that the endpoint's certificate is "
        "in master with its private key, and that the other side's public part was created there FROM FILE, "
        "for a user of its own."
    ),
    StatusTrouble.NO_BINDING: (
        "A dialog with encryption needs a remote service binding for the target service: create it for a user"
        " that owns the target's certificate, or BEGIN DIALOG … WITH ENCRYPTION = OFF."
    ),
    StatusTrouble.HANDSHAKE_FAILED: (
        "The two endpoints do not agree: see that both use the same kind of authentication and encryption, "
        "that their certificates or service accounts are known to each other, and that the login has CONNECT "
        "permission."
    ),
    StatusTrouble.QUEUE_OFF: (
        "The target queue is off: a message that was rolled back five times in a row (a poison message) turns"
        " it off. First find the cause in the program that receives from it, or it is turned off again; then "
        "turn it on."
    ),
    StatusTrouble.QUEUE_BUSY: ("The target queue is busy, and takes the message when it can."),
    StatusTrouble.TARGET_BROKER_OFF: (
        "The broker of the target's database is off, or the database is not online: ENABLE_BROKER there."
    ),
    StatusTrouble.TARGET_DATABASE_CLOSED: (
        "The target's database takes no messages: it is read-only, in single-user mode, a mirror, or not online."
    ),
    StatusTrouble.TARGET_EXCEPTION: (
        "An exception at the target queue holds the message back; the text names it, and its end says what to do."
    ),
    StatusTrouble.CONTRACT_NOT_TAKEN: (
        "The target's database lacks the contract, or its service does not take it: create the message types "
        "and the contract there as well, then ALTER SERVICE … (ADD CONTRACT …)."
    ),
    StatusTrouble.MESSAGE_REFUSED: (
        "The target refuses this very message (its XML, or the state of its dialog): the text says why."
    ),
    StatusTrouble.DOUBLED_ID: (
        "Another database of the instance has the same broker instance, as after a copy or a restore:"
        " ENABLE_BROKER on one of them alone, NEW_BROKER on the copy, which ends all dialogs of the copy."
    ),
    StatusTrouble.RESTORED: (
        "The database was attached or restored, and its dialogs are not those of the other side any more: end"
        " them and begin anew."
    ),
    StatusTrouble.SERVICE_GONE: (
        "The database that the dialog is bound to has no such service: the dialog ends with this error. End "
        "it; do not create the service for it."
    ),
    StatusTrouble.CONVERSATION_ENDED: (
        "The other side has ended the conversation: nothing more is delivered in it. END CONVERSATION here "
        "too, and begin a new one where there is more to say."
    ),
    StatusTrouble.STATEMENT_REFUSED: ("A statement about routes was refused with it; no message carries it."),
    StatusTrouble.OTHER_NUMBER: (
        "What this number says is not known here: look it up in sys.messages, and read the whole text."
    ),
    StatusTrouble.UNREAD: (
        "This text could not be read: it is in another language than English, or unknown here, and may say "
        "that anything is wrong. Export the queue again by the queries of sbroute import queries, whose "
        "column error_number has SQL Server's own number for it; until then read the text."
    ),
}
"""What each means, and what solved it where it was met."""


@dataclass(frozen=True)
class StatusCause:
    """Numbers of one trouble.

    ``inner``: only where the text names one of these numbers, of an exception or of the operating system.
    ``marks``: only where the text has one of these words.
    """

    trouble: StatusTrouble
    numbers: tuple[int, ...]
    inner: tuple[int, ...] = ()
    marks: tuple[str, ...] = ()

    def is_of(self, number: int, named: Collection[int], text: str) -> bool:
        """Return True if a status has this trouble; ``named`` are the numbers in its text."""
        has_inner = not self.inner or any(each in named for each in self.inner)
        has_mark = not self.marks or any(phrase in text for phrase in self.marks)
        return number in self.numbers and has_inner and has_mark


_CONNECTING = (9754, 9755, 9756, 9757, 9758, 9759)
# What Windows says of a connection; Linux has numbers of its own.
_REFUSED, _CLOSED = (10061, 111), (10053, 10054, 104)
_NAME = (11001, 11002, 11003, 11004)
_OF_OWNER = (916, 15404, 15517, 33009, 33019)
_OF_MASTER_KEY = (15581,)
_EXCEPTION = 28005
"""The exception that it wraps says what is wrong."""

CAUSES = (
    StatusCause(StatusTrouble.NO_ROUTE, (9750, 9793)),
    StatusCause(StatusTrouble.ROUTE_REQUESTED, (9770,)),
    StatusCause(StatusTrouble.REQUEST_FAILED, (9761,)),
    StatusCause(StatusTrouble.SERVICE_NOT_HERE, (9796,)),
    StatusCause(StatusTrouble.BROKER_NOT_HERE, (9795,)),
    StatusCause(StatusTrouble.FORWARDING_OFF, (9792,)),
    StatusCause(StatusTrouble.SENDER_BROKER_OFF, (9791,)),
    StatusCause(StatusTrouble.MSDB_BROKER_OFF, (9789,)),
    StatusCause(StatusTrouble.PASSING, (9771, 9780, 9781, 9787, 9788, 9790, 9794, 9797, 9798, 28075)),
    StatusCause(StatusTrouble.NOT_TAKEN_THERE, (9753, 28017)),
    StatusCause(StatusTrouble.NO_ENDPOINT, (9666, 9748, 28080)),
    StatusCause(StatusTrouble.BAD_ADDRESS, (9785,)),
    StatusCause(StatusTrouble.NAME_NOT_RESOLVED, (9783,)),
    StatusCause(StatusTrouble.NAME_NOT_RESOLVED, _CONNECTING, inner=_NAME),
    StatusCause(StatusTrouble.NOTHING_LISTENS, _CONNECTING, inner=_REFUSED),
    StatusCause(StatusTrouble.CLOSED_BY_OTHER_SIDE, _CONNECTING, inner=_CLOSED),
    StatusCause(StatusTrouble.CLOSED_BY_OTHER_SIDE, (9757, 9758, 28028)),
    StatusCause(StatusTrouble.NETWORK_FAILS, (*_CONNECTING, 28071)),
    StatusCause(StatusTrouble.CONNECTION_REPLACED, (28032, 28033, 28098)),
    StatusCause(StatusTrouble.OWNER_NOT_VALID, (_EXCEPTION, *_OF_OWNER), inner=_OF_OWNER),
    StatusCause(StatusTrouble.MASTER_KEY_CLOSED, (_EXCEPTION, *_OF_MASTER_KEY), inner=_OF_MASTER_KEY),
    StatusCause(StatusTrouble.QUEUE_OFF, (_EXCEPTION,), inner=(9617,)),
    StatusCause(StatusTrouble.TARGET_EXCEPTION, (_EXCEPTION,)),
    StatusCause(StatusTrouble.QUEUE_OFF, (9617, 11219)),
    StatusCause(StatusTrouble.QUEUE_BUSY, (9749,)),
    StatusCause(StatusTrouble.NO_SESSION_KEY, (9652, 28050, 28051, 28054)),
    StatusCause(StatusTrouble.NO_PERMISSION, (8494, 11215, 28056)),
    StatusCause(StatusTrouble.NO_CONNECT, (9752, 28034, 28048)),
    StatusCause(StatusTrouble.CERTIFICATE_NOT_YET_VALID, (28022, 28024)),
    StatusCause(StatusTrouble.CERTIFICATE_NOT_YET_VALID, (28035, 28036), marks=("not yet valid",)),
    StatusCause(StatusTrouble.CERTIFICATE_EXPIRED, (9763, 28023, 28025)),
    StatusCause(StatusTrouble.CERTIFICATE_EXPIRED, (28035, 28036), marks=("expired", "not valid at")),
    StatusCause(StatusTrouble.NO_DIALOG_CERTIFICATE, (9728, 9730, 9731, 9733, 9734, 9735, 9737, 9767, 9768)),
    StatusCause(StatusTrouble.NO_ENDPOINT_CERTIFICATE, (9762, 9764, 9765, 9766, 28035, 28036, 28037, 28045)),
    StatusCause(StatusTrouble.NO_BINDING, (9727,)),
    StatusCause(
        StatusTrouble.HANDSHAKE_FAILED,
        (9649, 9751, 28026, 28027, 28029, 28030, 28031, 28038, 28039, 28047, 28059, 28070, 28079, 28081, 28082),
    ),
    StatusCause(StatusTrouble.TARGET_BROKER_OFF, (28012, 28013, 28016)),
    StatusCause(StatusTrouble.TARGET_DATABASE_CLOSED, (28014, 28015, 28018, 28021)),
    StatusCause(StatusTrouble.CONTRACT_NOT_TAKEN, (11214,)),
    StatusCause(StatusTrouble.MESSAGE_REFUSED, (9704, 28004, 28010, 28011)),
    StatusCause(StatusTrouble.DOUBLED_ID, (9723, 9772, 9773, 9776, 9777)),
    StatusCause(StatusTrouble.RESTORED, (9719, 9720)),
    StatusCause(StatusTrouble.SERVICE_GONE, (8490,)),
    StatusCause(StatusTrouble.CONVERSATION_ENDED, (9779, 9784)),
    StatusCause(StatusTrouble.STATEMENT_REFUSED, REFUSALS),
)
"""Earlier rows count before later ones; every known number has a row that holds whatever the text says."""

# `10061(No connection could be made …)`, and `Error: 15517, State: 1.`; in any language.
_OF_THE_SYSTEM = re.compile(r"(?<![\w.])\d{1,5}(?=\()", re.ASCII)
_STANDING_ALONE = re.compile(r"(?<![\w.\-])\d{3,5}(?![\w\-(]|\.\d)", re.ASCII)


def find_trouble(number: int | None, text: str | None) -> StatusTrouble | None:
    """Return the trouble that a status reports; None where it is blank.

    ``number`` is SQL Server's, None where it is not known: then the text is UNREAD, and may say anything.

    >>> find_trouble(9754, "Connection attempt failed with error: '10061(No connection could be made.)'.")
    <Trouble.NOTHING_LISTENS: 'NOTHING_LISTENS'>
    """
    if not text:
        return None
    if number is None:
        return StatusTrouble.UNREAD
    named = {number, *find_numbers(text)}
    lowered = text.lower()
    rows = (row.trouble for row in CAUSES if row.is_of(number, named, lowered))
    return next(rows, StatusTrouble.OTHER_NUMBER)


def find_numbers(text: str) -> set[int]:
    """Return the numbers of exceptions and of the operating system that a text may name."""
    numbers = (*_OF_THE_SYSTEM.findall(text), *_STANDING_ALONE.findall(text))
    return {int(each) for each in numbers}
