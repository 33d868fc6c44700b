"""Advise on the owner, the users and the master key by which a database takes messages."""

from __future__ import annotations

from dataclasses import replace

from routing.advice import server_remedies, statements
from routing.advice.broker_copies import MASTER
from routing.advice.connection_advice import say_at_target
from routing.advice.database_remedies import ANOTHER_OWNER, give_to_sa, open_database, open_key, own_database
from routing.advice.remedy import Confidence, Remedy, RemedyPlace, to_fill_in
from routing.advice.send_remedies import grant_send
from routing.advice.status_facts import ReportedStatus
from routing.advice.status_meanings import StatusTrouble
from routing.render.phrases import named

_OTHER_HOLDER = (
    "These exports do not show which database holds the service: if it is another one, change its owner too."
)
_NO_ACCOUNT, _NOT_FOUND = 15404, 15151
_DENIED, _DIFFERENT, _UNTRUSTED = 916, 33009, 15562
_OTHER_SID = (
    "The owner of the database in its own files is not the one in sys.databases (error 33009), as after a restore"
    " or an attach."
)
_WITHOUT_ACCESS = "The login in the text may not use the target's database (error 916)."
_NOT_THE_OWNER = "Windows does not know the account in the text, and by these exports it owns no database here."
_LIST_TRIGGERS = (
    "SELECT name, parent_class_desc, is_disabled FROM sys.triggers;",
    "SELECT name, parent_class_desc, is_disabled FROM sys.server_triggers;",
)
_FIND_ACCOUNT = (
    "Leave the owners of these databases unchanged: they are valid logins.",
    "Look for the account among the users that own the service, or that the queue's procedure runs as.",
)


def give_owner(status: ReportedStatus) -> Remedy:
    """Return ALTER AUTHORIZATION for the target's database, else for the sender's."""
    entry = status.entry
    actions: tuple[str, ...] = (ANOTHER_OWNER,)
    place = _find_lost_owner(status) or status.find_database_in_text() or status.find_target()
    is_denied = _DENIED in status.numbers
    trusted = server_remedies.trust_initiator(status, place, _DENIED) if is_denied else None
    if trusted is not None:
        return trusted
    cause = _OTHER_SID if _DIFFERENT in status.numbers else entry.cause
    if is_denied or _NO_ACCOUNT in status.numbers:
        candidates = (status.place,) if place is None else (place, status.place)
        place = next((owned for owned in candidates if not _is_owner_valid(status, owned)), None)
        if place is None:
            return Remedy(candidates[0], _WITHOUT_ACCESS if is_denied else _NOT_THE_OWNER, _FIND_ACCOUNT)
        cause = _WITHOUT_ACCESS if is_denied and place != candidates[0] else cause
    if is_denied:
        sender = status.server.database(status.instance, status.database)
        if sender is not None and sender.is_trustworthy is False:
            actions += (f"If the owners are valid logins, set TRUSTWORTHY for {named(status.database)} instead.",)
    if place is None or place.database is None:
        actions += (_OTHER_HOLDER,)
        place = status.place
    elif place != status.place and not _is_owner_valid(status, status.place):
        actions += (f"If the text stays, do the same for {named(status.database)}, which sends.",)
    return give_to_sa(status.server, place, cause, actions)


def mend_sender(status: ReportedStatus) -> Remedy:
    """Advise TRUSTWORTHY within one instance, or another owner of the target's database if it has lost its own."""
    place = status.find_target()
    if status.trouble is StatusTrouble.NOT_TRUSTED:
        return server_remedies.trust_initiator(status, place, _UNTRUSTED) or say_at_target(status)
    owned = None if place is None else own_database(status.server, place)
    return owned or _find_object(status) or say_at_target(status)


def _find_object(status: ReportedStatus) -> Remedy | None:
    """Advise on an object or user that SQL Server does not find when it enqueues a message, or return None."""
    if _NOT_FOUND not in status.numbers or not status.quoted_names:
        return None
    name = status.quoted_names[0]
    if name == status.service:
        return grant_send(replace(status, trouble=StatusTrouble.NO_PERMISSION))
    literal = statements.literal(name)
    cause = (
        f"SQL Server does not find {named(name)} when it enqueues the messages: it is gone, or the user of the"
        " dialog may not see it (error 15151)."
    )
    look = (
        None if literal is None else f"SELECT name, type_desc FROM sys.database_principals WHERE name = {literal};"
    )
    return to_fill_in(status.place_at_target(), cause, status.entry.actions, look, confidence=Confidence.LIKELY)


def open_named_database(status: ReportedStatus) -> Remedy:
    """Advise on the database that the text names: to open it by its export, or to look at its state."""
    place, name = status.place_at_target(), next(iter(status.quoted_names), None)
    opened = open_database(status.server, RemedyPlace(place.instance, name))
    if opened is not None:
        return opened
    literal = statements.literal(name)
    of_name = "" if literal is None else f" WHERE name = {literal}"
    look = f"SELECT name, state_desc, user_access_desc FROM sys.databases{of_name};"
    return _look(status, RemedyPlace(place.instance, MASTER), look)


def find_trigger(status: ReportedStatus) -> Remedy:
    """Advise to find the trigger that ended the transaction of a message."""
    return _look(status, status.place_at_target(), *_LIST_TRIGGERS)


def _look(status: ReportedStatus, place: RemedyPlace, *lines: str | None) -> Remedy:
    entry = status.entry
    return to_fill_in(place, entry.cause, entry.actions, *lines, risk=entry.risk, confidence=Confidence.LIKELY)


def _is_owner_valid(status: ReportedStatus, place: RemedyPlace) -> bool:
    facts, line = status.server.database(*place), status.case.status_text.text or ""
    is_unknown = facts is not None and _NO_ACCOUNT in status.numbers and facts.is_owner_in(line)
    return facts is not None and facts.has_valid_owner and not is_unknown


def _find_lost_owner(status: ReportedStatus) -> RemedyPlace | None:
    """Return the first database without an owner in the export: the one in the text, the target or the sender."""
    places = filter(None, (status.find_database_in_text(), status.find_target(), status.place))
    with_facts = ((place, status.server.database(*place)) for place in places)
    return next((place for place, facts in with_facts if facts is not None and facts.has_lost_owner), None)


def open_master_key(status: ReportedStatus) -> Remedy:
    """Advise on the master key of the sender, or of the database in which a message could not be enqueued."""
    target = status.find_target() if status.trouble is StatusTrouble.MASTER_KEY_CLOSED else None
    place = status.find_database_in_text() or target
    if place is None or place.database is None:
        place = status.place
    return open_key(status.server, place, status.entry)
