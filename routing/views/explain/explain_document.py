"""Write an explanation as a document: the outcome, the actions, the statement, then the path step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from routing.advice.trouble_catalogue import REASONS, error_number, number_reason
from routing.cases.judged_questions import FollowedMessage
from routing.document import Block, Document, DocumentHeading, LabelledFact, Paragraph, Tone, TonedText, Words
from routing.render.phrases import quote_name
from routing.render.wording import format_duration, format_time, mark_outcome, plain_words, write_json
from routing.terms import STAYS, MatchingStep, Outcome, ReadRow, Reason
from routing.views.explain import path_sentences
from routing.views.explain.explaining import Explanation
from routing.views.path_words import state_path

_DEPENDS = "the destination depends on its dialog, which is not given: see step 3"


@dataclass(frozen=True)
class DecidedMessage:
    """A message with its verdict, a row of ``resolved_routes``, and the steps of its path."""

    verdict: ReadRow
    steps: Sequence[ReadRow]

    @property
    def service(self) -> str:
        """The service that it is sent to, with the broker instance that it is bound to."""
        broker_clause = "" if self.verdict["broker_instance"] is None else f" with broker instance {self.broker}"
        return f"service {quote_name(self.verdict['to_service_name'])}{broker_clause}"

    @property
    def broker(self) -> str:
        """The broker instance that it is bound to."""
        return quote_name(self.verdict["broker_instance"])

    @property
    def instance(self) -> str:
        """The instance that decides."""
        return f"instance {quote_name(self.verdict['instance_name'])}"

    @property
    def scope(self) -> str | None:
        """The database with the routes of the last search, or None without a search."""
        scope = self.find_step("SCOPE")
        return None if scope is None else scope["database_name"]

    @property
    def deciding_route(self) -> str:
        """The chosen route, or any of the last search if its dialog decides."""
        return self.route or f"a route of {quote_name(self.scope)}"

    @property
    def route(self) -> str | None:
        """The chosen route with its database, or None without a route or if its dialog decides."""
        name = self.verdict["route_name"]
        return None if name is None else f"route {quote_name(name)} of {quote_name(self.scope)}"

    @property
    def address(self) -> str | None:
        """The next address, and the mirror's address."""
        address, mirror = self.verdict["address"], self.verdict["mirror_address"]
        if address is None:
            return None
        return quote_name(address) + ("" if mirror is None else f" and its mirror {quote_name(mirror)}")

    def find_step(self, item: str) -> ReadRow | None:
        """Return the last line of the path with this item, or None."""
        return next((step for step in reversed(self.steps) if step["item"] == item), None)


def state_outcome(message: DecidedMessage) -> Words:
    """Return the sentence with the destination of a message and the reason."""
    outcome, reason = message.verdict["outcome"], message.verdict["reason"]
    if outcome is None or reason is None:
        outcome_part = () if outcome is None else (mark_outcome(outcome), ": ")
        return (*outcome_part, "the outcome depends on its dialog, which is not given: see step 3.")
    why = f"{_state_reroute(message)}{_CLAUSES[Reason(reason)](message)}"
    return (mark_outcome(outcome), f": {why}{_consequence(message)}.")


def _state_reroute(message: DecidedMessage) -> str:
    name, database = message.verdict["rerouted_from"], message.verdict["database_name"]
    if name is None:
        return ""
    return f"route {quote_name(name)} of {quote_name(database)} leads back to this instance, and "


def _consequence(message: DecidedMessage) -> str:
    verdict = message.verdict
    if verdict["outcome"] != Outcome.DELAYED:
        return ""
    if verdict["database_name"] is None:
        return "; this instance keeps no copy of it, and its sender tries again"
    waited = _last_seen(message) - verdict["enqueue_time"]
    since = f" since {format_duration(waited)}" if waited.total_seconds() > 0 else ""
    return f"; it stays in the transmission queue{since}"


def _last_seen(message: DecidedMessage) -> datetime:
    """Return the last time at which the message is known, or taken, to wait."""
    decided: datetime = message.verdict["decided_at"]
    status = message.find_step("STATUS")
    # An event describes one moment, and a transmission_status a waiting message.
    is_queue = status is not None and status["name"] is None
    return max(decided, status["at"]) if status is not None and is_queue else decided


def _delivered(message: DecidedMessage) -> str:
    database = message.verdict["destination_database"]
    place = "" if database is None else f" to database {quote_name(database)}"
    if message.verdict["matching_step"] == MatchingStep.REPLY:
        return f"it is a reply from outside, which needs no route, and is delivered{place} of {message.instance}"
    by = f"{message.route} delivers it" if message.route else "it is delivered"
    return f"{by}{place} of {message.instance}" if place else f"{by} in {message.instance}; {_DEPENDS}"


