"""Compare SQL Server's error number for a message with the reason of the rule book (section 7).

Numbers are those of sys.messages. `TOPICS` has one topic for each number. `TABLE` has the agreement of numbers
with reasons, and the first line with a pair decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from routing.terms import ERROR_NUMBERS, Reason, Word


class NumberAgreement(Word):
    """The agreement of SQL Server's number with the rule book's reason."""

    AGREES = "AGREES"
    COMPATIBLE = "COMPATIBLE"
    CONTRADICTS = "CONTRADICTS"
    SAYS_NOTHING = "SAYS_NOTHING"


class NumberTopic(Word):
    """The topic of a number."""

    ROUTING = "ROUTING"
    TRANSPORT = "TRANSPORT"
    SECURITY = "SECURITY"
    TARGET = "TARGET"
    IDENTITY = "IDENTITY"
    CONVERSATION = "CONVERSATION"


@dataclass(frozen=True)
class ReasonComparison:
    """The agreement of a number with a reason. ``why`` is an explanation in one sentence, or None."""

    agreement: NumberAgreement
    why: str | None


# SQL Server refuses CREATE ROUTE with these numbers. No message has them.
REFUSALS = (9659, 9660, 9661, 9662, 9743, 9744, 9745, 9746, 9747)
_NO_ROUTE = (9750, 9793)
BY_REQUEST = (9761, 9770)
_UNDER_CHANGE = (9787, 9794, 9797)
_NO_MSDB = (9788, 9790)
_NO_MANAGER = (9771, 9780, 9781)
_BROKER_OFF = (28012, 28013)
_CANNOT_TAKE = (28014, 28015, 28016, 28017, 28018, 28021)
_AT_ITS_QUEUE = (
    *(8408, 8409, 8425, 8428, 8430, 8437, 8457, 8487, 8498, 9616, 9617, 9704, 9749, 11214, *range(11216, 11229)),
    *(11282, 28004, 28005, 28010, 28011),
)
CORRUPTED = (28001, 28007, *range(28040, 28045), 28049, *range(28061, 28069))
TRANSMITTER = (9736, 28072, 28073, 28090)
OF_WINDOWS = (28002, 28003, 28019)
SENT_AGAIN = (11216, 11217, 11218)
"""Another task processes the message, or it is out of sequence or a duplicate: it arrived, or is sent again."""
NO_PERMISSION = (8494, 11211, 11215, 28020)
NO_SUCH_SERVICE = (8490, 11210)
_HANDSHAKE = (
    *(9649, 9751, 9752, 9762, 9763, 9764, 9765, 9766, 28022, 28023, 28026, 28027, 28028, 28029, 28030, 28031),
    *(28034, 28035, 28036, 28037, 28038, 28039, 28045, 28047, 28048, 28055, 28059, 28070, 28079, 28080, 28081),
    28082,
)
_DIALOG_SECURITY = (
    *(9652, 9727, 9728, 9730, 9731, 9733, 9734, 9735, 9737, 9767, 9768),
    *(11229, 11230, 11231, 11232, 11233, 28000, 28024, 28025, 28050, 28051, 28052, 28053, 28054, 28056, 28057),
    *(28058, 28069, 28074),
)
_MOVED = (9719, 9720)
_DOUBLED = (9723, 9772, 9773, 9776, 9777)

TOPICS: dict[NumberTopic, tuple[int, ...]] = {
    NumberTopic.ROUTING: (
        *(*_NO_ROUTE, *BY_REQUEST, 9789, 9791, 9792, 9795, 9796, 9798, 28075),
        *(*_UNDER_CHANGE, *_NO_MSDB, *_NO_MANAGER, *REFUSALS),
    ),
    NumberTopic.TRANSPORT: (
        *(9642, 9666, 9748, 9753, 9754, 9755, 9756, 9757, 9758, 9759, 9783, 9785),
        *(28032, 28033, 28071, 28098, *CORRUPTED, *TRANSMITTER, *OF_WINDOWS),
    ),
    NumberTopic.SECURITY: (*_HANDSHAKE, *_DIALOG_SECURITY, *NO_PERMISSION),
    NumberTopic.TARGET: (*_BROKER_OFF, *_CANNOT_TAKE, *_AT_ITS_QUEUE),
    NumberTopic.IDENTITY: (*_MOVED, *_DOUBLED),
    NumberTopic.CONVERSATION: (*NO_SUCH_SERVICE, 8462, 8469, 8470, 8489, 8495, 9779, 9784, 11209, 11212, 11213),
}
_TOPIC = {number: topic for topic, numbers in TOPICS.items() for number in numbers}

NUMBERS = frozenset(_TOPIC)
"""All known numbers."""

SENDING = (Reason.NETWORK_ADDRESS, Reason.MIRROR_ADDRESS, Reason.TRANSPORT_ADDRESS)
_ARRIVED = (Reason.FORWARDING_DISABLED, Reason.HOP_LIMIT, Reason.ROUTING_LOOP)
_EVERY = tuple(Reason)
_SCOPE_OFF = (Reason.SCOPE_BROKER_DISABLED,)


@dataclass(frozen=True)
class AgreementLine:
    """A line of the table: numbers or a topic, with reasons. ``in_msdb`` is None if it does not matter."""

    numbers: tuple[int, ...] | NumberTopic
    reasons: tuple[Reason, ...]
    agreement: NumberAgreement
    why: str | None = None
    in_msdb: bool | None = None

    def has(self, reason: Reason, number: int, in_msdb: bool) -> bool:
        """Return True if this line has the pair."""
        of_number = (
            _TOPIC[number] == self.numbers if isinstance(self.numbers, NumberTopic) else number in self.numbers
        )
        return of_number and reason in self.reasons and self.in_msdb in (None, in_msdb)


_AGREES, _COMPATIBLE = NumberAgreement.AGREES, NumberAgreement.COMPATIBLE
_CONTRADICTS, _SAYS_NOTHING = NumberAgreement.CONTRADICTS, NumberAgreement.SAYS_NOTHING

TABLE = (
    AgreementLine(REFUSALS, _EVERY, _SAYS_NOTHING, "A statement is refused with it, and no message carries it."),
    AgreementLine(
        NO_SUCH_SERVICE,
        (Reason.SERVICE_NOT_FOUND,),
        _COMPATIBLE,
        "The database that the dialog is bound to lacks the service; SQL Server ends the dialog with this error.",
    ),
    AgreementLine((8489,), (Reason.DIALOG_EXPIRED,), _AGREES),
    AgreementLine(
        NumberTopic.CONVERSATION, _EVERY, _SAYS_NOTHING, "The conversation is over, wherever the other side is."
    ),
    # Numbers with the same meaning as a reason.
    AgreementLine(_NO_ROUTE, (Reason.NO_ROUTE,), _AGREES),
    AgreementLine((9770,), (Reason.ROUTE_REQUESTED,), _AGREES),
    AgreementLine((9796,), (Reason.SERVICE_NOT_FOUND,), _AGREES),
    AgreementLine((9795,), (Reason.BROKER_INSTANCE_NOT_FOUND,), _AGREES),
    AgreementLine(
        (9792,), (Reason.FORWARDING_DISABLED,), _AGREES, "SQL Server's event calls the message delayed."
    ),
    AgreementLine((9791,), _SCOPE_OFF, _AGREES, "The broker of the sending database is off.", in_msdb=False),
    AgreementLine(
        (9791,), _SCOPE_OFF, _COMPATIBLE, "The broker of msdb is off, and msdb may be the sender.", in_msdb=True
    ),
    AgreementLine((9789,), _SCOPE_OFF, _AGREES, "The broker of msdb is off.", in_msdb=True),
    AgreementLine(_BROKER_OFF, (Reason.BROKER_DISABLED,), _AGREES),
    # Temporary errors, and errors that prevented a decision of SQL Server.
    AgreementLine(_UNDER_CHANGE, _EVERY, _COMPATIBLE, "SQL Server's routing was being changed and decides again."),
    AgreementLine(_NO_MSDB, _EVERY, _COMPATIBLE, "SQL Server could not read the routes of msdb then."),
    AgreementLine(_NO_MANAGER, _EVERY, _COMPATIBLE, "SQL Server's broker manager was not running then."),
    AgreementLine((28075,), _EVERY, _COMPATIBLE, "The sending database was in single-user mode and sent nothing."),
    AgreementLine(TRANSMITTER, _EVERY, _COMPATIBLE, "It is about the transmission queue, not about routes."),
    AgreementLine(OF_WINDOWS, _EVERY, _COMPATIBLE, "It is about the operating system, not about routes."),
    AgreementLine((9798,), _EVERY, _COMPATIBLE, "SQL Server does not say which of its reasons it was."),
    AgreementLine(
        tuple(_TOPIC), (Reason.DIALOG_EXPIRED,), _COMPATIBLE, "It is about an attempt before the dialog expired."
    ),
    # Numbers that may have the same cause as a reason.
    AgreementLine(
        (9761,), (Reason.ROUTE_REQUESTED,), _COMPATIBLE, "A request was made, and its conversation failed."
    ),
    AgreementLine(
        BY_REQUEST,
        (Reason.NO_ROUTE,),
        _COMPATIBLE,
        "While a request for the service is pending, the search continues and finds nothing.",
    ),
    AgreementLine(
        BY_REQUEST,
        SENDING,
        _COMPATIBLE,
        "The configuration service is asked for remote service bindings too, not for routes alone.",
    ),
    AgreementLine(
        (9770,),
        (Reason.SERVICE_NOT_FOUND, Reason.BROKER_INSTANCE_NOT_FOUND),
        _COMPATIBLE,
        "Another conversation asked for the route first, and here the search continues to a LOCAL route.",
    ),
    AgreementLine(
        (9796,),
        (Reason.ROUTE_REQUESTED,),
        _COMPATIBLE,
        "Another conversation asked for the route first, and SQL Server continued to a LOCAL route.",
    ),
    AgreementLine(
        _NO_ROUTE,
        (Reason.SERVICE_NOT_FOUND, Reason.BROKER_INSTANCE_NOT_FOUND),
        _COMPATIBLE,
        "SQL Server reports the same if a LOCAL route matches and leads to no such service here.",
    ),
    AgreementLine(
        _NO_ROUTE,
        (Reason.TRANSPORT_ADDRESS_INVALID,),
        _COMPATIBLE,
        "A route to TRANSPORT leads nowhere when the service name has no address.",
    ),
    AgreementLine(
        (9785,),
        (Reason.TRANSPORT_ADDRESS_INVALID,),
        _COMPATIBLE,
        "SQL Server read an address from the service name, which has none.",
    ),
    AgreementLine(
        (9796,),
        (Reason.BROKER_INSTANCE_NOT_FOUND,),
        _COMPATIBLE,
        "Both say that a LOCAL route leads nowhere here; the service may be missing, or the broker instance.",
    ),
    AgreementLine(
        _CANNOT_TAKE, (Reason.BROKER_DISABLED,), _COMPATIBLE, "The target's broker cannot take it, for any cause."
    ),
    AgreementLine(
        NumberTopic.IDENTITY,
        (Reason.BROKER_INSTANCE_NOT_FOUND,),
        _COMPATIBLE,
        "The message may be bound to a broker instance from before a database was attached or restored.",
    ),
    AgreementLine(
        _DOUBLED,
        (Reason.BROKER_DISABLED, *_SCOPE_OFF),
        _COMPATIBLE,
        "SQL Server keeps a broker off if its id is a duplicate or does not fit.",
    ),
    # The other numbers, by topic.
    AgreementLine(NumberTopic.ROUTING, _EVERY, _CONTRADICTS, "SQL Server itself routed it otherwise."),
    AgreementLine(
        (28071,),
        (*SENDING, *_ARRIVED),
        _COMPATIBLE,
        "It should have been forwarded, and the number does not say why it was not.",
    ),
    AgreementLine(NumberTopic.TRANSPORT, SENDING, _COMPATIBLE, "Routed as predicted; the transport failed."),
    AgreementLine(
        NumberTopic.TRANSPORT, _ARRIVED, _COMPATIBLE, "It had to arrive over the network first, and that failed."
    ),
    AgreementLine(
        NumberTopic.TRANSPORT,
        _EVERY,
        _COMPATIBLE,
        "It had to come back over the network to be routed in msdb, and that failed.",
        in_msdb=True,
    ),
    AgreementLine(NumberTopic.TRANSPORT, _EVERY, _CONTRADICTS, "SQL Server tried to send it over the network."),
    AgreementLine(
        NumberTopic.TARGET,
        (Reason.LOCAL_SERVICE, *SENDING),
        _COMPATIBLE,
        "Routed as predicted; the target could not take it.",
    ),
    AgreementLine(NumberTopic.TARGET, _EVERY, _CONTRADICTS, "SQL Server found a target for it."),
    AgreementLine(
        _HANDSHAKE, SENDING, _COMPATIBLE, "Routed as predicted; the two instances could not agree on a connection."
    ),
    AgreementLine(
        _DIALOG_SECURITY, SENDING, _COMPATIBLE, "Routed as predicted; the security of its dialog holds it back."
    ),
    AgreementLine(
        NO_PERMISSION,
        (Reason.LOCAL_SERVICE, *SENDING),
        _COMPATIBLE,
        "Routed as predicted; the sender may not send to the service.",
    ),
    AgreementLine(
        NumberTopic.SECURITY, _EVERY, _SAYS_NOTHING, "It is about keys, certificates and logins, not about routes."
    ),
    AgreementLine(NumberTopic.IDENTITY, _EVERY, _SAYS_NOTHING, "It is about a broker's id, not about routes."),
)
"""The first matching line decides. Every known number has a line for every reason."""

NOT_SAID = ReasonComparison(_SAYS_NOTHING, "Not tried yet, or sent and not acknowledged.")
NOT_KNOWN = ReasonComparison(_SAYS_NOTHING, "A number that this project does not know.")


def topic_of(number: int | None) -> NumberTopic | None:
    """Return the topic of a number, or None if it is missing or unknown."""
    return None if number is None else _TOPIC.get(number)


def numbers_of(reason: Reason) -> tuple[int, ...]:
    """Return the numbers that agree with a reason, the one of SQL Server's event first."""
    agreeing = [
        number
        for line in TABLE
        if line.agreement is NumberAgreement.AGREES and reason in line.reasons and isinstance(line.numbers, tuple)
        for number in line.numbers
    ]
    return tuple(sorted(agreeing, key=lambda number: number != ERROR_NUMBERS.get(reason)))


def compare(reason: Reason, number: int | None, *, in_msdb: bool = False) -> ReasonComparison:
    """Compare SQL Server's number with a reason. ``in_msdb``: the last search was in msdb."""
    if number is None:
        return NOT_SAID
    if number not in _TOPIC:
        return NOT_KNOWN
    line = next(line for line in TABLE if line.has(reason, number, in_msdb))
    return ReasonComparison(line.agreement, line.why)
