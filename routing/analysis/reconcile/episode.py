"""An episode: consecutive observations of one conversation, role and service with the same answer."""

from __future__ import annotations

from typing import NamedTuple

from routing.rules.reconciling import Seen

APART = 192_000_000
"""Observations so many microseconds apart are two episodes: SQL Server tries again every 64 s at the latest."""


class Episode(NamedTuple):
    """What was observed once, or again and again.

    ``database`` is None for what had come over the network (or where the event names none), ``service`` where none
    is known. ``broker_told`` is the id of the observation as ids are compared: that of the message itself where
    ``source`` is TRANSMISSION_QUEUE, of an event either that or the one that was picked. Times are microseconds.
    """

    instance: str
    database: str | None
    conversation: str
    is_initiator: bool | None
    service: str | None
    message_id: str | None
    source: str
    first_at: int
    last_at: int
    observations: int
    broker_told: str | None
    is_arrival: bool
    seen: Seen
    status_text: str | None = None