def _sent(message: DecidedMessage) -> str:
    does = "forwards" if message.verdict["outcome"] == Outcome.FORWARDED else "sends"
    by = f"{message.deciding_route} {does} it"
    if message.address is None:
        return f"{by} on; {_DEPENDS}"
    named = ", the address in the service's name" if message.verdict["reason"] == Reason.TRANSPORT_ADDRESS else ""
    return f"{by} to {message.address}{named}"


def _service_not_found(message: DecidedMessage) -> str:
    verdict = message.verdict
    name = quote_name(verdict["to_service_name"])
    clause = f"no database of {message.instance} holds service {name}"
    if verdict["broker_instance"] is not None:
        database = f"the database of {message.instance} with broker instance {message.broker}"
        clause = f"{database} does not hold service {name}"
    return f"{_looks_here(message)}{clause}"


def _looks_here(message: DecidedMessage) -> str:
    return f"{message.route} looks only in this instance, and " if message.route else ""


def _forwarding_off(message: DecidedMessage) -> str:
    forwarding = message.find_step("FORWARDING")
    is_known = forwarding is None or forwarding["finding"] != "NOT_KNOWN"
    off = "is off" if is_known else "is not known to be on"
    return f"{message.deciding_route} leads on{_to(message)}, and message forwarding {off} on {message.instance}"


def _to(message: DecidedMessage) -> str:
    return "" if message.address is None else f" to {message.address}"


def _expired(message: DecidedMessage) -> str:
    line = message.find_step("DIALOG")
    return "its dialog has expired" if line is None else f"its dialog expired at {format_time(line['at'])}"


_CLAUSES: dict[Reason, Callable[[DecidedMessage], str]] = {
    Reason.LOCAL_SERVICE: _delivered,
    Reason.NETWORK_ADDRESS: _sent,
    Reason.MIRROR_ADDRESS: _sent,
    Reason.TRANSPORT_ADDRESS: _sent,
    Reason.ROUTE_REQUESTED: lambda message: (
        f"no route of {quote_name(message.scope)} names {message.service}, and it waits until the request for a"
        " route is answered"
    ),
    Reason.NO_ROUTE: lambda message: f"no route of {quote_name(message.scope)} leads to {message.service}",
    Reason.SERVICE_NOT_FOUND: _service_not_found,
    Reason.BROKER_INSTANCE_NOT_FOUND: lambda message: (
        f"{_looks_here(message)}no database of {message.instance} has broker instance {message.broker}"
    ),
    Reason.BROKER_DISABLED: lambda message: (
        f"the broker of every database of {message.instance} that holds {message.service} is off"
    ),
    Reason.SCOPE_BROKER_DISABLED: lambda message: (
        f"the broker of {quote_name(message.scope)} is off, so that its routes are not searched"
    ),
    Reason.TRANSPORT_ADDRESS_INVALID: lambda message: (
        f"{message.deciding_route} takes the address from the service's name, and"
        f" {quote_name(message.verdict['to_service_name'])} does not begin with one"
    ),
    Reason.FORWARDING_DISABLED: _forwarding_off,
    Reason.HOP_LIMIT: lambda message: f"no hops remain, but the message must be forwarded{_to(message)}",
    Reason.ROUTING_LOOP: lambda message: (
        f"{message.deciding_route} leads to {message.address or 'an address'}, which is {message.instance} itself"
    ),
    Reason.DIALOG_EXPIRED: _expired,
}


# Items that begin a part, and items below another one. All others are between.
_PARTS = ("MESSAGE", "SCOPE", "REQUEST_PATH")
_DEEP = ("ROUTE", "OTHER_ROUTES", "ID", "OTHER_IDS", "REQUEST", "DATABASE")
# Items before the path: the certainty of the outcome, and SQL Server's report.
_BEFORE_THE_PATH = {"IMPORT": "note", "INSTANCE": "note", "STATUS": "observed"}
_TONES = {
    ("STEP", "MATCHED"): Tone.STRONG,
    ("STEP", "NOT_REACHED"): Tone.QUIET,
    ("ROUTE", "MATCHED"): Tone.GOOD,
    ("ROUTE", "LATER"): Tone.QUIET,
    ("ROUTE", "NO_MATCH"): Tone.QUIET,
    ("OTHER_ROUTES", "MORE"): Tone.QUIET,
    ("OTHER_ROUTES", "OTHER"): Tone.QUIET,
    ("TIER", "USED"): Tone.STRONG,
    ("TIER", "NOT_REACHED"): Tone.QUIET,
    ("BROKER", "DISABLED"): Tone.WAITING,
    ("LOCATION", "LOCATED"): Tone.GOOD,
    ("LOCATION", "NOT_LOCATED"): Tone.WAITING,
    ("REQUEST_PATH", "LOST"): Tone.BAD,
}


