"""CREATE and ALTER ENDPOINT: lexemes → statements."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from routing.importing.tsql.cursor import LexemeCursor
from routing.importing.tsql.definitions import StatementPlace
from routing.importing.tsql.refusal import RefusalError, UnparsedError
from routing.importing.tsql.script_statements import AlterEndpoint, CreateEndpoint, ScriptStatement, quote
from routing.importing.tsql.tokens import LexemeKind
from routing.importing.tsql.vocabulary import STARTERS, find_misspelt

_BROKER = "SERVICE_BROKER"
_PAYLOADS = (_BROKER, "DATABASE_MIRRORING", "DATA_MIRRORING", "TSQL", "SOAP")
_JOINED = ("AUTHORIZATION", "STATE", "AFFINITY")
"""Clauses that a comma may join to the one before."""

_AFFINITIES = ("NONE", "ADMIN")
_AFFINITY_MASK = re.compile(r"[0-9]{1,20}|0x[0-9A-Fa-f]{1,16}")
_LEAST_PORT, _LARGEST_PORT = 1024, 32767
_STATES = ("STARTED", "STOPPED", "DISABLED")
_SWITCH = {"ENABLED": True, "DISABLED": False}
_TCP_OPTIONS = ("LISTENER_PORT", "LISTENER_IP")
_BROKER_OPTIONS = ("AUTHENTICATION", "ENCRYPTION", "MESSAGE_FORWARDING", "MESSAGE_FORWARD_SIZE")


@dataclass
class _Options:
    payload: str | None = None
    state: str | None = None
    listener_port: int | None = None
    is_message_forwarding_enabled: bool | None = None
    option_words: set[str] = field(default_factory=set)

    def give(self, word: str) -> None:
        """Note an option, which may be given once."""
        if word in self.option_words:
            raise UnparsedError(f"the option {word} is given twice", None)
        self.option_words.add(word)


def create_endpoint(cursor: LexemeCursor, place: StatementPlace) -> list[ScriptStatement]:
    """Read CREATE ENDPOINT; the defaults are MESSAGE_FORWARDING DISABLED and STATE STOPPED."""
    cursor.expect_words("CREATE", "ENDPOINT")
    name = cursor.name("endpoint name")
    options = _read_options(cursor)
    if options.payload is None:
        raise cursor.unexpected("FOR SERVICE_BROKER or another payload")
    is_broker = options.payload == _BROKER
    if is_broker and options.listener_port is None:
        raise RefusalError("LISTENER_PORT is missing", by_server=True)
    return [
        CreateEndpoint(
            file=place.file,
            line=place.line,
            database=place.database,
            name=name,
            for_service_broker=is_broker,
            state=options.state or "STOPPED",
            listener_port=options.listener_port,
            is_message_forwarding_enabled=bool(options.is_message_forwarding_enabled),
        )
    ]


def alter_endpoint(cursor: LexemeCursor, place: StatementPlace) -> list[ScriptStatement]:
    """Read ALTER ENDPOINT; only the given options change."""
    cursor.expect_words("ALTER", "ENDPOINT")
    name = cursor.name("endpoint name")
    if cursor.at_words("SET"):
        raise cursor.unexpected("STATE, AS or FOR")
    options = _read_options(cursor)
    is_broker = None if options.payload is None else options.payload == _BROKER
    return [
        AlterEndpoint(
            file=place.file,
            line=place.line,
            database=place.database,
            name=name,
            for_service_broker=is_broker,
            state=options.state,
            listener_port=options.listener_port,
            is_message_forwarding_enabled=options.is_message_forwarding_enabled,
        )
    ]


def _read_options(cursor: LexemeCursor) -> _Options:
    options = _Options()
    start = cursor.position
    while not (cursor.at_end or cursor.at_sign(";") or cursor.peek().upper in STARTERS or cursor.at_label):
        if cursor.position > start and cursor.peek(1).upper in _JOINED:
            cursor.take_sign(",")
        if cursor.take_words("AUTHORIZATION"):
            cursor.name("owner name")
        elif cursor.take_words("STATE"):
            options.give("STATE")
            cursor.expect_sign("=")
            options.state = _one_of(cursor, _STATES)
        elif cursor.take_words("AFFINITY"):
            options.give("AFFINITY")
            cursor.expect_sign("=")
            _pass_affinity(cursor)
        elif cursor.take_words("AS"):
            is_tcp = cursor.next().upper == "TCP"
            _read_group(cursor, options, _TCP_OPTIONS if is_tcp else ())
        elif cursor.take_words("FOR"):
            options.payload = _read_payload(cursor)
            _read_group(cursor, options, _BROKER_OPTIONS if options.payload == _BROKER else ())
        else:
            raise cursor.unexpected("STATE, AS or FOR")
    _note_port(cursor, options)
    return options


def _pass_affinity(cursor: LexemeCursor) -> None:
    """Move past the processors of an endpoint: NONE, ADMIN, or a mask of 64 bits."""
    value = cursor.peek()
    if value.upper not in _AFFINITIES and not (
        value.kind is LexemeKind.NUMBER and _AFFINITY_MASK.fullmatch(value.text) and int(value.text, 0) < 2**64
    ):
        raise cursor.unexpected("NONE, ADMIN or a whole number of 64 bits")
    cursor.next()


def _note_port(cursor: LexemeCursor, options: _Options) -> None:
    """Note a port that SQL Server takes, though its manual's text leaves it out."""
    port = options.listener_port
    if port is None or _LEAST_PORT <= port <= _LARGEST_PORT or options.payload not in (None, _BROKER):
        return
    bounds = f"outside {_LEAST_PORT} to {_LARGEST_PORT}"
    cursor.notes.append(f"LISTENER_PORT {port} is {bounds}, which the manual asks for and its own example exceeds")


def _read_payload(cursor: LexemeCursor) -> str:
    word = cursor.peek().upper
    if not word or find_misspelt(word, _PAYLOADS) is not None:
        raise cursor.unexpected("SERVICE_BROKER, DATABASE_MIRRORING or TSQL")
    cursor.next()
    return word


def _read_group(cursor: LexemeCursor, options: _Options, known_options: tuple[str, ...]) -> None:
    """Read the options in parentheses, commas between them being optional; pass over those of other protocols."""
    if not cursor.at_group:
        raise cursor.unexpected("a parenthesis and its end")
    if not known_options:
        cursor.skip_group()
        return
    end = cursor.group_end - 1
    cursor.next()
    while cursor.position < end:
        word = cursor.peek().upper
        if cursor.peek(1).text != "=":
            if not cursor.skip_group():
                cursor.next()
            continue
        if word not in known_options:
            raise UnparsedError(f"it has no option {quote(cursor.peek().text)}")
        options.give(word)
        cursor.next()
        cursor.next()
        if word == "LISTENER_PORT":
            options.listener_port = _read_port(cursor)
        elif word == "MESSAGE_FORWARDING":
            options.is_message_forwarding_enabled = _SWITCH[_one_of(cursor, tuple(_SWITCH))]
    cursor.position = end + 1


def _read_port(cursor: LexemeCursor) -> int:
    port = cursor.integer("LISTENER_PORT")
    if not 1 <= port <= 65535:
        raise RefusalError(f"LISTENER_PORT {port} is not a port, which is 1 to 65535", by_server=True)
    return port


def _one_of(cursor: LexemeCursor, words: tuple[str, ...]) -> str:
    if cursor.peek().upper not in words:
        raise cursor.unexpected(f"{', '.join(words[:-1])} or {words[-1]}")
    return cursor.next().upper
