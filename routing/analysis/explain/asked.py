"""What is asked: one stored message, or one described; and everything that can be wrong with the question.

Nothing here imports Spark, so that a wrong question is answered at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from routing.errors import ContractError, join_bounded, quote

# What a described message is called; a stored one may have the same id, which changes nothing.
DESCRIBED_ID = "described"


@dataclass(frozen=True)
class Stored:
    """A message of the messages table; ``instance_name`` where several instances have one of that id.

    ``at`` decides it, and all messages, at another time than their own (as ``resolve --as-of`` does).
    """

    message_id: str
    instance_name: str | None = None
    at: datetime | None = None


@dataclass(frozen=True)
class Described:
    """A message that may exist nowhere; ``database_name`` None: it arrived over the network.

    ``conversation_id`` None: whichever dialog it belongs to, so that the outcome for every broker id is told.
    ``is_target``: the target of the dialog sent it. ``at`` is the time of the decision.
    """

    instance_name: str
    database_name: str | None
    to_service_name: str
    at: datetime
    to_broker_instance: str | None = None
    conversation_id: str | None = None
    is_target: bool = False


Question = Stored | Described


class QuestionError(ContractError):
    """The question cannot be answered: it contradicts itself, or names what the tables do not hold."""

    @classmethod
    def neither(cls) -> QuestionError:
        """No message is named."""
        return cls(
            "explain needs a message",
            "--message-id ID for a stored one; --instance with --database or --from-network, and --service,"
            " for one that is described",
        )

    @classmethod
    def mixed(cls, options: Sequence[str]) -> QuestionError:
        """A stored message is described as well."""
        return cls(
            f"--message-id names a stored message, which {' and '.join(options)} cannot change",
            "leave one of the two out",
        )

    @classmethod
    def incomplete(cls, missing: Sequence[str]) -> QuestionError:
        """The description lacks a part."""
        return cls(f"a described message needs {' and '.join(missing)}")

    @classmethod
    def both_origins(cls) -> QuestionError:
        """Sent from a database and arrived over the network."""
        return cls("--database and --from-network exclude each other: a message is sent here or arrives")

    @classmethod
    def no_text(cls, option: str) -> QuestionError:
        """What an option was given is no text in the terminal's encoding, so no table holds it."""
        return cls(f"{option} holds bytes that are no text in this terminal's encoding", "write it in UTF-8")

    @classmethod
    def unknown_message(cls, message_id: str, instance: str | None) -> QuestionError:
        """No row has the id."""
        where = "" if instance is None else f" on instance {quote(instance)}"
        return cls(f"no message {quote(message_id)} is stored{where}", "ids are compared exactly")

    @classmethod
    def ambiguous(cls, message_id: str, instances: Sequence[str]) -> QuestionError:
        """Several instances have a message of that id."""
        names = join_bounded([quote(name) for name in instances], "instance")
        return cls(f"message {quote(message_id)} is stored on {names}", "say which with --instance")

    @classmethod
    def doubled(cls, message_id: str, instance: str) -> QuestionError:
        """One instance has the id several times, which breaks the table's key."""
        return cls(
            f"several messages of instance {quote(instance)} have the id {quote(message_id)}",
            "a message id is to be unique on an instance; describe the message instead",
        )

    @classmethod
    def rejected(cls, reasons: Sequence[str]) -> QuestionError:
        """The message cannot be judged, and a run would set it aside."""
        return cls(
            f"the message cannot be judged: {', '.join(reasons)}",
            "docs/tables.md says what each reason means; a run puts such a row into rejected_messages",
        )

    @classmethod
    def unknown_word(cls, what: str, text: str, known: Sequence[str]) -> QuestionError:
        """A word of the output that there is not."""
        near = difflib.get_close_matches(text.upper()[:100], known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        return cls(f"there is no {what} {quote(text)}", hint)

    @classmethod
    def unknown_name(cls, what: str, name: str, listed: Iterable[str], where: str = "") -> QuestionError:
        """An instance or a database that its table does not hold; ``listed`` are those that it does."""
        spelt = {_as_meant(other): other for other in sorted(listed, reverse=True)}
        near = difflib.get_close_matches(_as_meant(name), spelt, n=1)
        hint = f"did you mean {quote(spelt[near[0]])}?" if near else f"look it up in table {what}s"
        return cls(f"no {what} {quote(name)} is listed{where}", hint)


def _as_meant(name: str) -> str:
    """A name as it is compared to find the one that was meant; bounded, for that takes time by its square."""
    return name.strip().lower()[:100]


def question(
    *,
    message_id: str | None,
    instance: str | None,
    database: str | None,
    from_network: bool,
    service: str | None,
    broker_instance: str | None,
    conversation_id: str | None,
    is_target: bool,
    at: datetime | None,
    now: datetime,
) -> Question:
    """The question that the options of the command ask. Raises QuestionError."""
    described = {
        "--database": database is not None,
        "--from-network": from_network,
        "--service": service is not None,
        "--broker-instance": broker_instance is not None,
        "--conversation-id": conversation_id is not None,
        "--is-target": is_target,
    }
    given = [option for option, is_given in described.items() if is_given]
    texts = {
        "--message-id": message_id,
        "--instance": instance,
        "--database": database,
        "--service": service,
        "--broker-instance": broker_instance,
        "--conversation-id": conversation_id,
    }
    for option, value in texts.items():
        # Halves of surrogates stand for such bytes; Spark cannot take them.
        if value is not None and any("\ud800" <= character <= "\udfff" for character in value):
            raise QuestionError.no_text(option)
    if message_id is not None:
        if given:
            raise QuestionError.mixed(given)
        return Stored(message_id, instance, at)
    if instance is None and not given:
        raise QuestionError.neither()
    if from_network and database is not None:
        raise QuestionError.both_origins()
    missing = [] if instance is not None else ["--instance"]
    missing += [] if from_network or database is not None else ["--database or --from-network"]
    missing += [] if service is not None else ["--service"]
    if missing or instance is None or service is None:
        raise QuestionError.incomplete(missing)
    return Described(instance, database, service, at or now, broker_instance, conversation_id, is_target)