def make_document(explanation: Explanation) -> Document:
    """Describe an explanation: the outcome in a sentence, the actions, then every step and route."""
    [verdict], steps = explanation.verdict, explanation.steps.rows
    message = DecidedMessage(verdict, steps)
    return [
        Paragraph(state_outcome(message)),
        *_reason(message),
        *_path(explanation.followed),
        *_what_to_do(message, explanation),
        *(
            LabelledFact(_BEFORE_THE_PATH[step["item"]], _sentence(step, explanation))
            for step in steps
            if step["item"] in _BEFORE_THE_PATH
        ),
        *list_steps(step for step in steps if step["item"] not in _BEFORE_THE_PATH),
    ]


def state_nothing_to_run(explanation: Explanation) -> str:
    """Return the comment for an explanation without a statement."""
    [verdict] = explanation.verdict
    message = DecidedMessage(verdict, explanation.steps.rows)
    outcome, advice = plain_words(state_outcome(message)), _advise(explanation)
    return " ".join(part for part in ("There is nothing to run.", outcome, advice) if part is not None)


def _reason(message: DecidedMessage) -> Iterator[Block]:
    reason = message.verdict["reason"]
    if reason is not None:
        yield LabelledFact("reason", number_reason(reason, message.scope))


def _path(followed: FollowedMessage | None) -> Iterator[Block]:
    if followed is not None and len(followed.paths) == 1:
        yield LabelledFact("path", state_path(followed, followed.paths[0]))
    elif followed is not None:
        ends = dict.fromkeys(path.judged.end for path in followed.paths)
        marked_ends = [part for end in ends for part in (" or ", mark_outcome(end))][1:]
        picked = f"its dialog, which is not given, picks one of {len(followed.paths)} paths, which trace shows"
        yield LabelledFact("path", (*marked_ends, f": {picked}."))


def _what_to_do(message: DecidedMessage, explanation: Explanation) -> Iterator[Block]:
    outcome = plain_words(state_outcome(message))
    for remedy in explanation.remedies:
        label = f"what to do on {remedy.server}"
        yield from remedy.list_blocks(label, about=[outcome, remedy.text])
    advice = None if explanation.remedies else _advise(explanation)
    if advice is not None:
        yield LabelledFact(f"what to do on {quote_name(message.verdict['instance_name'])}", advice)


def _advise(explanation: Explanation) -> str | None:
    """Return the text of the first remedy or the advice for the reason. None if the outcome is open."""
    [verdict] = explanation.verdict
    if explanation.remedy is not None:
        return explanation.remedy.text
    return None if verdict["reason"] is None else REASONS[Reason(verdict["reason"])].advice


def list_steps(steps: Iterable[ReadRow]) -> Iterator[Block]:
    """Yield the lines of a path as a nested list."""
    scope = None
    for step in steps:
        scope = step["database_name"] if step["item"] == "SCOPE" else scope
        yield from _list_outcome(step, scope) if step["item"] == "OUTCOME" else [_describe_step(step)]


def _describe_step(step: ReadRow) -> Block:
    item, sentence = step["item"], path_sentences.sentence(step)
    tone = _TONES.get((item, step["finding"]))
    words = sentence if tone is None else TonedText(sentence, tone)
    if item in _PARTS:
        return DocumentHeading(words, 3)
    return Paragraph(words, 0 if item == "STATUS" else 2 if item in _DEEP else 1, hang=1)


def _list_outcome(step: ReadRow, scope: str | None) -> Iterator[Block]:
    outcome, number = str(step["outcome"] or ""), error_number(step["reason"], scope)
    numbered = "" if number is None else f" (SQL Server's number: {number})"
    yield Paragraph("")
    yield Paragraph(
        (mark_outcome(outcome), path_sentences.sentence(step).removeprefix(outcome) + numbered), hang=1
    )


def write_explanation(explanation: Explanation) -> str:
    """Return one line of JSON: verdict, error_number, end, remedies, transmission_status and steps.

    The verdict has the columns of resolved_routes. The status is its step, or null if it is unknown. Steps have
    their sentences and no null values.
    """
    [verdict], steps = explanation.verdict, explanation.steps.rows
    scope = DecidedMessage(verdict, steps).scope
    shown = [_step(step, explanation) for step in steps]
    return write_json(
        {
            "verdict": dict(verdict),
            "error_number": error_number(verdict["reason"], scope),
            "end": explanation.end,
            "remedies": [remedy.as_object() for remedy in explanation.remedies],
            "advice": _advise(explanation),
            "transmission_status": next((step for step in shown if step["item"] == "STATUS"), None),
            "steps": shown,
        }
    )


def _step(step: ReadRow, explanation: Explanation) -> ReadRow:
    values = {name: value for name, value in step.items() if value is not None}
    return {**values, "text": _sentence(step, explanation)}


def _sentence(step: ReadRow, explanation: Explanation) -> str:
    """Write the sentence of a step. A status without a remedy for it gets the general cause and cure."""
    [verdict] = explanation.verdict
    is_answered = bool(explanation.remedies) and verdict["outcome"] not in STAYS
    trouble = None if is_answered else path_sentences.state_trouble(step)
    sentence = path_sentences.sentence(step)
    return sentence if trouble is None else f"{sentence} {trouble}"
