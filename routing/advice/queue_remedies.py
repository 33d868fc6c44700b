"""Remedies for queues that are off, or that nobody reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from routing.advice import statements
from routing.advice.database_remedies import ANOTHER_OWNER, give_to_sa, open_key, trust
from routing.advice.remedy import Confidence, Remedy, RemedyPlace, ready, to_fill_in
from routing.advice.send_remedies import DENIED, grant_denied
from routing.advice.service_remedies import is_of_event_notifications
from routing.advice.status_meanings import StatusTrouble
from routing.advice.trouble_catalogue import STATUSES
from routing.cases.server_evidence import ServerEvidence
from routing.cases.server_facts import QueueFacts
from routing.render.phrases import named, quote_log
from routing.render.wording import count
from routing.rules.text import collated
from routing.terms import MSDB

QUEUE_RISK = "If the cause still stands, the next poison message turns the queue off again."
"""The risk of a queue that is turned on again."""
_OF_MAIL = ("InternalMailQueue", "ExternalMailQueue")
_START_MAIL = "EXEC msdb.dbo.sysmail_start_sp;"
_NO_ACCOUNT, _NO_PRINCIPAL = (
    "Could not obtain information about Windows NT",
    "Cannot execute as the database principal",
)
_OWNER = '"dbo"'
_SYSTEM_LOGIN = re.compile(r"##MS_\w+##", re.ASCII)
_NO_ACCESS = ("is not able to access the database", "is not trusted", "assembly may not be trusted")
_OTHER_OWNER, _NO_KEY = "database owner SID recorded in the master", "or open the master key in the session"
_NO_USER, _NO_PROCEDURE = "Cannot execute as the user", "Could not find stored procedure"
_DROPPED = "DROPPED"
_ACTIVATED, _NOTIFIED, _INACTIVE, _RECEIVING = "activated proc", "NOTIFIED", "INACTIVE", "RECEIVES_OCCURRING"
_ACTIVATOR = "externalactivator"
_BY_NOTIFICATION = (
    "If an event notification of QUEUE_ACTIVATION starts its program, leave the activation off, and look at the"
    " program that receives the notifications."
)
_OTHER_DATABASE = (
    "A procedure that uses another database needs a signature with a certificate, or TRUSTWORTHY here."
)
MANY_MESSAGES = 100_000
"""So many messages in a queue that is read are worth a look."""


def name_queue(queue: QueueFacts) -> str | None:
    """Return a queue as an identifier to paste, or None if its name cannot be pasted."""
    schema, name = statements.identifier(queue.schema), statements.identifier(queue.name)
    return name if queue.schema is None or schema is None or name is None else f"{schema}.{name}"


def turn_on(server: ServerEvidence, target: RemedyPlace, queue: QueueFacts, service: str | None) -> Remedy | None:
    """Return ALTER QUEUE for a queue that was exported as off. ``service`` is None if it is not known."""
    if not queue.is_off:
        return None
    return ready(
        target,
        f"Queue {named(queue.name)}{'' if service is None else f' of service {named(service)}'} is off.",
        (
            "First find the cause in the program that receives from it: five rollbacks turn the queue off.",
            *(quote_log(target.instance, line) for line in find_failures(server, target, queue)[:1]),
            "Then turn the queue on.",
        ),
        _alter(queue, "STATUS = ON"),
        *start_mail(target, queue.name),
        risk=QUEUE_RISK,
        confidence=Confidence.LIKELY,
    )


def start_mail(place: RemedyPlace, queue: str) -> tuple[str, ...]:
    """Return the statement that starts Database Mail if the queue belongs to it, else none."""
    return (_START_MAIL,) if _is_of_mail(place, queue) else ()


def _is_of_mail(place: RemedyPlace, queue: str) -> bool:
    return place.database == MSDB and queue in _OF_MAIL


def _alter(queue: QueueFacts, options: str) -> str | None:
    pasted = name_queue(queue)
    return None if pasted is None else f"ALTER QUEUE {pasted} WITH {options};"


def read_queue(server: ServerEvidence, target: RemedyPlace, queue: QueueFacts) -> Remedy | None:
    """Return the remedy for a queue that holds messages and that nobody reads."""
    if queue.messages == 0 or queue.waiting:
        return None
    is_mail = _is_of_mail(target, queue.name)
    facts = server.database(*target)
    if (is_mail or queue.activation) and facts is not None and facts.is_broker_on is False:
        # The broker is a trouble of its own, and then no queue starts its procedure.
        return None
    if queue.messages and is_mail:
        return _start_mail(target, queue)
    holds = f"Queue {named(queue.name)} of {named(target.database)} holds"
    holds += " messages" if queue.messages is None else f" {count(queue.messages, 'message')}"
    if queue.activation and queue.is_activated is not False:
        if queue.messages is None and not find_failures(server, target, queue):
            return None
        return _mend_activation(server, target, queue, holds)
    if queue.messages is None:
        return None
    outside = _start_activator(server, target, queue, holds)
    if outside is not None:
        return outside
    missing_reader = "no procedure is started for it" if queue.waiting is None else "no program waits for them"
    cause = f"{holds}, and {missing_reader}."
    if queue.activation:
        action = f"Turn the activation of {named(queue.activation)} on."
        line = _alter(queue, "ACTIVATION (STATUS = ON)")
        return ready(target, cause, (action,), line, confidence=Confidence.LIKELY)
    starts = any(
        counted[:2] == target and is_of_event_notifications(counted.far_service) for counted in server.counts
    )
    actions = (
        *((_BY_NOTIFICATION,) if starts else ()),
        "Start the program that receives from the queue, or let the queue start a procedure.",
        "Do not delete messages: their senders wait for an answer.",
    )
    started = "ACTIVATION (STATUS = ON, PROCEDURE_NAME = <procedure>, MAX_QUEUE_READERS = 1, EXECUTE AS OWNER)"
    return to_fill_in(target, cause, actions, _alter(queue, started), confidence=Confidence.LIKELY)


def _start_activator(server: ServerEvidence, target: RemedyPlace, queue: QueueFacts, holds: str) -> Remedy | None:
    """Advise on a queue if the External Activator starts its readers, by event notifications."""
    queues = (other for unit, other in server.list_queues() if unit == target)
    watched = [name for other in queues for name in (other.name, *other.services) if _ACTIVATOR in collated(name)]
    if not watched:
        return None
    is_own = any(_ACTIVATOR in collated(name) for name in (queue.name, *queue.services))
    reader = "its program does not read them" if is_own else "the program that it should start does not read them"
    cause = f"{holds}. {named(watched[0])} belongs to the External Activator of Service Broker, and {reader}."
    actions = (
        "Check that its Windows service runs, and read its EATrace.log.",
        "Check that its configuration file names this queue and a program that exists.",
        "Leave the activation of the queue off: a queue has one kind of activation.",
    )
    look = "SELECT name, service_name, OBJECT_NAME(parent_id) FROM sys.event_notifications;"
    return to_fill_in(target, cause, actions, look, confidence=Confidence.LIKELY)


def _start_mail(target: RemedyPlace, queue: QueueFacts) -> Remedy:
    cause = (
        f"Queue {named(queue.name)} of {named(target.database)} holds {count(queue.messages or 0, 'message')}, and"
        " Database Mail does not take them."
    )
    actions = (
        "Read why in msdb.dbo.sysmail_event_log: Database Mail may be stopped, or its program cannot start.",
        "Then start it.",
    )
    return ready(target, cause, actions, _START_MAIL, confidence=Confidence.LIKELY)


def _mend_activation(server: ServerEvidence, target: RemedyPlace, queue: QueueFacts, holds: str) -> Remedy | None:
    """Return the remedy for a queue if its activation is on, but starts nothing that receives."""
    procedure = named(queue.activation)
    if queue.max_readers == 0:
        cause = f"{holds}, and its activation may start no reader: MAX_QUEUE_READERS is 0."
        action = f"Let the queue start at least one reader of {procedure}."
        line = _alter(queue, "ACTIVATION (MAX_QUEUE_READERS = 1)")
        return ready(target, cause, (action,), line, confidence=Confidence.CERTAIN)
    lines = find_failures(server, target, queue)
    if lines:
        acting = _mend_context(server, target, queue, lines[0])
        if acting is not None:
            return acting
    if not lines and queue.waiting is not None and queue.monitor in (None, _DROPPED):
        why = f"{holds}, its activation is on, and no queue monitor watches it to start {procedure}."
        action = "Turn the activation off and on, which makes a new queue monitor."
        switch = (_alter(queue, f"ACTIVATION (STATUS = {state})") for state in ("OFF", "ON"))
        return ready(target, why, (action,), *switch, confidence=Confidence.LIKELY)
    is_idle = queue.monitor is not None and queue.monitor.upper() == _NOTIFIED
    if not lines and not is_idle:
        return None
    runs_as = "" if queue.runs_as is None else f", which runs as {named(queue.runs_as)}"
    if lines:
        cause = f"{holds}, and procedure {procedure} fails when the queue starts it."
        actions = (
            quote_log(target.instance, lines[0]),
            *(
                (f"Give {procedure}{runs_as} the permission that is missing.", _OTHER_DATABASE)
                if any(words in lines[0] for words in ("permission", "denied"))
                else (f"Correct the code of {procedure}{runs_as}, or what it uses: the line says why it fails.",)
            ),
        )
    else:
        cause = f"{holds}; the queue has started procedure {procedure}, and the procedure receives nothing."
        actions = (
            f"Look for messages of the activated procedure in the error log of {named(target.instance)}.",
            f"Check that {procedure}{runs_as} may execute, and that it receives from this very queue.",
            "Check that the owner of the database is a valid login.",
        )
    look = "SELECT * FROM sys.dm_broker_activated_tasks WHERE database_id = DB_ID();"
    grant = grant_denied(target, queue.runs_as, lines[0] if lines else "")
    statement_lines = (look,) if grant is None else (look, grant)
    return to_fill_in(target, cause, actions, *statement_lines, confidence=Confidence.LIKELY)


def _mend_context(server: ServerEvidence, target: RemedyPlace, queue: QueueFacts, line: str) -> Remedy | None:
    """Return the remedy for a procedure without a valid user, or that may not leave its database."""
    facts = server.database(*target)
    cause = (
        f"Queue {named(queue.name)} of {named(target.database)} starts procedure {named(queue.activation)}, and"
    )
    logged = quote_log(target.instance, line)
    is_of_user = _NO_USER in line or (_NO_PRINCIPAL in line and _OWNER not in line)
    has_owner = facts is not None and facts.has_valid_owner and _OWNER not in line and not facts.is_owner_in(line)
    if _OTHER_OWNER in line:
        why = f"{cause} the owner of the database in its own files is not the one in sys.databases."
        return give_to_sa(server, target, why, (logged, ANOTHER_OWNER))
    if _NO_KEY in line:
        opened = open_key(server, target, STATUSES[StatusTrouble.MASTER_KEY_CLOSED])
        return replace(opened, actions=(logged, *opened.actions))
    if not is_of_user and not has_owner and any(words in line for words in (_NO_ACCOUNT, _NO_PRINCIPAL)):
        why = f"{cause} SQL Server cannot run it as its user: the database's owner may be no valid login."
        return give_to_sa(server, target, why, (logged, ANOTHER_OWNER))
    system_login = _SYSTEM_LOGIN.search(line)
    if is_of_user and system_login is not None:
        name = system_login[0]
        why = f"{cause} {name}, a login of SQL Server's own, or its user is missing."
        action = (
            "Create the login again if it is missing, with a random password, and disable it. Then map the user."
        )
        user = f"ALTER USER [{name}] WITH LOGIN = [{name}];"
        return to_fill_in(target, why, (logged, action), user, confidence=Confidence.LIKELY)
    if is_of_user or _NO_ACCOUNT in line or _NO_PROCEDURE in line:
        why = f"{cause} SQL Server does not find the user or the procedure that it needs."
        action = "Create what is missing again, or let the queue start another procedure as another user."
        started = "PROCEDURE_NAME = <procedure>, " if _NO_PROCEDURE in line else ""
        change = _alter(queue, f"ACTIVATION ({started}EXECUTE AS OWNER)")
        return to_fill_in(target, why, (logged, action), change, confidence=Confidence.LIKELY)
    denied = DENIED.search(line)
    is_elsewhere = denied is not None and collated(denied["database"]) != collated(target.database or "")
    if (is_elsewhere or any(words in line for words in _NO_ACCESS)) and (
        facts is None or not facts.is_trustworthy
    ):
        choices = (
            logged,
            "Sign the procedure, or its assembly, with a certificate that has a login with the permission.",
            "Or set TRUSTWORTHY again: a restore or an attach turns it off.",
        )
        return trust(target, f"{cause} the procedure may not leave its database.", choices)
    return None


def find_failures(server: ServerEvidence, target: RemedyPlace, queue: QueueFacts) -> Sequence[str]:
    """Return the lines of the error log on failures of the procedure that a queue starts."""
    names = (f".{queue.name}'", f"'{queue.name}'", f".{queue.name}]")
    return [line for line in server.log_lines(target.instance, _ACTIVATED) if any(name in line for name in names)]


def unlock_queue(target: RemedyPlace, queue: QueueFacts) -> Remedy | None:
    """Return the remedy for messages that stay in a queue although programs wait for one, or read it."""
    if not queue.messages:
        return None
    holds = f"Queue {named(queue.name)} of {named(target.database)} holds {count(queue.messages, 'message')}"
    is_watched = queue.monitor is not None and queue.monitor.upper() == _INACTIVE
    if not queue.waiting and not is_watched:
        return _add_readers(target, queue, holds)
    if queue.keeps_messages:
        cause = f"{holds}, because RETENTION is on: each stays until its conversation ends."
        actions = ("Let both sides end their conversations.", "Turn the retention off if no program needs it.")
        line = _alter(queue, "RETENTION = OFF")
        return to_fill_in(target, cause, actions, line, confidence=Confidence.LIKELY)
    reader = (
        f"{count(queue.waiting, 'program')} wait for one" if queue.waiting else "its monitor sees none (INACTIVE)"
    )
    cause = f"{holds} while {reader}: something locks these."
    actions = (
        "An open transaction locks the conversation groups of messages that it received or sent: look for one.",
        "Or the programs wait for other conversations, by RECEIVE … WHERE conversation_handle = ….",
    )
    look = "SELECT session_id, open_transaction_count, program_name FROM sys.dm_exec_sessions"
    return to_fill_in(target, cause, actions, f"{look} WHERE open_transaction_count > 0;")


def _add_readers(target: RemedyPlace, queue: QueueFacts, holds: str) -> Remedy | None:
    is_read = queue.monitor is not None and queue.monitor.upper() == _RECEIVING
    if not is_read or not queue.activation or (queue.messages or 0) < MANY_MESSAGES:
        return None
    readers = "" if queue.max_readers is None else f" with at most {count(queue.max_readers, 'reader')}"
    cause = f"{holds}, and procedure {named(queue.activation)} reads them{readers}: it may not keep up."
    actions = (
        "Export again some minutes later, and compare the number of messages.",
        "Look whether other sessions block the procedure, and let it RECEIVE many messages at a time.",
        "More readers only help if the messages are of many conversation groups.",
    )
    line = _alter(queue, "ACTIVATION (MAX_QUEUE_READERS = <number>)")
    return to_fill_in(target, cause, actions, line)
