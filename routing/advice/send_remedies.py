"""Advise on SEND: who sends in the target's database, and who may send to its service."""

from __future__ import annotations

import re

from routing.advice import statements
from routing.advice.remedy import Confidence, Remedy, RemedyPlace, ready, to_fill_in
from routing.advice.status_facts import ReportedStatus
from routing.advice.trouble_catalogue import STATUSES
from routing.cases.server_evidence import ServerEvidence
from routing.render.phrases import join_words, named

EVERYBODY = "public"
"""The role that sends for dialogs without a user."""
_SEND_RISK = "A grant to public lets every sender that can connect send to the service."
_OWNER = "dbo"
_NO_SEND, _NOBODY = 11215, "0"
_NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?![\w.])", re.ASCII)
_FOR_PUBLIC = (
    "Grant SEND on the service to public in the target's database, if anybody who can connect may send.",
    "Or bind a user with a certificate to the service, and grant SEND to that user.",
)


def grant_missing_send(
    server: ServerEvidence, sender: RemedyPlace, target: RemedyPlace, service: str, from_service: str | None
) -> Remedy | None:
    """Advise GRANT SEND if dialogs of another instance have no user in the target's database that may send."""
    grants = server.send_grants(target.instance, target.database or "", service)
    if grants is None or target.instance == sender.instance:
        return None
    senders = [grant.grantee for grant in grants if grant.is_granted]
    denied = _revoke_denial(target, service, [grant.grantee for grant in grants if not grant.is_granted])
    if denied is not None or EVERYBODY in senders:
        return denied
    is_bound = server.has_binding(sender.instance, sender.database or "", service)
    user, why = _find_user(server, sender, target, from_service)
    pasted = statements.identifier(service)
    if is_bound is not False and user is not None:
        return None if user in senders else _grant_to(target, service, pasted, user, why, senders)
    if is_bound is True:
        return None if senders else _grant_to_somebody(target, service, pasted)
    granted = join_words(map(named, senders)) if senders else "nobody"
    cause = (
        f"A dialog without a remote service binding, or with an anonymous one, sends as public, and"
        f" {granted} may send to service {named(service)}: the target throws the messages away."
    )
    line = _grant(pasted, f"[{EVERYBODY}]")
    return ready(target, cause, _FOR_PUBLIC, line, risk=_SEND_RISK, confidence=Confidence.LIKELY)


def grant_send(status: ReportedStatus) -> Remedy:
    """Return GRANT SEND in the target's database, to the user of the dialogs or to one that somebody chooses."""
    target, sender = status.find_target(), RemedyPlace(status.instance, status.database)
    if target is not None and target.database is not None:
        missing = grant_missing_send(status.server, sender, target, status.service, status.from_service)
        if missing is not None:
            return missing
    service, entry = statements.identifier(status.service), STATUSES[status.trouble]
    place = status.place_at_target()
    if _sends_as_nobody(status):
        cause = "The dialog has no user in the target's database: it sends as public, which lacks SEND."
        line = _grant(service, f"[{EVERYBODY}]")
        build = to_fill_in if status.find_target() is None else ready
        return build(place, cause, _FOR_PUBLIC, line, risk=entry.risk, confidence=Confidence.LIKELY)
    lines = [_grant(service, user) for user in ("[<user>]", f"[{EVERYBODY}]")]
    return to_fill_in(place, entry.cause, entry.actions, *lines, risk=entry.risk)


def _grant(service: str | None, user: str | None) -> str | None:
    """Write GRANT SEND for names to paste, or return None if one cannot be pasted."""
    return None if service is None or user is None else f"GRANT SEND ON SERVICE::{service} TO {user};"


def _sends_as_nobody(status: ReportedStatus) -> bool:
    """Return True if the text of error 11215 names user id 0: the ids of a user and of a database come first."""
    if status.status_text.number != _NO_SEND:
        return False
    return _NOBODY in _NUMBER.findall(status.status_text.text or "")[:2]


def list_senders(server: ServerEvidence, target: RemedyPlace, service: str) -> str | None:
    """Return a sentence on the users that may send to a service, or None if they are unknown or everybody."""
    grants = server.send_grants(target.instance, target.database or "", service) or ()
    senders = [grant.grantee for grant in grants if grant.is_granted]
    if not senders or EVERYBODY in senders:
        return None
    return (
        f"SEND on {named(service)} is granted to {join_words(map(named, senders))}: check that this user owns the"
        f" copy of the sender's certificate in {named(target.database)}."
    )


def _revoke_denial(target: RemedyPlace, service: str, denied: list[str]) -> Remedy | None:
    """Advise REVOKE for a denial of SEND to everybody, or return None without one."""
    if EVERYBODY not in denied:
        return None
    cause = (
        f"SEND on service {named(service)} of {named(target.database)} is denied to {named(EVERYBODY)}, and a"
        " denial beats every grant."
    )
    pasted = statements.identifier(service)
    line = None if pasted is None else f"REVOKE SEND ON SERVICE::{pasted} FROM [{EVERYBODY}];"
    actions = ("Take the denial back, and grant SEND to the users that may send.",)
    return ready(target, cause, actions, line, confidence=Confidence.LIKELY)


def _find_user(
    server: ServerEvidence, sender: RemedyPlace, target: RemedyPlace, from_service: str | None
) -> tuple[str | None, str]:
    """Return the user as which dialogs of a database act in the target's database, and the fact that shows it."""
    place = target.instance, target.database or ""
    own_certificates = [
        certificate
        for certificate in server.certificates(sender.instance, sender.database or "")
        if certificate.has_private_key and certificate.subject is not None
    ]
    owners = {
        copy.user_name: copy.name
        for copy in server.certificates(*place)
        if not copy.has_private_key and any(copy.is_copy_of(certificate) for certificate in own_certificates)
    }
    if len(owners) == 1:
        [(owner, name)] = owners.items()
        user = None if owner == _OWNER else owner
        return user, f"which owns {named(name)}, the copy of the sender's certificate"
    bound_user = None if owners or from_service is None else server.bound_user(*place, from_service)
    return bound_user, f"to which the binding of {named(from_service)} leads"


def _grant_to(
    target: RemedyPlace, service: str, pasted: str | None, user: str, why: str, senders: list[str]
) -> Remedy:
    """Advise GRANT SEND to the user of the dialogs, while nobody or another one has it."""
    granted = f"only {join_words(map(named, senders))} has SEND" if senders else "nobody has SEND"
    cause = (
        f"The dialogs send as user {named(user)} of {named(target.database)}, {why}, but {granted} on service"
        f" {named(service)}: the target throws the messages away."
    )
    line = _grant(pasted, statements.identifier(user))
    actions = [f"Grant SEND on the service to {named(user)}."]
    if senders:
        actions.append(f"If {named(user)} is a member of a role that has SEND, the cause is another one.")
    return ready(target, cause, tuple(actions), line, confidence=Confidence.LIKELY)


def _grant_to_somebody(target: RemedyPlace, service: str, pasted: str | None) -> Remedy:
    """Advise GRANT SEND to the user of the sender's certificate, if nobody has it."""
    cause = (
        f"Nobody may send to service {named(service)} of {named(target.database)}: the target throws the"
        " messages away."
    )
    action = f"Grant SEND to the user of {named(target.database)} that owns the certificate of the sender."
    line = _grant(pasted, "[<user>]")
    return to_fill_in(target, cause, (action,), line, confidence=Confidence.LIKELY)
