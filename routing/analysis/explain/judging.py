"""A question judged by the rules: all that may be decided for it, and which of that is."""

from __future__ import annotations

from dataclasses import dataclass

from routing.analysis.explain.asked import QuestionError
from routing.analysis.explain.known import Known, Row, message_of
from routing.rules import hashing
from routing.rules.deciding import Decision, scope_of
from routing.rules.estate import ARRIVALS
from routing.rules.rejecting import rejections
from routing.rules.requesting import Requests, Scope
from routing.rules.resolving import Dialog, Message, Verdict, decisions_of, judge, resolve
from routing.terms import ZERO_GUID


@dataclass(frozen=True)
class Asked:
    """The message of a question; ``as_of`` (microseconds) where one time was set for all messages.

    A described one without conversation_id may belong to any dialog.
    """

    row: Row
    is_described: bool
    as_of: int | None = None

    @property
    def is_of_any_dialog(self) -> bool:
        """Whether the dialog is not given."""
        return self.is_described and self.row["conversation_id"] is None


@dataclass(frozen=True)
class Judged:
    """What a question comes to.

    ``possible`` has a decision with its verdict for each broker id that a dialog may get, one where there is
    nothing to pick. ``decision`` and ``verdict`` are those that the dialog gets; where it is not given
    (``is_undecided``) those of the first. ``requests`` knows the requests on record and those that messages open.
    """

    asked: Asked
    message: Message
    dialog: Dialog
    possible: tuple[tuple[Decision, Verdict], ...]
    decision: Decision
    verdict: Verdict
    requests: Requests

    @property
    def is_undecided(self) -> bool:
        """Whether the dialog decides, and is not given."""
        return self.asked.is_of_any_dialog and len(self.possible) > 1


def judge_question(asked: Asked, known: Known) -> Judged:
    """Judge a question by what is known. Raises QuestionError where a run would reject the message."""
    _check(asked, known)
    message = message_of(asked.row, asked.as_of)
    dialog, instance = known.dialogs.of(message), known.instances[message.instance]
    decisions = decisions_of(message, dialog, instance)
    requests, mine = known.requests(message), (message.t, message.message_id)
    # Only where a request is asked for do other messages matter.
    scopes = [] if dialog.is_expired(message.t) else _asked_scopes(message, decisions, requests)
    others = known.others(message, asked.as_of) if scopes else iter(())
    found: Judged | None = None
    for other, its_dialog in others:
        at = (other.t, other.message_id)
        if all(scope.is_settled(*at) for scope in scopes):
            break
        if found is None and at > mine:
            found = _judge_all(asked, message, dialog, decisions, requests)
        # A row of the same time and id gets this message's decision.
        if at != mine:
            resolve(other, its_dialog, instance, requests)
    return found or _judge_all(asked, message, dialog, decisions, requests)


def _check(asked: Asked, known: Known) -> None:
    # Any dialog will do where none is given.
    row = {**asked.row, "conversation_id": ZERO_GUID} if asked.is_of_any_dialog else asked.row
    instance = known.instances.get(row["instance_name"])
    reasons = rejections(row, instance)
    if reasons:
        is_only_named = instance is not None and instance.is_only_named
        raise QuestionError.rejected(reasons, row["instance_name"] if is_only_named else None)


def _asked_scopes(message: Message, decisions: tuple[Decision, ...], requests: Requests) -> list[Scope]:
    """Where the message may ask for a route (step 4)."""
    databases = [scope_of(message.database) for decision in decisions if decision.first.asks]
    databases += [ARRIVALS for decision in decisions if decision.asks_again]
    return [requests.of(database, message.service) for database in dict.fromkeys(databases)]


def _judge_all(
    asked: Asked, message: Message, dialog: Dialog, decisions: tuple[Decision, ...], requests: Requests
) -> Judged:
    """All decisions judged by the requests of earlier messages.

    These learn of what the message opens, in whatever decision: where two meet step 4 in one database, both open
    its request or neither does.
    """
    possible = tuple((decision, judge(message, dialog, decision, requests)) for decision in decisions)
    decision, verdict = possible[0]
    if message.conversation_id is not None and len(possible) > 1:
        decision, verdict = hashing.pick(possible, message.conversation_id)
    return Judged(asked, message, dialog, possible, decision, verdict, requests)
