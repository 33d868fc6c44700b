"""Advise on errors of Service Broker in the error log, which no waiting message shows."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from routing.advice.database_remedies import ANOTHER_OWNER, give_to_sa
from routing.advice.handshake_remedies import AGREE_ON_AES, ALGORITHM
from routing.advice.remedy import Confidence, EstateTrouble, Remedy, RemedyPlace, TroubleKind
from routing.advice.send_remedies import grant_on_object
from routing.advice.status_meanings import PASSING_TROUBLES, StatusTrouble, find_trouble
from routing.advice.trouble_catalogue import STATUSES
from routing.cases.server_evidence import ServerEvidence
from routing.groups import group_pairs
from routing.importing.catalog.conversation_rows import error_number
from routing.render.phrases import join_words, named, quote_log

_CONNECTION_ERROR = re.compile(
    r"transport connection endpoint, Error: (\d{1,6}), State: \d{1,6}\."
    r"(?:[^']{0,80}far endpoint address: '([^']{0,300})')?",
    re.IGNORECASE,
)
_HEADER = re.compile(r"^Error: (\d{1,6}), Severity: \d{1,3}, State: \d{1,6}", re.ASCII)
_LOGIN_FAILED = "Service Broker login attempt failed with error: '"
_STRANGER = (
    "If the times are those of a port scan or of a monitoring tool, exclude the port from it. No message is lost.",
    "Otherwise find the program that connects to the port, such as a route of another server with a wrong port.",
)
_BROKEN = (
    "Compare the times with restarts of the other side and with the network: SQL Server connects again by itself.",
    "If the lines go on, check the firewall, and that both endpoints agree on authentication and encryption.",
)
_BOTH_KINDS = "Endpoints of database mirroring and availability groups write the same text: compare the port."
_NO_ACCOUNT = "15404"
_LOGGED = "error {} in the error log"
_READ_AROUND = "Read the error log around these lines: another error beside each one is the cause."
_SHOWN, _SHOWN_ADDRESSES = 3, 30
# The errors of the broker's own tasks, which stop messages of a database or of the instance.
_STARTING: Mapping[int, str] = {
    9643: "its transport fails",
    9644: "its dispatcher fails",
    9645: "its manager fails",
    9650: "Windows refuses it an operation with keys",
    9694: "its manager cannot start",
    9695: "its task manager cannot start",
    9696: "its event handler cannot start",
    9697: "it cannot start for a database",
    9698: "its security manager cannot start",
    9701: "it cannot start for a database",
}
_OF_DIALOGS = (StatusTrouble.CONTRACT_NOT_TAKEN, StatusTrouble.MESSAGE_REFUSED, StatusTrouble.SERVICE_GONE)
_OF_TARGET = (
    *(StatusTrouble.OWNER_NOT_VALID, StatusTrouble.USER_NOT_VALID, StatusTrouble.MASTER_KEY_CLOSED),
    *(StatusTrouble.TARGET_EXCEPTION, StatusTrouble.TRANSMITTER_FAILED, StatusTrouble.SYSTEM_FAILED),
)


def find_logged_errors(server: ServerEvidence) -> Iterator[EstateTrouble]:
    """Yield the failed connections, logins and starts, and the refused messages, that the error logs name."""
    for instance in server.logging_instances:
        yield from _find_connection_errors(server, instance)
        yield from _find_failed_logins(server, instance)
        yield from _find_numbered(server, instance)


def _find_connection_errors(server: ServerEvidence, instance: str) -> Iterator[EstateTrouble]:
    """Yield error 9642 by the error that it names: connections that broke, or that no broker made."""
    lines: dict[tuple[str, bool], list[str]] = defaultdict(list)
    addresses: dict[tuple[str, bool], dict[str, None]] = defaultdict(dict)
    for line in server.log_lines(instance, "transport connection endpoint"):
        match = _CONNECTION_ERROR.search(line)
        if match is None:
            continue
        key = match[1], bool(match[2])
        lines[key].append(line)
        addresses[key] |= {match[2]: None} if match[2] else {}
    for (number, has_address), those in lines.items():
        far = join_words(map(named, addresses[number, has_address]), _SHOWN)
        if has_address:
            cause = f"Connections between the endpoint of {named(instance)} and {far} break (error {number})."
        else:
            cause = (
                f"A connection to an endpoint of {named(instance)} breaks before its far end is known (error"
                f" {number}): often a program connects that is not SQL Server."
            )
        actions = (quote_log(instance, those[0]), *(_BROKEN if has_address else _STRANGER), _BOTH_KINDS)
        yield _error(instance, f"error 9642 with {number} in the error log", those, cause, actions)


def _find_failed_logins(server: ServerEvidence, instance: str) -> Iterator[EstateTrouble]:
    """Yield the logins that fail for another cause than CONNECT, by their trouble."""
    by_trouble: dict[StatusTrouble, list[str]] = defaultdict(list)
    for line in server.log_lines(instance, _LOGIN_FAILED):
        inner = line.partition(_LOGIN_FAILED)[2]
        number = error_number(inner)
        trouble = StatusTrouble.HANDSHAKE_FAILED if number is None else find_trouble(number, inner)
        if trouble is not None and trouble is not StatusTrouble.NO_CONNECT:
            by_trouble[trouble].append(line)
    for trouble, lines in by_trouble.items():
        entry = STATUSES[trouble]
        is_of_encryption = any(ALGORITHM in line.lower() for line in lines)
        words = AGREE_ON_AES if is_of_encryption else (entry.cause, *entry.actions)
        actions = (quote_log(instance, lines[0]), *words)
        cause = f"The endpoint of {named(instance)} refuses connections, by its error log."
        yield _error(instance, f"{named(instance)} refuses logins", lines, cause, actions, entry.risk)


def _find_numbered(server: ServerEvidence, instance: str) -> Iterator[EstateTrouble]:
    """Yield the errors by which Service Broker does not start, ends dialogs, or cannot enqueue messages."""
    headed = server.log_lines(instance, "Error: ")
    numbered = ((int(header[1]), line) for line in headed if (header := _HEADER.match(line)))
    by_number = group_pairs(numbered)
    for number, those in by_number.items():
        if number in _STARTING:
            cause = f"Service Broker of {named(instance)} reports error {number}: {_STARTING[number]}."
            actions = (quote_log(instance, those[0]), _READ_AROUND)
            yield _error(instance, _LOGGED.format(number), those, cause, actions)
    reported = {number for number in by_number if find_trouble(number, "?") in (*_OF_DIALOGS, *_OF_TARGET)}
    if not reported:
        return
    # The text stands in a row after that of the number.
    rows = [line for line in server.log_lines(instance, "") if _HEADER.fullmatch(line.strip(" .")) is None]
    # An error log may have the same text thousands of times.
    numbers = {line: error_number(line) for line in dict.fromkeys(rows)}
    texts = group_pairs((numbers[line], line) for line in rows if numbers[line] in reported)
    for number in reported:
        lines = texts.get(number, by_number[number])
        owned = {line: _find_owned(server, instance, line) for line in dict.fromkeys(lines)}
        troubles = (((find_trouble(number, line), owned[line]), line) for line in lines)
        for (trouble, database), alike in group_pairs(troubles).items():
            if trouble is not None and trouble not in PASSING_TROUBLES:
                yield _report_number(server, RemedyPlace(instance, database), number, trouble, alike)


def _find_owned(server: ServerEvidence, instance: str, line: str) -> str | None:
    """Return the database that a line names, or whose owner it names, or the only one that has lost its own."""
    databases = [facts for (name, _), facts in server.databases.items() if name == instance]
    # Another error may name a login too, such as that of sa.
    is_of_account = _NO_ACCOUNT in line
    shown = [
        facts for facts in databases if f"'{facts.name}'" in line or (is_of_account and facts.is_owner_in(line))
    ]
    candidates = shown or [facts for facts in databases if facts.has_lost_owner and not is_of_account]
    return candidates[0].name if len(candidates) == 1 else None


def _report_number(
    server: ServerEvidence, place: RemedyPlace, number: int, trouble: StatusTrouble, lines: Sequence[str]
) -> EstateTrouble:
    entry, quoted = STATUSES[trouble], quote_log(place.instance, lines[0])
    summary = _LOGGED.format(number)
    kind = TroubleKind.DIALOGS_IN_ERROR if trouble in _OF_DIALOGS else TroubleKind.TRANSPORT_FAILS
    remedy = grant_on_object(place, None, lines[0]) if trouble is StatusTrouble.NO_PERMISSION else None
    if trouble is StatusTrouble.OWNER_NOT_VALID and place.database is not None:
        remedy = give_to_sa(server, place, entry.cause, (ANOTHER_OWNER,))
    if remedy is not None:
        remedy = replace(remedy, actions=(quoted, *remedy.actions))
        return EstateTrouble(kind, summary, len(lines), remedy, frozenset(lines))
    cause = f"Service Broker of {named(place.instance)} reports: {entry.cause}"
    return _error(place.instance, summary, lines, cause, (quoted, *entry.actions), entry.risk, kind)


def _error(
    instance: str,
    summary: str,
    lines: Sequence[str],
    cause: str,
    actions: tuple[str, ...],
    risk: str | None = None,
    kind: TroubleKind = TroubleKind.TRANSPORT_FAILS,
) -> EstateTrouble:
    remedy = Remedy(RemedyPlace(instance), cause, actions, risk=risk, confidence=Confidence.TO_BE_CHECKED)
    return EstateTrouble(kind, summary, len(lines), remedy, frozenset(lines))


def look_for_one_cause(instance: str, addresses: Sequence[str], error: str) -> Remedy:
    """Advise on connections of an instance that fail at many addresses with one error: they have one cause."""
    cause = (
        f"The connections of {named(instance)} to {len(addresses)} addresses fail with the same error, {error}."
    )
    actions = (
        f"Look for one cause on {named(instance)} first: its firewall, its DNS, its certificate or its account.",
        f"Then look at the others: {join_words(map(named, addresses), _SHOWN_ADDRESSES)}.",
    )
    return Remedy(RemedyPlace(instance), cause, actions, confidence=Confidence.TO_BE_CHECKED)
