"""Define remedies and the troubles that need one. A remedy has statements with their place and risk."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from routing.advice import statements
from routing.cases.exported_files import UNNAMED_DATABASE
from routing.cases.server_evidence import ServerEvidence
from routing.document import Block, LabelledFact, ListItem, Paragraph, SqlStatement, Tone, TonedText
from routing.importing.tsql.servers import write_server
from routing.render.phrases import named
from routing.terms import JsonObject, Word

# The words of statements that an instance refuses. Actions with the word of a pair are about such a statement.
_NOT_ON_MANAGED: Mapping[str, str | None] = {
    "CREATE ENDPOINT": "endpoint",
    "ALTER ENDPOINT": "endpoint",
    "REMOTE SERVICE BINDING": None,
    "ENABLE_BROKER": None,
    "DISABLE_BROKER": None,
    "MIRROR_ADDRESS": None,
    "N'TRANSPORT'": None,
}
_NOT_ON_RDS: Mapping[str, str | None] = {
    "CREATE ENDPOINT": "endpoint",
    "ALTER ENDPOINT": "endpoint",
    "ENDPOINT::": "endpoint",
    "TRUSTWORTHY": "TRUSTWORTHY",
    "ALTER AUTHORIZATION ON DATABASE": "such as sa",
}
_ALONE = "Its databases exchange messages only with each other: keep both services in one instance."
_CHANGES = ("ALTER ", "CREATE ", "DROP ", "END CONVERSATION", "GRANT ", "REVOKE ")
_ON_AZURE = "no statement makes it send or take messages."
_LEAVE_AZURE = (
    "Move the database to a managed instance or to SQL Server.",
    "Or send the messages by another service, such as Azure Service Bus.",
)
_USE_UNNAMED = "-- USE [<database>];"
UNKNOWN_INSTANCE = ""
"""The instance of a place that no export shows."""
_NOT_PASTED = "There is no statement: a name in it cannot be pasted safely, or is too long for SQL Server."


class Confidence(Word):
    """The confidence in a remedy.

    CERTAIN: the configuration shows the cause, and the statement removes it. LIKELY: SQL Server reports the cause,
    or one fact is assumed. TO_BE_CHECKED: a person has to find a value, or to choose.
    """

    CERTAIN = "CERTAIN"
    LIKELY = "LIKELY"
    TO_BE_CHECKED = "TO_BE_CHECKED"


class RemedyPlace(NamedTuple):
    """The instance and database of a remedy. The database is None for the whole instance."""

    instance: str
    database: str | None = None


class AlteredRoute(NamedTuple):
    """A route that a statement alters, and the first option that it sets."""

    route: str | None
    option: str = "ADDRESS"


class AlteredDatabases(NamedTuple):
    """The databases that a statement alters from master. ``is_opening``: it lets them take changes."""

    names: tuple[str | None, ...]
    is_opening: bool = False


Altered = AlteredRoute | AlteredDatabases


@dataclass(frozen=True)
class Remedy:
    """A remedy for messages that do not arrive.

    ``cause`` is one sentence, ``actions`` are one or more. ``statement`` is T-SQL with its own `USE`. It is ready
    to run if ``is_complete``, otherwise every line is a comment. ``risk`` names deleted, locked or stopped
    objects. It is None if there is no risk. ``altered`` is the altered route, or the altered databases if they are
    not that of ``place``. ``discards_messages`` is True if the remedy deletes messages that wait to be sent.
    ``unknown_server`` describes the server of an `UNKNOWN_INSTANCE`.
    """

    place: RemedyPlace
    cause: str
    actions: tuple[str, ...]
    statement: str | None = None
    is_complete: bool = False
    risk: str | None = None
    confidence: Confidence = Confidence.TO_BE_CHECKED
    altered: Altered | None = None
    discards_messages: bool = False
    unknown_server: str = ""

    @property
    def instance(self) -> str:
        """The instance of the remedy."""
        return self.place.instance

    @property
    def server(self) -> str:
        """Its server in a sentence: the name of the instance, or a description."""
        return self.unknown_server or named(self.instance)

    @property
    def text(self) -> str:
        """The cause and the actions as one text."""
        return " ".join((self.cause, *self.actions))

    @property
    def shown(self) -> tuple[RemedyPlace, object]:
        """Its place and statement, or the whole remedy without a statement: remedies alike in them are one."""
        return self.place, self.statement or self

    def with_confidence_at_most(self, confidence: Confidence) -> Remedy:
        """Return the remedy, no surer than this."""
        order = list(Confidence)
        return replace(self, confidence=max(self.confidence, confidence, key=order.index))

    def as_comment(self) -> Remedy:
        """Return the remedy with its statement as a comment."""
        statement = statements.as_comment(self.statement) if self.is_complete else self.statement
        return replace(self, statement=statement, is_complete=False)

    def as_object(self) -> JsonObject:
        """Return its JSON values. See docs/reference/json.md for the keys."""
        return {
            "instance_name": self.place.instance or None,
            "database_name": None if self.place.database == UNNAMED_DATABASE else self.place.database,
            "cause": self.cause,
            "actions": list(self.actions),
            "advice": self.text,
            "statement": self.statement,
            "statement_is_complete": self.is_complete,
            "risk": self.risk,
            "confidence": str(self.confidence),
        }

    def as_statement(self, about: Sequence[str], indent: int = 0) -> SqlStatement:
        """Return the statement for a script of several. ``about`` describes its purpose."""
        statement, is_complete = self.statement or "", self.is_complete
        if not statement.startswith(("USE ", "-- USE ")):
            # No export names the database, so the statement would run in the previous statement's database.
            statement = f"{_USE_UNNAMED}\n{statements.as_comment(statement) if is_complete else statement}"
            is_complete = False
        remedy = replace(self, statement=statement, is_complete=is_complete)
        risk = [] if self.risk is None else [f"Risk: {self.risk}"]
        # If the statement is a comment, an empty comment line separates it from the comments before it.
        purpose = [remedy.state_place(), *about, *risk, *([] if is_complete else [""])]
        unconnectable = self.unknown_server or f"the server of {named(self.instance)}"
        server = write_server(self.instance) or f"<{unconnectable}>"
        return SqlStatement(statement, "\n".join(purpose), indent, server)

    def list_blocks(
        self, label: str, why: str = "", *, about: Sequence[str] | None = None, indent: int = 0
    ) -> Iterator[Block]:
        """Yield its blocks under a label. Its cause is left out if it equals ``why``, which is printed above.

        ``about`` are the comments of the statement for use without its context.
        """
        sentences = self.list_sentences(why)
        if len(sentences) == 1:
            yield LabelledFact(label, sentences[0], indent)
        else:
            yield Paragraph((TonedText(f"{label}:", Tone.QUIET),), indent)
            yield from (ListItem(sentence, indent=indent) for sentence in sentences)
        if self.risk is not None:
            yield LabelledFact("risk", self.risk, indent)
        if self.statement is None:
            return
        if about is None:
            yield SqlStatement(self.statement, indent=indent + 1)
        else:
            yield self.as_statement(about, indent + 1)

    def list_sentences(self, why: str = "") -> list[str]:
        """List its sentences, a cause that is ``why`` left out."""
        return [*([] if self.cause in ("", why) else [self.cause]), *self.actions]

    def state_place(self) -> str:
        """Return a sentence with the place of the statement and the steps before it can run."""
        if self.is_complete:
            return f"Run this on {self.server}."
        is_open = "<" in (self.statement or "")
        first = "put a value into each place <…>" if is_open else "uncomment the correct one"
        return f"On {self.server}, {first} before you run this."


class TroubleKind(Word):
    """The kind of a trouble beside the messages that wait, the worst first."""

    BROKER_OFF = "BROKER_OFF"
    QUEUE_OFF = "QUEUE_OFF"
    QUEUE_NOT_READ = "QUEUE_NOT_READ"
    LOGIN_REFUSED = "LOGIN_REFUSED"
    TRANSPORT_FAILS = "TRANSPORT_FAILS"
    DIALOGS_IN_ERROR = "DIALOGS_IN_ERROR"
    ENDPOINTS_LEAK = "ENDPOINTS_LEAK"
    CLIENTS_GONE = "CLIENTS_GONE"
    KEY_CLOSED = "KEY_CLOSED"
    PORT_SHARED = "PORT_SHARED"


@dataclass(frozen=True)
class EstateTrouble:
    """A trouble in a database: ``count`` is its number of messages or endpoints, ``remedy`` the advice.

    ``logged`` are the lines of the error log that show it.
    """

    kind: TroubleKind
    summary: str
    count: int
    remedy: Remedy
    logged: Collection[str] = ()

    def as_object(self) -> JsonObject:
        """Return its JSON values. See docs/reference/json.md for the keys."""
        return {"kind": str(self.kind), "what": self.summary, "count": self.count, **self.remedy.as_object()}


def ready(
    place: RemedyPlace,
    cause: str,
    actions: Sequence[str],
    *lines: str | None,
    risk: str | None = None,
    confidence: Confidence = Confidence.CERTAIN,
    altered: Altered | None = None,
) -> Remedy:
    """Build a remedy that is ready to run. It has no statement if a name cannot be pasted."""
    database = UNNAMED_DATABASE if place.database is None else place.database
    statement = statements.in_database(database, lines)
    if statement is None:
        return Remedy(place, cause, (*actions, _NOT_PASTED), risk=risk)
    return Remedy(place, cause, tuple(actions), statement, True, risk, confidence, altered)


def to_fill_in(
    place: RemedyPlace,
    cause: str,
    actions: Sequence[str],
    *lines: str | None,
    risk: str | None = None,
    confidence: Confidence = Confidence.TO_BE_CHECKED,
    altered: Altered | None = None,
) -> Remedy:
    """Build a remedy with a commented statement, because a value or choice is missing."""
    built = ready(place, cause, actions, *lines, risk=risk, confidence=confidence, altered=altered)
    return built.as_comment()


def correct_route(
    place: RemedyPlace,
    route: str | None,
    clause: str | None,
    cause: str,
    *actions: str,
    option: str = "ADDRESS",
    is_open: bool = False,
    confidence: Confidence = Confidence.LIKELY,
) -> Remedy:
    """Build a remedy with ALTER ROUTE. ``option`` is the first of the clause. ``is_open``: a value is missing."""
    build, line = to_fill_in if is_open else ready, statements.alter_route(route, clause)
    return build(place, cause, actions, line, confidence=confidence, altered=AlteredRoute(route, option))


def withhold_refused(server: ServerEvidence, remedy: Remedy) -> Remedy:
    """Return a remedy without a statement that its instance does not support or its database does not take."""
    if server.has_no_broker(remedy.instance):
        cause = f"{named(remedy.instance)} is a service of Azure that has no Service Broker: {_ON_AZURE}"
        return Remedy(RemedyPlace(remedy.instance), cause, _LEAVE_AZURE, confidence=Confidence.CERTAIN)
    statement = remedy.statement or ""
    limits = ("a Managed Instance", server.is_managed, _NOT_ON_MANAGED), ("Amazon RDS", server.is_rds, _NOT_ON_RDS)
    for kind, is_of_kind, refused in limits:
        if not is_of_kind(remedy.instance):
            continue
        words = [word for statement_words, word in refused.items() if statement_words in statement]
        if words:
            note = f"{named(remedy.instance)} is {kind}, which does not support a statement for it."
            others = [action for action in remedy.actions if not any(word and word in action for word in words)]
            alone = [_ALONE] if refused is _NOT_ON_RDS and "endpoint" in words else []
            actions = (note, *alone, *others)
            return replace(remedy, actions=actions, statement=None, is_complete=False, risk=None)
    is_change = any(words in statement for words in _CHANGES)
    altered = remedy.altered
    if not isinstance(altered, AlteredDatabases):
        altered = AlteredDatabases((remedy.place.database,))
    refusals = (
        _refuse_change(server, remedy.instance, name, is_opened=altered.is_opening)
        for name in altered.names
        if is_change
    )
    why = next(filter(None, refusals), None)
    return remedy if why is None else replace(remedy.as_comment(), actions=(*remedy.actions, why))


def _refuse_change(server: ServerEvidence, instance: str, database: str | None, *, is_opened: bool) -> str | None:
    """Return a sentence on a database that takes no changes, or None for any other."""
    facts = server.database(instance, database)
    if facts is None or database is None:
        return None
    if server.is_secondary(instance, facts.name):
        return f"{named(database)} of {named(instance)} is a secondary replica: run the statement at the primary."
    is_read_only = facts.is_read_only and not facts.is_closed and not is_opened
    return f"{named(database)} is read-only: the statement needs it to be writable." if is_read_only else None
