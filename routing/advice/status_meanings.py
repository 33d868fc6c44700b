"""Find the trouble in a transmission_status by its number and the numbers in its text.

Numbers are those of sys.messages, and public reports confirm the rows. Numbers in a text are the same in every
language. Only the reason for a rejected certificate is read in words.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from routing.rules.observed import CORRUPTED, OF_WINDOWS, REFUSALS, SENT_AGAIN, TRANSMITTER
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
    NOT_CLASSIFIED = "NOT_CLASSIFIED"
    NOT_TAKEN_THERE = "NOT_TAKEN_THERE"
    NO_ENDPOINT = "NO_ENDPOINT"
    BAD_ADDRESS = "BAD_ADDRESS"
    NAME_NOT_RESOLVED = "NAME_NOT_RESOLVED"
    NOTHING_LISTENS = "NOTHING_LISTENS"
    CLOSED_BY_OTHER_SIDE = "CLOSED_BY_OTHER_SIDE"
    NETWORK_FAILS = "NETWORK_FAILS"
    CONNECTION_FORBIDDEN = "CONNECTION_FORBIDDEN"
    CONNECTION_REPLACED = "CONNECTION_REPLACED"
    OWNER_NOT_VALID = "OWNER_NOT_VALID"
    USER_NOT_VALID = "USER_NOT_VALID"
    NAME_NOT_FOUND = "NAME_NOT_FOUND"
    NOT_TRUSTED = "NOT_TRUSTED"
    MASTER_KEY_CLOSED = "MASTER_KEY_CLOSED"
    NO_SESSION_KEY = "NO_SESSION_KEY"
    NO_PERMISSION = "NO_PERMISSION"
    NO_ACCESS = "NO_ACCESS"
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
    TARGET_FULL = "TARGET_FULL"
    TARGET_DAMAGED = "TARGET_DAMAGED"
    NO_MEMORY = "NO_MEMORY"
    DATABASE_NOT_OPENED = "DATABASE_NOT_OPENED"
    ENDED_BY_TRIGGER = "ENDED_BY_TRIGGER"
    TARGET_EXCEPTION = "TARGET_EXCEPTION"
    CONTRACT_NOT_TAKEN = "CONTRACT_NOT_TAKEN"
    LICENSE = "LICENSE"
    MESSAGE_REFUSED = "MESSAGE_REFUSED"
    SENT_AGAIN = "SENT_AGAIN"
    TAKEN_BY_OTHER = "TAKEN_BY_OTHER"
    DOUBLED_ID = "DOUBLED_ID"
    ID_DIFFERS = "ID_DIFFERS"
    RESTORED = "RESTORED"
    SERVICE_GONE = "SERVICE_GONE"
    CONVERSATION_ENDED = "CONVERSATION_ENDED"
    LIFETIME_OVER = "LIFETIME_OVER"
    KEY_LOST = "KEY_LOST"
    TRANSMITTER_FAILED = "TRANSMITTER_FAILED"
    SYSTEM_FAILED = "SYSTEM_FAILED"
    MESSAGE_CORRUPTED = "MESSAGE_CORRUPTED"
    STATEMENT_REFUSED = "STATEMENT_REFUSED"
    OTHER_NUMBER = "OTHER_NUMBER"
    UNREAD = "UNREAD"


CONNECTION_TROUBLES = frozenset(
    [
        StatusTrouble.NO_ENDPOINT,
        StatusTrouble.BAD_ADDRESS,
        StatusTrouble.NAME_NOT_RESOLVED,
        StatusTrouble.NOTHING_LISTENS,
        StatusTrouble.CLOSED_BY_OTHER_SIDE,
        StatusTrouble.NETWORK_FAILS,
        StatusTrouble.CONNECTION_FORBIDDEN,
        StatusTrouble.NO_CONNECT,
        StatusTrouble.HANDSHAKE_FAILED,
        StatusTrouble.NO_ENDPOINT_CERTIFICATE,
    ]
)
"""The troubles that prevent a connection between instances."""
PASSING_TROUBLES = frozenset([StatusTrouble.PASSING, StatusTrouble.QUEUE_BUSY, StatusTrouble.CONNECTION_REPLACED])
"""The troubles that pass without action, because SQL Server tries again."""


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
        """Return True if a status has this trouble. ``named`` are its number and those that its text names."""
        has_inner = not self.inner or any(number in named for number in self.inner)
        has_mark = not self.marks or any(phrase in text for phrase in self.marks)
        return number in self.numbers and has_inner and has_mark


_CONNECTING = (9754, 9755, 9756, 9757, 9758, 9759)
# Windows' errors of a connection. Linux has its own numbers.
_REFUSED, _CLOSED = (1225, 10061, 111), (10053, 10054, 104)
_NAME = (11001, 11002, 11003, 11004)
_NETWORK = (64, 121, 1231, 1232, 1236, 10050, 10051, 10052, 10060, 10064, 10065, 110, 113)
# No right to connect, or no socket left.
_FORBIDDEN, _FORBIDDEN_ON_LINUX = (10013, 10024, 10048, 10055), 13
_OF_CONNECTIONS = frozenset([*_REFUSED, *_CLOSED, *_NAME, *_NETWORK, *_FORBIDDEN])
_OF_OWNER = (916, 15404, 15406, 15517, 33009, 33019)
_DBO = ("'dbo'", '"dbo"', "«dbo»", "« dbo »", "«\u00a0dbo\u00a0»", "„dbo“", "„dbo”", "“dbo”", "「dbo」")
_OF_MASTER_KEY = (15315, 15466, 15581)
_OF_CLOSED = (921, 922, 924, 926, 927, 942, 945, 952, 954, 976, 978, 979, 982, 983, 3906, 9001)
# Errors 28012 and 28016 quote the texts of 28014, 28015 and 28018.
_CLOSED_WORDS = "read-only mode", "single-user mode", "replica of a mirrored"
_WRAPPING = (9736, 28005)
"""The numbers of errors that wrap another one. The first number in their text names that error."""

CAUSES = (
    StatusCause(StatusTrouble.NO_ROUTE, (9750, 9793)),
    StatusCause(StatusTrouble.ROUTE_REQUESTED, (9770,)),
    StatusCause(StatusTrouble.REQUEST_FAILED, (9761,)),
    StatusCause(StatusTrouble.SERVICE_NOT_HERE, (9796,)),
    StatusCause(StatusTrouble.BROKER_NOT_HERE, (9795,)),
    StatusCause(StatusTrouble.FORWARDING_OFF, (9792,)),
    StatusCause(StatusTrouble.SENDER_BROKER_OFF, (9791,)),
    StatusCause(StatusTrouble.MSDB_BROKER_OFF, (9789,)),
    StatusCause(StatusTrouble.PASSING, (9771, 9780, 9781, 9787, 9788, 9790, 9794, 9797, 28075)),
    StatusCause(StatusTrouble.NOT_CLASSIFIED, (9798,)),
    StatusCause(StatusTrouble.NOT_TAKEN_THERE, (9753, 11210, 28017)),
    StatusCause(StatusTrouble.NO_ENDPOINT, (9666, 9748)),
    StatusCause(StatusTrouble.BAD_ADDRESS, (9785,)),
    StatusCause(StatusTrouble.NAME_NOT_RESOLVED, (9783,)),
    StatusCause(StatusTrouble.NAME_NOT_RESOLVED, _CONNECTING, inner=_NAME),
    StatusCause(StatusTrouble.NOTHING_LISTENS, _CONNECTING, inner=_REFUSED),
    StatusCause(StatusTrouble.NOTHING_LISTENS, (28080,)),
    StatusCause(StatusTrouble.CLOSED_BY_OTHER_SIDE, _CONNECTING, inner=_CLOSED),
    StatusCause(StatusTrouble.CLOSED_BY_OTHER_SIDE, (9642, 9757, 9758, 28028)),
    StatusCause(StatusTrouble.CONNECTION_FORBIDDEN, _CONNECTING, inner=(*_FORBIDDEN, _FORBIDDEN_ON_LINUX)),
    StatusCause(StatusTrouble.NETWORK_FAILS, (*_CONNECTING, 28071)),
    StatusCause(StatusTrouble.CONNECTION_REPLACED, (28032, 28033, 28098)),
    StatusCause(StatusTrouble.OWNER_NOT_VALID, (*_WRAPPING, *_OF_OWNER), inner=_OF_OWNER),
    StatusCause(StatusTrouble.MASTER_KEY_CLOSED, (*_WRAPPING, *_OF_MASTER_KEY), inner=_OF_MASTER_KEY),
    StatusCause(StatusTrouble.TARGET_FULL, _WRAPPING, inner=(1101, 1105, 5144, 5149, 9002)),
    StatusCause(StatusTrouble.TARGET_DAMAGED, _WRAPPING, inner=(605, 823, 824, 825, 5242, 5243)),
    StatusCause(StatusTrouble.NO_MEMORY, _WRAPPING, inner=(701, 802, 1204, 8645, 8651)),
    StatusCause(StatusTrouble.TARGET_DATABASE_CLOSED, _WRAPPING, inner=_OF_CLOSED),
    StatusCause(StatusTrouble.QUEUE_BUSY, _WRAPPING, inner=(845, 1205, 1222, 3960)),
    StatusCause(StatusTrouble.NO_PERMISSION, _WRAPPING, inner=(229,)),
    StatusCause(StatusTrouble.OWNER_NOT_VALID, _WRAPPING, inner=(15151,), marks=_DBO),
    StatusCause(StatusTrouble.NAME_NOT_FOUND, _WRAPPING, inner=(15151,)),
    StatusCause(StatusTrouble.DATABASE_NOT_OPENED, _WRAPPING, inner=(911, 4060)),
    StatusCause(StatusTrouble.ENDED_BY_TRIGGER, _WRAPPING, inner=(3609, 3616)),
    StatusCause(StatusTrouble.TARGET_EXCEPTION, (28005,)),
    StatusCause(StatusTrouble.QUEUE_OFF, (9617, 11219)),
    StatusCause(StatusTrouble.QUEUE_BUSY, (9749,)),
    StatusCause(StatusTrouble.NO_SESSION_KEY, (9652, 28050, 28051, 28053, 28054, 28057)),
    StatusCause(StatusTrouble.NO_PERMISSION, (8494, 11215, 28056)),
    StatusCause(StatusTrouble.NO_ACCESS, (11211,)),
    StatusCause(StatusTrouble.USER_NOT_VALID, (28020,)),
    StatusCause(StatusTrouble.NOT_TRUSTED, (15562,)),
    StatusCause(StatusTrouble.NO_CONNECT, (9752, 28034, 28048)),
    StatusCause(StatusTrouble.CERTIFICATE_NOT_YET_VALID, (28022, 28024)),
    StatusCause(StatusTrouble.CERTIFICATE_NOT_YET_VALID, (28035, 28036), marks=("not yet valid",)),
    StatusCause(StatusTrouble.CERTIFICATE_EXPIRED, (9763, 28023, 28025)),
    StatusCause(StatusTrouble.CERTIFICATE_EXPIRED, (28035, 28036), marks=("expired", "not valid at")),
    StatusCause(
        StatusTrouble.NO_DIALOG_CERTIFICATE, (9728, 9730, 9731, 9733, 9734, 9735, 9737, 9767, 9768, 11229, 11230)
    ),
    StatusCause(
        StatusTrouble.NO_ENDPOINT_CERTIFICATE, (9762, 9764, 9765, 9766, 28035, 28036, 28037, 28045, 28055)
    ),
    StatusCause(StatusTrouble.NO_BINDING, (9727,)),
    StatusCause(
        StatusTrouble.HANDSHAKE_FAILED,
        (9649, 9751, 28026, 28027, 28029, 28030, 28031, 28038, 28039, 28047, 28059, 28070, 28079, 28081, 28082),
    ),
    StatusCause(StatusTrouble.TARGET_DATABASE_CLOSED, (28012, 28016), marks=_CLOSED_WORDS),
    StatusCause(StatusTrouble.TARGET_BROKER_OFF, (28012, 28013, 28016)),
    StatusCause(StatusTrouble.TARGET_DATABASE_CLOSED, (28014, 28015, 28018, 28021)),
    StatusCause(
        StatusTrouble.CONTRACT_NOT_TAKEN,
        (8408, 8409, 8425, 8428, 8437, 8457, 8487, 8498, 11214, 11225, 11226, 11227, 11228),
    ),
    StatusCause(StatusTrouble.LICENSE, (11282,)),
    StatusCause(
        StatusTrouble.MESSAGE_REFUSED, (8430, 9616, 9704, *range(11220, 11224), 11231, 11232, 28004, 28010, 28011)
    ),
    StatusCause(StatusTrouble.SENT_AGAIN, SENT_AGAIN),
    StatusCause(StatusTrouble.TAKEN_BY_OTHER, (8495, 11224)),
    StatusCause(StatusTrouble.DOUBLED_ID, (9723, 9772, 9773)),
    StatusCause(StatusTrouble.ID_DIFFERS, (9776, 9777)),
    StatusCause(StatusTrouble.RESTORED, (9719, 9720)),
    StatusCause(StatusTrouble.SERVICE_GONE, (8470, 8490)),
    StatusCause(StatusTrouble.CONVERSATION_ENDED, (8462, 8469, 9779, 9784, 11209, 11212, 11213)),
    StatusCause(StatusTrouble.LIFETIME_OVER, (8489,)),
    StatusCause(StatusTrouble.KEY_LOST, (11233, 28000, 28052, 28058, 28069, 28074)),
    StatusCause(StatusTrouble.TRANSMITTER_FAILED, TRANSMITTER),
    StatusCause(StatusTrouble.SYSTEM_FAILED, OF_WINDOWS),
    StatusCause(StatusTrouble.MESSAGE_CORRUPTED, CORRUPTED),
    StatusCause(StatusTrouble.STATEMENT_REFUSED, REFUSALS),
)
"""The rows by precedence. Every known number has a row that matches any text."""

# `10061(No connection could be made …)`, and `Error: 15517, State: 1.`; in any language.
_OF_THE_SYSTEM = re.compile(r"(?<![\w.])\d{1,5}(?=\()", re.ASCII)
_STANDING_ALONE = re.compile(r"(?<![\w.\-])\d{3,5}(?![\w\-(]|\.\d)", re.ASCII)


def find_trouble(number: int | None, text: str | None) -> StatusTrouble | None:
    """Return the trouble of a status, or None if the status is blank.

    ``number`` is SQL Server's. If it is None, a connection error's number of the operating system counts. A text
    without any known number is UNREAD.

    >>> find_trouble(9754, "Connection attempt failed with error: '10061(No connection could be made.)'.")
    <Trouble.NOTHING_LISTENS: 'NOTHING_LISTENS'>
    """
    if not text:
        return None
    if number is None:
        # A connection's error has the number of the operating system before "(", in any language.
        if find_system_numbers(text).isdisjoint(_OF_CONNECTIONS):
            return StatusTrouble.UNREAD
        number = _CONNECTING[0]
    # The first number of a text that may be an exception's.
    wrapped = [one for one in map(int, _STANDING_ALONE.findall(text)) if one != number][:1]
    named = {number, *find_system_numbers(text), *wrapped}
    lowered = text.lower()
    numbers = (*(wrapped if number in _WRAPPING else ()), number)
    rows = (row.trouble for one in numbers for row in CAUSES if row.is_of(one, named, lowered))
    return next(rows, StatusTrouble.OTHER_NUMBER)


def find_system_numbers(text: str) -> set[int]:
    """Return the numbers of the operating system that a text may name."""
    return {int(number) for number in _OF_THE_SYSTEM.findall(text)}


def find_numbers(text: str) -> set[int]:
    """Return the numbers of exceptions and of the operating system that a text may name."""
    return find_system_numbers(text) | {int(number) for number in _STANDING_ALONE.findall(text)}
