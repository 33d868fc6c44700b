"""A local server that receives events of OpenLineage's client and answers as the test needs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LineageServer:
    """The received paths, headers and events in order, and the server's address."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.events: list[dict[str, Any]] = []


@contextmanager
def serving(status: int = 200, *, location: str | None = None, drips: float = 0.0) -> Iterator[LineageServer]:
    """Start a server that gives every request the same answer.

    ``location`` is its redirect. With ``drips`` it sends that many bytes of a header per second and never ends.
    """
    ending = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            server.paths.append(self.path)
            server.headers.append(dict(self.headers))
            server.events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            if drips:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
                while not ending.is_set():
                    self.wfile.write(b"x")
                    time.sleep(1 / drips)
                return
            self.send_response(status)
            if location is not None:
                self.send_header("Location", location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            server.paths.append(f"GET {self.path}")
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    server = LineageServer(listening.server_address[1])
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        ending.set()
        listening.shutdown()
        thread.join()
        listening.server_close()
