"""Write the lines of a path as sentences, with SQL Server's number of a reason and the advice, in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from routing.advice.status_meanings import find_trouble
from routing.advice.trouble_catalogue import STATUSES
from routing.render.phrases import LONGEST_STATUS, quote_name
from routing.render.wording import count, format_time
from routing.terms import (
    CLASSIFY_EVENT,
    FORWARD_DROPPED,
    FORWARD_SENT,
    LEAVES,
    STAYS,
    UNDELIVERABLE,
    Ending,
    MatchingStep,
    Outcome,
    ReadRow,
)

Line = ReadRow
STEP_TITLES = {
    MatchingStep.REPLY: "a reply from outside",
    MatchingStep.BROKER_INSTANCE: "routes that name the service and have the message's broker instance",
    MatchingStep.SERVICE: "routes that name the service and have no broker instance",
    MatchingStep.BALANCED: "routes that name the service and have a broker instance, for an open message",
    MatchingStep.ROUTE_REQUEST: "a route for the BrokerConfiguration service, which is asked for a route",
    MatchingStep.ANY_SERVICE: "routes for any service",
    MatchingStep.SERVICE_OF_THIS_INSTANCE: "a service of this instance, for a message with a broker instance",
    MatchingStep.NO_MATCH: "nothing matched",
}
TIER_TITLES = {"A": "mirrored address", "B": "LOCAL", "C": "network address", "D": "TRANSPORT"}
_WHY = {
    "NAME_CASE": "the service name differs in case",
    "NAME_BLANKS": "the service name differs in blanks around it",
    "NAME_SLASH": "the service name differs in a slash at its end",
    "OTHER_SERVICE": "names another service",
    "OTHER_BROKER_INSTANCE": "has another broker instance",
    "NO_SERVICE_NAME": "has a broker instance and no service name, which matches in no step (D3)",
    "EXPIRED": "expired at %(at)s",
    "NOT_YET_VALID": "not valid before %(at)s",
}


def sentence(line: Line) -> str:
    """Write the sentence of a line of a path."""
    written = _SENTENCES[line["item"]]
    if callable(written):
        return written(line)
    template = written if isinstance(written, str) else written[line["finding"]]
    return _fill(template, line)


def _fill(template: str, line: Line) -> str:
    """Write the values of a line into a template: names in quotes, and times in ISO 8601."""
    return template % {
        name: format_time(value) if isinstance(value, datetime) else quote_name(value)
        for name, value in line.items()
    }


def _message(line: Line) -> str:
    kind = "message " + quote_name(line["name"]) if line["finding"] == "STORED" else "a message"
    sender = line["database_name"]
    origin = "that arrived over the network," if sender is None else f"sent from {quote_name(sender)}"
    is_initiator = line["reason"] == "INITIATOR"
    role = "the sender began the dialog (initiator)" if is_initiator else "the sender did not begin it (target)"
    return f"{kind} {origin} to service {quote_name(line['service_name'])}; {role}"


def _step(line: Line) -> str:
    step, finding = MatchingStep(line["step"]), line["finding"]
    is_open = line["broker_instance"] is None
    other_answers = {"NOT_REACHED": "not reached", "PENDING": "no, a request for this service is pending"}
    answer = "yes" if finding == "MATCHED" else other_answers.get(finding, "no")
    of_brokers = MatchingStep.BROKER_INSTANCE, MatchingStep.SERVICE_OF_THIS_INSTANCE
    if finding == "NO_MATCH" and is_open and step in of_brokers:
        answer = "no, the message is open"
    if finding == "NO_MATCH" and not is_open and step == MatchingStep.BALANCED:
        answer = "no, the message has a broker instance"
    if finding == "MATCHED" and step == MatchingStep.ROUTE_REQUEST:
        answer = "yes, none is pending: the message opens a request and waits"
        if line["name"] is not None:
            opening_message = quote_name(line["name"])
            answer = f"yes, its conversation waits for the route that its message {opening_message} has asked for"
    return f"step {int(step)}, {STEP_TITLES[step]}: {answer}"


def _route(line: Line) -> str:
    parts = []
    if line["service_name"] is not None:
        parts.append(f"service {quote_name(line['service_name'])}")
    if line["broker_instance"] is not None:
        parts.append(f"broker instance {quote_name(line['broker_instance'])}")
    parts.append(f"address {quote_name(line['address'])}")
    if line["mirror_address"] is not None:
        parts.append(f"mirror {quote_name(line['mirror_address'])}")
    return f"route {quote_name(line['name'])} ({', '.join(parts)}): {_route_finding(line)}"


def _route_finding(line: Line) -> str:
    plain = {
        "MATCHED": "matches",
        "EQUAL": "matches, but is the same route as one before it",
        "NOT_PICKED": "matches, but the dialog's id picks another broker instance",
        "LATER": "would match, but the search ended before",
    }
    if line["finding"] in plain:
        return plain[line["finding"]]
    return _fill(f"no match: {', '.join(_WHY[reason] for reason in line['reasons'])}", line)


def _other_routes(line: Line) -> str:
    if line["finding"] == "MORE":
        return f"and {count(line['count'], 'more route')} like these"
    concern = "concerns" if line["count"] == 1 else "concern"
    return f"{count(line['count'], 'other route')} of this table {concern} other services or later steps"


def _id(line: Line) -> str:
    others = {"OTHER": "another dialog may get it", "POSSIBLE": "a dialog may get it"}
    dialog = others.get(line["finding"], "this dialog")
    return f"broker instance {quote_name(line['broker_instance'])}, {dialog}: {_end(line)}"


def _tier(line: Line) -> str:
    names = ", ".join(quote_name(name) for name in line["routes"])
    unlisted = line["count"] - len(line["routes"])
    names += f" and {unlisted:,} more" if unlisted else ""
    answer = {"USED": "used", "NOT_REACHED": "not reached"}.get(line["finding"])
    if answer is None:
        answer = f"cannot be used, {line['reason']}"
    return f"tier {line['name']}, {TIER_TITLES[line['name']]} ({names}): {answer}"


def _location(line: Line) -> str:
    if line["finding"] == "LOCATED":
        return f"located in database {quote_name(line['database_name'])}"
    broker = line["broker_instance"]
    broker_text = "" if broker is None else f" with broker instance {quote_name(broker)}"
    hold = "holds" if line["count"] == 1 else "hold"
    holders = f"{line['count']} of its databases {hold} it" if line["count"] else "none of its databases holds it"
    subject = f"service {quote_name(line['service_name'])}{broker_text}"
    return f"not located in this instance: {subject}; {holders} ({line['reason']})"


def _database(line: Line) -> str:
    broker = line["broker_instance"]
    known_id = "no broker instance" if broker is None else f"id {quote_name(broker)}"
    why = {
        "LOCATED": "the destination",
        "OTHER_BROKER_INSTANCE": "not the requested broker instance",
        "DISABLED": "its broker is off",
        "NOT_FIRST": "could receive it too, but another comes first (D5)",
    }[line["finding"]]
    return f"database {quote_name(line['name'])} holds the service ({known_id}): {why}"


def _hops(line: Line) -> str:
    if line["finding"] == "NO_LIMIT":
        return "no hop limit"
    if line["finding"] == "NONE_LEFT":
        return "no hops remain"
    return "1 hop remains" if line["count"] == 1 else f"{line['count']} hops remain"


def _request_path(line: Line) -> str:
    sender = f"{quote_name(line['database_name'])} of {quote_name(line['instance_name'])}"
    request_words = f"the request for a route goes from {sender} to service {quote_name(line['service_name'])}"
    if line["count"] > 1:
        request_words += f", by {count(line['count'], 'path')} that the transport may take"
    lost = ", and reaches no such service: the message waits forever" if line["finding"] == "LOST" else ""
    return f"{request_words}{lost}"


def _request_hop(line: Line) -> str:
    by = [] if line["step"] is None else [f"step {line['step']}"]
    by += [] if line["name"] is None else [f"route {quote_name(line['name'])}"]
    is_sent = line["outcome"] in LEAVES
    result = f"{line['outcome']}{_to(line['address']) if is_sent else ''} ({line['reason']})"
    return f"{quote_name(line['instance_name'])}, {quote_name(line['database_name'])}: {', '.join([*by, result])}"


_EVENTS = {
    CLASSIFY_EVENT: "event broker_message_classify",
    FORWARD_SENT: "event broker_forwarded_message_sent",
    FORWARD_DROPPED: "event broker_forwarded_message_dropped",
    UNDELIVERABLE: "event broker_message_undeliverable",
}


def _to(address: str | None) -> str:
    return "" if address is None else f" to {quote_name(address)}"


def _status(line: Line) -> str:
    parts = [] if line["outcome"] is None else [line["outcome"] + _to(line["address"])]
    parts += [] if line["error_number"] is None else [str(line["error_number"])]
    parts += [] if line["status_text"] is None else [quote_name(line["status_text"], LONGEST_STATUS)]
    compared = {
        "AGREES": "it agrees",
        "COMPATIBLE": "it is compatible with this",
        "CONTRADICTS": "it contradicts this",
        "SAYS_NOTHING": "it says nothing about routing",
    }[line["finding"]]
    status = f"{', '.join(parts)}; {compared}" if parts else "blank"
    source = "transmission_status" if line["name"] is None else _EVENTS[line["name"]]
    sentences = [f"SQL Server's {source} at {format_time(line['at'])}: {status}.", line["why"]]
    return " ".join(sentence for sentence in sentences if sentence is not None)


def state_trouble(line: Line) -> str | None:
    """Return the general cause and cure of a status that does not agree with the reason."""
    if line["item"] != "STATUS" or line["name"] is not None or line["finding"] == "AGREES":
        return None
    trouble = find_trouble(line["error_number"], line["status_text"])
    return None if trouble is None else STATUSES[trouble].text


def _outcome(line: Line) -> str:
    if line["finding"] == "DEPENDS_ON_DIALOG":
        return "the outcome depends on the dialog: see step 3, or give its conversation id"
    return _end(line)


def _end(line: Line) -> str:
    if line["outcome"] is None:
        return "depends on the dialog"
    end = f"{line['outcome']}, {line['reason']}"
    goes_on = line["outcome"] not in STAYS
    if line["database_name"] is not None:
        end += f": database {quote_name(line['database_name'])}"
    elif line["address"] is not None and line["outcome"] != Outcome.DELIVERED:
        end += f": {quote_name(line['address'])}"
        end += "" if line["mirror_address"] is None else f" and its mirror {quote_name(line['mirror_address'])}"
    elif goes_on:
        end += ", where to depends on the dialog: see step 3"
    return end if line["name"] is None else f"{end}, route {quote_name(line['name'])}"


_DECIDED_AS_OF = "decided as of %(at)s, "
_BOUND = "bound to broker instance %(broker_instance)s, "
_REPLY = "step 0, a reply from outside: "
_ASKED = "a route was asked for at %(valid_from)s by message %(name)s, and that request "
# The sentence of each item of a line: a template for all findings, templates by finding, or a function.
_SENTENCES: dict[str, str | dict[str, str] | Callable[[Line], str]] = {
    "MESSAGE": _message,
    "TIME": {
        "AS_OF": f"{_DECIDED_AS_OF}the requested time",
        "ASKED": f"{_DECIDED_AS_OF}the time of the question",
        "OBSERVED": f"{_DECIDED_AS_OF}when the message was seen still waiting",
        "ENQUEUED": f"{_DECIDED_AS_OF}when the message was enqueued",
    },
    "BROKER_INSTANCE": {
        "OPEN": "bound to no broker instance: open",
        "MESSAGE": f"{_BOUND}named by the message itself",
        "FAR_BROKER_INSTANCE": f"{_BOUND}far_broker_instance of the dialog",
        "ACKNOWLEDGEMENT": f"{_BOUND}acknowledgement of the dialog at %(at)s",
    },
    "ACKNOWLEDGEMENT": "the dialog was acknowledged by %(broker_instance)s only at %(at)s: not yet at this time",
    "DIALOG": "the dialog had expired at %(at)s: dropped before anything else",
    "SCOPE": {
        "SENT_HERE": "scope: the routes of %(database_name)s, since the message was sent from it",
        "ARRIVED": "scope: the routes of %(database_name)s, since the message arrived over the network",
        "CAME_BACK": "%(address)s is this instance: the routes of %(database_name)s are searched, as for an"
        " arriving message",
    },
    "REPLY": {
        "MATCHED": f"{_REPLY}yes, %(broker_instance)s is a database here; no routes are searched",
        "SENT_BY_INITIATOR": f"{_REPLY}no, sent by the initiator",
        "OPEN": f"{_REPLY}no, bound to no broker instance",
        "NOT_HERE": f"{_REPLY}no, no database here has the id %(broker_instance)s",
    },
    "BROKER": {
        "ENABLED": "the broker of %(database_name)s is on",
        "DISABLED": "the broker of %(database_name)s is off: its routes are not searched",
    },
    "STEP": _step,
    "ROUTE": _route,
    "OTHER_ROUTES": _other_routes,
    "ID": _id,
    "OTHER_IDS": lambda line: f"and {count(line['count'], 'more broker instance')}",
    "REQUEST": {"OPEN": f"{_ASKED}is still open", "ENDED": f"{_ASKED}ended at %(valid_to)s"},
    "REQUEST_PATH": _request_path,
    "REQUEST_HOP": _request_hop,
    "REQUEST_END": {
        Ending.DELIVERED: "it arrives in database %(database_name)s of %(instance_name)s",
        Ending.LEFT_ESTATE: "no known instance has the address %(address)s: the rest is not known",
        Ending.TOO_MANY_WAYS: "there are more paths than are shown",
        Ending.DELAYED: "on %(instance_name)s it waits",
        Ending.DROPPED: "on %(instance_name)s it is dropped",
        Ending.LOOP: "on %(instance_name)s it comes back, and circulates until its hops run out",
        Ending.NOT_KNOWN: "on %(instance_name)s the facts that decide its outcome are incomplete",
        "FORWARDING_NOT_KNOWN": "on %(instance_name)s it is dropped if forwarding is off, which is not known and"
        " assumed to be off",
    },
    "TIER": _tier,
    "LOCATION": _location,
    "DATABASE": _database,
    "FORWARDING": {
        "ON": "message forwarding is on",
        "OFF": "message forwarding is off: the message may not go on",
        "NOT_KNOWN": "message forwarding is not known, assumed to be off: the message may not go on",
    },
    "HOPS": _hops,
    "OWN_ADDRESS": {
        "LOOP": "%(address)s of route %(name)s is an address of this instance: a loop",
        "COMES_BACK": "%(address)s of route %(name)s is an address of this instance: the message comes back",
    },
    "OUTCOME": _outcome,
    "IMPORT": "databases, services and instance %(name)s were last imported as of %(at)s, after this time: their"
    " current state is used, because only routes have a history",
    "INSTANCE": {
        "ONLY_NAME": "only the name of instance %(name)s is known: not its databases, routes, addresses or"
        " forwarding",
        "ONLY_ROUTES": "only the name and routes of instance %(name)s are known: not its databases, addresses or"
        " forwarding",
    },
    "STATUS": _status,
}
