"""An event of OpenLineage on its way, to the server or file that the configuration names and nowhere else.

Of OpenLineage's own environment variables and files only OPENLINEAGE_API_KEY is read: whatever others name gets
nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from routing.config import LineageSettings
from routing.errors import first_sentence

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent
    from openlineage.client.transport import Transport

API_KEY = "OPENLINEAGE_API_KEY"
# Seconds: for each answer of a server, and for all of it, since a server may answer drop by drop.
ANSWER_SECONDS, TOTAL_SECONDS = 5.0, 10.0
_THREAD = "lineage event"


def send(
    make: Callable[[], RunEvent],
    settings: LineageSettings,
    *,
    answer_seconds: float = ANSWER_SECONDS,
    total_seconds: float = TOTAL_SECONDS,
) -> str | None:
    """Create an event and send it, once; return why it was not sent, as the end of a sentence, or None.

    Raises nothing, and takes ``total_seconds`` at most; for each answer of a server it waits ``answer_seconds``.
    """
    faults: list[str] = []
    # Nobody waits for this thread when the process ends: what does not answer holds nothing up.
    thread = threading.Thread(
        target=_send, args=(make, settings, answer_seconds, faults), name=_THREAD, daemon=True
    )
    thread.start()
    thread.join(total_seconds)
    if thread.is_alive():
        return f"no answer within {total_seconds:g} seconds"
    return faults[0] if faults else None


def _send(
    make: Callable[[], RunEvent], settings: LineageSettings, answer_seconds: float, faults: list[str]
) -> None:
    try:
        transport = _transport(settings, answer_seconds)
        try:
            transport.emit(make())
        finally:
            transport.close()
    # Whatever goes wrong here is told, and no reason for a run that counts to fail.
    except Exception as error:  # noqa: BLE001
        faults.append(first_sentence(error))


def _transport(settings: LineageSettings, answer_seconds: float) -> Transport:
    """Create the transport of the settings. Raises ValueError for a key that no header takes."""
    if settings.file is not None:
        from openlineage.client.transport.file import FileConfig, FileTransport

        return FileTransport(FileConfig(settings.file, append=True))
    from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport, TokenProvider
    from requests import Session

    key = os.environ.get(API_KEY, "").strip()
    if not (key.isascii() and key.isprintable()):
        # The libraries below would put the key into their own error.
        raise ValueError(f"{API_KEY} holds characters that no header takes")
    session = Session()
    # A server that leads elsewhere gets no event there: a POST that is led on becomes a GET.
    session.max_redirects = 0
    return HttpTransport(
        HttpConfig(
            url=f"{str(settings.url).rstrip('/')}/",
            timeout=answer_seconds,
            auth=ApiKeyTokenProvider({"api_key": key}) if key else TokenProvider({}),
            session=session,
            retry={"total": 0},
        )
    )
