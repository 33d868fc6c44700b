"""A small server with enough TDS for Microsoft's driver: it answers one script with results.

It refuses encryption unless it has a certificate. The driver's own requests get empty answers.
"""

from __future__ import annotations

import select
import socket
import ssl
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

_BATCH, _ATTENTION, _LOGIN, _PRELOGIN, _ANSWER = 0x01, 0x06, 0x10, 0x12, 0x04
_MORE, _ERROR, _COUNT, _STOPPED = 0x01, 0x02, 0x10, 0x20
_NOT_SUPPORTED, _ON = 2, 1
_QUICK = getattr(socket, "TCP_QUICKACK", socket.TCP_NODELAY)
_COLLATION = bytes.fromhex("0904d00034")


@dataclass(frozen=True)
class Fault:
    """An error of the server, or with a ``level`` of 10 and less a message."""

    number: int
    text: str
    level: int = 16


@dataclass(frozen=True)
class Rows:
    """A result set: its columns with their types, and its rows. ``fault`` comes after the last row."""

    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Any]]
    fault: Fault | None = None


@dataclass(frozen=True)
class Drop:
    """The connection ends here, without some bytes of the previous answer."""

    missing: int = 0


@dataclass(frozen=True)
class Pause:
    """The answer continues after some seconds, or ends if the driver gives up before."""

    seconds: float


Answer = Rows | Fault | Drop | Pause


@dataclass(frozen=True)
class Login:
    """The login of a client."""

    user: str
    password: str
    server: str
    database: str
    program: str
    is_read_only: bool


