"""Advise on messages that the target refuses for their contract, their type or their XML."""

from __future__ import annotations

from routing.advice import statements
from routing.advice.remedy import Confidence, Remedy, ready, to_fill_in
from routing.advice.status_facts import ReportedStatus
from routing.render.phrases import named

_NOT_TAKEN, _NO_CONTRACT, _NO_TYPE = (8408, 8409), (8425, 11214), (8428, 11225)
_OF_MEMBERS = (8437, 8457, 8498, 11226, 11227, 11228)
_NO_XML = (8430, 9616, 9704)
_DEFAULT = "DEFAULT"
_LOOK = (
    "SELECT c.name, m.name, u.is_sent_by_initiator, u.is_sent_by_target, m.validation_desc"
    " FROM sys.service_contract_message_usages AS u"
    " JOIN sys.service_contracts AS c ON c.service_contract_id = u.service_contract_id"
    " JOIN sys.service_message_types AS m ON m.message_type_id = u.message_type_id;"
)
_ENDED = "A dialog that has ended with this error stays ended: send its messages again in a new one."


def take_contract(status: ReportedStatus) -> Remedy:
    """Advise ALTER SERVICE, with CREATE for the contract or message type that the text calls missing."""
    numbers, place, name = status.numbers, status.place_at_target(), _find_name(status)
    compare = (
        "These exports have no contracts and message types: run the query here and in"
        f" {named(status.database)} of {named(status.instance)}, and compare."
    )
    service, pasted = statements.identifier(status.service), _paste(name, "[<contract>]")
    add = None if service is None or pasted is None else f"ALTER SERVICE {service} (ADD CONTRACT {pasted});"
    if not numbers.isdisjoint(_NOT_TAKEN) and name is not None:
        cause = f"Service {named(status.service)} does not take contract {named(name)}."
        take = "Let the service take the contract."
        if name == _DEFAULT:
            take = "BEGIN DIALOG without ON CONTRACT takes [DEFAULT]: name a contract of the service there."
            too = "Or let the service take [DEFAULT] too."
            return to_fill_in(place, cause, (take, too, _ENDED), add, confidence=Confidence.LIKELY)
        build = ready if place == status.find_target() else to_fill_in
        return build(place, cause, (take, _ENDED), add, confidence=Confidence.LIKELY)
    lines = [add]
    if not numbers.isdisjoint(_NO_CONTRACT):
        create = f"CREATE CONTRACT {pasted} ([<message type>] SENT BY <side>);"
        lines = [None if pasted is None else create, add]
    elif not numbers.isdisjoint(_NO_TYPE):
        pasted = _paste(name, "[<message type>]")
        lines = [None if pasted is None else f"CREATE MESSAGE TYPE {pasted} VALIDATION = <validation>;"]
    elif not numbers.isdisjoint(_OF_MEMBERS):
        # The service takes the contract, whose message types differ. The text names one of these.
        lines = []
    actions = (*status.entry.actions, compare, _ENDED)
    return to_fill_in(place, status.entry.cause, actions, _LOOK, *lines, confidence=Confidence.LIKELY)


def correct_body(status: ReportedStatus) -> Remedy:
    """Advise on a body that is not the XML of its message type, or on a message refused for its dialog."""
    entry, place = status.entry, status.place_at_target()
    if status.numbers.isdisjoint(_NO_XML):
        return Remedy(place, entry.cause, entry.actions, confidence=Confidence.LIKELY)
    name = _find_name(status)
    pasted = _paste(name, "[<message type>]")
    which = "its message type" if name is None else f"message type {named(name)}"
    cause = f"The body of a message is not the XML that {which} requires."
    actions = (
        "Correct the program that sends: the text says what is wrong with the body.",
        "Or change the validation of the message type, on both sides.",
        _ENDED,
    )
    look = "SELECT name, validation_desc, xml_collection_id FROM sys.service_message_types;"
    alter = None if pasted is None else f"ALTER MESSAGE TYPE {pasted} VALIDATION = <validation>;"
    risk = "A weaker validation lets programs receive bodies that they may not expect."
    return to_fill_in(place, cause, actions, look, alter, risk=risk, confidence=Confidence.LIKELY)


def _find_name(status: ReportedStatus) -> str | None:
    """Return the name in the text that is not the service's, or None."""
    return next((name for name in status.quoted_names if name != status.service), None)


def _paste(name: str | None, unknown: str) -> str | None:
    return unknown if name is None else statements.identifier(name)
