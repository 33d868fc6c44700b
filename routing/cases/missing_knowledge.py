"""Name missing knowledge of an estate: each kind of gap with the view to export."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from routing.render.phrases import where
from routing.rules.judging import JudgedPath


class MissingKnowledge(Enum):
    """The kinds of gaps, each with the view that would close it and the meaning of its lack."""

    NAME_ONLY = ("databases", "only the name of the instance is known")
    DATABASES = ("databases", "its databases are not known")
    UNREADABLE_DATABASE = ("databases", "not all of its databases are known: a row of them cannot be read")
    ENDPOINT = (
        "service_broker_endpoints",
        "its forwarding (assumed to be off) and its own addresses are not known",
    )
    FORWARDING = ("service_broker_endpoints", "its forwarding is not known (assumed to be off)")
    ADDRESSES = ("service_broker_endpoints", "its own addresses are not known")
    NAMES = ("service_broker_endpoints", "its own addresses are not known, since the view does not have them")
    ROUTES = ("routes", "its routes are not known")
    ALL_ROUTES = ("routes", "only the routes that scripts mention are known")
    SOME_ROUTES = (
        "routes",
        "its routes are not known: a script that mentions routes could not be read completely",
    )
    UNREADABLE_ROUTE = ("routes", "not all of its routes are known: a row of them cannot be read")
    SERVICES = ("services", "its services are not known")
    ALL_SERVICES = ("services", "only the services that scripts mention are known")
    UNREADABLE_SERVICE = ("services", "not all of its services are known: a row of them cannot be read")
    ENDPOINTS_OF_DIALOGS = ("conversation_endpoints", "the dialogs of the messages in its queue are not known")
    NOT_LISTED = ("databases", "sys.databases does not list it")
    ENDPOINT_OF_DIALOG = (
        "conversation_endpoints",
        "the export has no conversation endpoint with the message's handle",
    )

    OUTDATED = ("databases", "it was exported before the messages were sent, so their result there is not known")

    @property
    def view(self) -> str:
        """The view to export."""
        return f"sys.{self.value[0]}"

    @property
    def words(self) -> str:
        """The name of the missing knowledge."""
        return self.value[1]


OF_ROUTES = frozenset(
    [
        MissingKnowledge.ROUTES,
        MissingKnowledge.ALL_ROUTES,
        MissingKnowledge.SOME_ROUTES,
        MissingKnowledge.UNREADABLE_ROUTE,
    ]
)
"""The gaps in the knowledge of routes."""
OF_ADDRESSES = frozenset([MissingKnowledge.ENDPOINT, MissingKnowledge.ADDRESSES, MissingKnowledge.NAMES])
"""The gaps in the knowledge of an instance's own addresses."""


@dataclass(frozen=True)
class KnowledgeGap:
    """One missing fact. ``database`` is None for a fact of the instance."""

    instance: str
    database: str | None
    missing: MissingKnowledge

    @property
    def place(self) -> tuple[str, str, str]:
        """Its place in a list."""
        return (self.instance, self.database or "", self.missing.name)


def gaps_on(path: JudgedPath) -> list[KnowledgeGap]:
    """Return the gaps in the exports of instances on a path."""
    gaps = {gap for possible_path in path.all_paths for gap in possible_path.gaps if isinstance(gap, KnowledgeGap)}
    return sorted(gaps, key=lambda gap: gap.place)


def gap_sentence(gap: KnowledgeGap) -> str:
    """Write a gap as a sentence, with the view to export."""
    remedy = f"export {gap.missing.view}"
    if gap.missing is MissingKnowledge.NAMES:
        remedy = "give --address, or export by sbroute import queries"
    if gap.missing is MissingKnowledge.OUTDATED:
        remedy = "export it again, at one time with their sender"
    return f"{where(gap.instance, gap.database)}: {gap.missing.words}; {remedy}"