@dataclass
class TdsServer:
    """Listens on a free port within a ``with`` block. ``answers`` follow the batch ``script``.

    ``refusal`` refuses every login. ``certificate`` has the files of a certificate and its key.
    """

    script: str
    answers: Sequence[Answer] = ()
    refusal: Fault | None = None
    certificate: tuple[str, str] | None = None
    logins: list[Login] = field(default_factory=list)
    batches: list[str] = field(default_factory=list)
    sent_in_clear: list[bytes] = field(default_factory=list)

    def __enter__(self) -> TdsServer:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._listen, daemon=True)]
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        # A thread that waits for a connection does not see that its socket is closed.
        socket.create_connection(("127.0.0.1", self.port)).close()
        for thread in self._threads:
            thread.join(5)
        self._listener.close()

    @property
    def name(self) -> str:
        """Return the server name for clients."""
        return f"127.0.0.1,{self.port}"

    def _listen(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._is_over.is_set():
                connection.close()
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                _Conversation(self, connection).run()
            except (OSError, EOFError, ssl.SSLError):
                # The client has gone, or wants no connection like this.
                return


class _Conversation:
    """One connection from the first packet to the last."""

    def __init__(self, server: TdsServer, connection: socket.socket) -> None:
        self._server, self._connection = server, connection
        self._wire: socket.socket | _TlsWire = connection

    def run(self) -> None:
        kind, first = self._receive()
        assert kind == _PRELOGIN
        self._server.sent_in_clear.append(first)
        is_secure = self._server.certificate is not None
        self._send(_prelogin(_ON if is_secure else _NOT_SUPPORTED), _ANSWER)
        if self._server.certificate is not None:
            self._wire = _TlsWire(self._connection, self._server.certificate)
        kind, body = self._receive()
        assert kind == _LOGIN, kind
        self._server.logins.append(_login(body))
        if self._server.refusal is not None:
            self._send(_fault(self._server.refusal) + _done(_ERROR))
            return
        self._send(_logged_in())
        while True:
            kind, body = self._receive()
            if kind == _ATTENTION:
                self._send(_done(_STOPPED))
                continue
            assert kind == _BATCH, kind
            (headers,) = struct.unpack_from("<I", body)
            text = body[headers:].decode("utf-16-le")
            self._server.batches.append(text)
            if text != self._server.script:
                self._send(_done(0))
            elif not self._answer():
                return

    def _answer(self) -> bool:
        """Send the answers. Return False if the connection ends with them."""
        pending = b""
        for answer in self._server.answers:
            if isinstance(answer, Rows):
                pending += _result_set(answer)
                pending += b"" if answer.fault is None else _fault(answer.fault)
                pending += _done(_MORE | (_COUNT if answer.fault is None else _ERROR), len(answer.rows))
            elif isinstance(answer, Fault):
                pending += _fault(answer)
                if answer.level > 10:
                    pending += _done(_MORE | _ERROR)
            elif isinstance(answer, Pause):
                self._send(pending, is_last=False)
                pending = b""
                if self._is_interrupted(answer.seconds):
                    self._receive()
                    self._send(_done(_STOPPED))
                    return True
            else:
                # Whatever was to come, the packet is not complete.
                self._send(pending[: len(pending) - answer.missing], is_last=False)
                return False
        self._send(pending + _done(0))
        return True

    def _is_interrupted(self, seconds: float) -> bool:
        """Wait for some seconds. Return True once the driver sends anything, which means cancel."""
        return bool(select.select([self._connection], [], [], seconds)[0])

    def _receive(self) -> tuple[int, bytes]:
        body = b""
        while True:
            kind, status, size = struct.unpack(">BBH4x", self._exactly(8))
            body += self._exactly(size - 8)
            if status & 1:
                return kind, body

    def _exactly(self, count: int) -> bytes:
        got = b""
        while len(got) < count:
            # The driver waits with each packet until the one before has arrived.
            self._connection.setsockopt(socket.IPPROTO_TCP, _QUICK, 1)
            part = self._wire.recv(count - len(got))
            if not part:
                raise EOFError
            got += part
        return got

    def _send(self, body: bytes, kind: int = _ANSWER, *, is_last: bool = True) -> None:
        step = 4088
        parts = [body[at : at + step] for at in range(0, len(body), step)]
        for number, part in enumerate(parts, start=1):
            status = 1 if is_last and number == len(parts) else 0
            head = struct.pack(">BBHHBB", kind, status, len(part) + 8, 51, number & 255, 0)
            self._wire.sendall(head + part)


class _TlsWire:
    """A connection under TLS, with its handshake in packets of PRELOGIN as in TDS 7."""

    def __init__(self, connection: socket.socket, certificate: tuple[str, str]) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(*certificate)
        self._connection = connection
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._flush(is_wrapped=True)
                head = self._raw(8)
                self._incoming.write(self._raw(struct.unpack(">BBH4x", head)[2] - 8))
        self._flush(is_wrapped=True)

    def _raw(self, count: int) -> bytes:
        got = b""
        while len(got) < count:
            part = self._connection.recv(count - len(got))
            if not part:
                raise EOFError
            got += part
        return got

    def _flush(self, *, is_wrapped: bool = False) -> None:
        body = self._outgoing.read()
        if body:
            head = struct.pack(">BBHHBB", _PRELOGIN, 1, len(body) + 8, 0, 0, 0) if is_wrapped else b""
            self._connection.sendall(head + body)

    def recv(self, count: int) -> bytes:
        while True:
            try:
                return self._tls.read(count)
            except ssl.SSLWantReadError:
                part = self._connection.recv(65536)
                if not part:
                    return b""
                self._incoming.write(part)
            except ssl.SSLZeroReturnError:
                return b""

    def sendall(self, body: bytes) -> None:
        self._tls.write(body)
        self._flush()


# The tokens that the server writes, and the login that it reads.


def _prelogin(encryption: int) -> bytes:
    values = {0: bytes((16, 0, 4, 135, 0, 0)), 1: bytes((encryption,)), 2: b"\0", 3: b"", 4: b"\0"}
    offset, heads = 5 * len(values) + 1, b""
    for token, value in values.items():
        heads += struct.pack(">BHH", token, offset, len(value))
        offset += len(value)
    return heads + b"\xff" + b"".join(values.values())


def _login(body: bytes) -> Login:
    def text(number: int) -> bytes:
        at, length = struct.unpack_from("<HH", body, 36 + 4 * number)
        return body[at : at + 2 * length]

    swapped = bytes(((byte ^ 0xA5) >> 4 | (byte ^ 0xA5) << 4) & 0xFF for byte in text(2))
    # Between the language and the database there is the client's own id in no table of offsets.
    names = [text(number).decode("utf-16-le") for number in (1, 3, 4, 8)]
    user, program, server, database = names
    return Login(user, swapped.decode("utf-16-le"), server, database, program, bool(body[26] & 0x20))


def _name(text: str) -> bytes:
    return struct.pack("<B", len(text)) + text.encode("utf-16-le")


def _long(text: str) -> bytes:
    return struct.pack("<H", len(text.encode("utf-16-le")) // 2) + text.encode("utf-16-le")


def _token(kind: int, body: bytes) -> bytes:
    return struct.pack("<BH", kind, len(body)) + body


def _logged_in() -> bytes:
    database = _token(0xE3, b"\x01" + _name("master") + _name("master"))
    collation = _token(0xE3, b"\x07\x05" + _COLLATION + b"\x00")
    size = _token(0xE3, b"\x04" + _name("4096") + _name("4096"))
    accepted = _token(0xAD, b"\x01" + bytes.fromhex("74000004") + _name("TDS") + bytes((16, 0, 4, 135)))
    notice = _fault(Fault(5701, "Changed database context to 'master'.", 0))
    return database + notice + collation + accepted + size + _done(0)


def _fault(fault: Fault) -> bytes:
    body = struct.pack("<iBB", fault.number, 1, fault.level) + _long(fault.text) + _name("HUB") + _name("")
    return _token(0xAA if fault.level > 10 else 0xAB, body + struct.pack("<i", 1))


def _done(status: int, count: int = 0) -> bytes:
    return struct.pack("<BHHQ", 0xFD, status, 0xC1, count)


_TYPES = {
    "text": b"\xe7" + struct.pack("<H", 8000) + _COLLATION,
    "long text": b"\xe7\xff\xff" + _COLLATION,
    "number": b"\x26\x08",
    "flag": b"\x68\x01",
    "guid": b"\x24\x10",
}


def _result_set(result: Rows) -> bytes:
    heads = b"".join(struct.pack("<IH", 0, 1) + _TYPES[kind] + _name(name) for name, kind in result.columns)
    described = b"\x81" + struct.pack("<H", len(result.columns)) + heads
    kinds = [kind for _, kind in result.columns]
    rows = (b"".join(map(_cell, kinds, row)) for row in result.rows)
    return described + b"".join(b"\xd1" + row for row in rows)


def _cell(kind: str, value: Any) -> bytes:
    if kind == "text":
        body = b"" if value is None else value.encode("utf-16-le")
        return struct.pack("<H", 0xFFFF if value is None else len(body)) + body
    if kind == "long text":
        if value is None:
            return b"\xff" * 8
        body = value.encode("utf-16-le")
        chunk = struct.pack("<I", len(body)) + body if body else b""
        return struct.pack("<Q", len(body)) + chunk + bytes(4)
    if value is None:
        return b"\0"
    packed = {
        "number": lambda: struct.pack("<q", value),
        "flag": lambda: bytes((bool(value),)),
        "guid": lambda: UUID(value).bytes_le,
    }[kind]()
    return struct.pack("<B", len(packed)) + packed
