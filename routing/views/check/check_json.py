"""Write a check as one JSON object for programs. See docs/reference/json.md for its keys."""

from __future__ import annotations

from datetime import datetime

from routing.advice.trouble_catalogue import error_number
from routing.cases.background import StatusText
from routing.cases.evidence import FileEvidence, ScriptRead, views_read
from routing.cases.known_estate import EstateKnowledge, KnowledgeGap, gaps_on
from routing.cases.message_cases import MessageResult
from routing.cases.near_misses import NearMiss
from routing.importing.catalog.cell_values import UnknownTime
from routing.lint.lint_estate import LintFinding
from routing.render.wording import format_time
from routing.rules.following import HOP_COLUMNS, PathHop
from routing.rules.judging import JudgedPath, PossiblePath
from routing.rules.observed import NumberAgreement
from routing.rules.path_changes import BACK, THERE
from routing.rules.timeline import moment_of
from routing.terms import JsonObject, ReadRow
from routing.views.check.checking import Check, find_notes, severity_of
from routing.views.check.grouping import MessageGroup
from routing.views.check.problem_evidence import VIEWS_OF_AN_INSTANCE
from routing.views.check.trial import Change
from routing.views.path_words import end_values


def as_object(done: Check) -> JsonObject:
    """Convert a check to JSON values: times in ISO 8601, lists in the order in which they are printed.

    With scripts to try, all but ``read``, ``notes`` and ``then`` is the state with these in force.
    """
    shown = done.described
    return {
        "read": _read(done.evidence),
        "notes": find_notes(done),
        "not_known": [gap_object(gap) for gap in shown.gaps],
        "refused": [refusal._asdict() for refusal in shown.evidence.server.list_refusals()],
        "decided_at": {name: format_time(moment_of(time)) for name, time in sorted(shown.estate.times.items())},
        "refused_messages": done.evidence.log.refused_messages,
        "unread_queues": list(done.evidence.log.unread_queues),
        "messages": len(shown.results),
        "outcomes": dict(shown.outcomes),
        "ends": dict(shown.ends),
        "groups": [_group(message_group, shown) for message_group in shown.groups],
        "troubles": [trouble.as_object() for trouble in shown.troubles],
        "findings": [_finding(finding) for finding in shown.findings],
        "other_findings": dict(shown.other_findings),
        "then": _trial(done),
    }


def _read(evidence: FileEvidence) -> JsonObject:
    return {
        "views": [
            {
                "view": view_read.view,
                "instance_name": view_read.instance,
                "databases": view_read.databases,
                "rows": view_read.rows,
                "exported_at": format_time(view_read.newest),
            }
            for view_read in views_read(evidence)
        ],
        "rows": {
            view: {
                "rows": rows,
                "rejected": evidence.log.rows_rejected.get(view, 0),
                "left_out": evidence.log.rows_left_out.get(view, 0),
            }
            for view, rows in evidence.log.rows_read.items()
        },
        "scripts": [_script(script) for script in evidence.log.scripts],
        "left_out": list(evidence.log.left_out),
        "rejected": list(evidence.log.rejected),
    }


def _script(script: ScriptRead) -> JsonObject:
    counts = {"statements": script.statements, "left_out": script.left_out, "rejected": script.rejected}
    return {"file": script.file, "instance_name": script.instance, **counts}


def gap_object(gap: KnowledgeGap) -> JsonObject:
    """Convert a gap to JSON values, with the view to export."""
    return {
        "instance_name": gap.instance,
        "database_name": gap.database,
        "code": gap.missing.name,
        "message": gap.missing.words,
        "view": gap.missing.view,
    }


def _group(message_group: MessageGroup, done: Check) -> JsonObject:
    case, verdict, brokers = message_group.case, message_group.verdict, message_group.brokers
    reason = None if verdict is None else str(verdict.reason)
    return {
        "outcome": case.outcome,
        "reason": reason,
        "error_number": error_number(reason, case.scope),
        "end": case.end,
        "instance_name": case.instance,
        "database_name": case.database,
        "to_service_name": case.service,
        "count": len(message_group.results),
        "oldest": _time(message_group.oldest),
        "matching_steps": list(message_group.steps),
        "steps": [{"matching_step": step, "count": count} for step, count in message_group.steps.items()],
        "route_name": None if verdict is None else verdict.route_name,
        "rerouted_from": None if verdict is None else verdict.rerouted_from,
        "address": None if verdict is None else verdict.address,
        "destination_database": None if verdict is None else verdict.destination_database,
        "broker_instances": list(brokers),
        "brokers": [{"broker_instance": broker, "count": count} for broker, count in brokers.items()],
        "path": None if message_group.path is None else path_object(message_group.path, done.knowledge),
        "near_misses": [_near_miss(miss) for miss in message_group.near_misses],
        "not_known": [gap_object(gap) for gap in case.gaps],
        "said": [
            _reported_status(message_group, status_text, count)
            for status_text, count in message_group.status_texts.most_common()
        ],
        "unacknowledged": message_group.unacknowledged,
        "agreements": {str(word): message_group.agreements[word] for word in NumberAgreement},
        "advice": None if message_group.remedy is None else message_group.remedy.text,
        "statement": None if message_group.remedy is None else message_group.remedy.statement,
        "statement_is_complete": message_group.remedy is not None and message_group.remedy.is_complete,
        "remedies": [{**advice.remedy.as_object(), "count": advice.count} for advice in message_group.advice],
        "findings": [_finding(lint_finding) for lint_finding in done.findings_on(message_group)],
        "messages": [_message(result) for result in message_group.results],
    }


def path_object(path: JudgedPath, knowledge: EstateKnowledge) -> JsonObject:
    """Return the path of messages that leave their instance, there and back, with the missing exports."""
    unread = [_unread(address, knowledge) for address in path.unread_addresses]
    return {
        "end": str(path.end),
        "is_cut": path.is_cut,
        "multiple_targets": path.has_multiple_targets,
        "return_is_known": not path.is_back_unknown,
        "assumed": [{"address": address, "instance_name": name} for address, name in path.assumed],
        "ways": [_path_object(possible_path, path) for possible_path in path.all_paths],
        "not_known": [*({**gap_object(gap), "address": None} for gap in gaps_on(path)), *unread],
    }


def _path_object(possible_path: PossiblePath, path: JudgedPath) -> JsonObject:
    hop_path = possible_path.hop_path
    return {
        "direction": BACK if possible_path.is_return else THERE,
        **end_values(hop_path),
        "end": str(possible_path.end),
        "fails": possible_path in path.failing_paths,
        "hops": [_hop(hop) for hop in hop_path.hops],
    }


def _hop(hop: PathHop) -> JsonObject:
    plain = hop.plain()
    return {name: plain[name] for name in HOP_COLUMNS if name != "broker_instance"}


def _unread(address: str, knowledge: EstateKnowledge) -> JsonObject:
    maybe = knowledge.may_be_at(address)
    return {
        "instance_name": maybe[0] if len(maybe) == 1 else None,
        "database_name": None,
        "code": "INSTANCE_AT_ADDRESS",
        "message": "no instance of the exports listens at this address",
        "view": ", ".join(VIEWS_OF_AN_INSTANCE),
        "address": address,
    }


def _near_miss(miss: NearMiss) -> JsonObject:
    return {
        "what": miss.object_type,
        "instance_name": miss.instance,
        "database_name": miss.database,
        "name": miss.name,
        "service_name": miss.service,
        "broker_instance": miss.broker,
        "differences": list(miss.differences),
    }


def _reported_status(message_group: MessageGroup, status_text: StatusText, count: int) -> JsonObject:
    compared = message_group.case.compare(status_text)
    return {
        "error_number": status_text.number,
        "transmission_status": status_text.text,
        "count": count,
        "agreement": None if compared is None else str(compared.agreement),
        "why": None if compared is None else compared.why,
    }


def _message(result: MessageResult) -> JsonObject:
    row: ReadRow = result.row
    names = ("message_id", "conversation_id", "from_service_name", "message_sequence_number")
    identifying = {name: row.get(name) for name in names}
    return {**identifying, "conversation_handle": result.handle, "enqueue_time": _time(row["enqueue_time"])}


def _time(at: datetime) -> str | None:
    return None if isinstance(at, UnknownTime) else format_time(at)


def _finding(finding: LintFinding) -> JsonObject:
    return {**finding._asdict(), "severity": str(severity_of(finding))}


def _trial(done: Check) -> JsonObject | None:
    tried, trial = done.with_scripts, done.trial
    if tried is None or trial is None:
        return None
    return {
        "scripts": [_script(script) for script in tried.evidence.log.scripts],
        "rejected": list(tried.evidence.log.rejected),
        "notes": list(tried.evidence.log.notes),
        "before": {"outcomes": dict(done.outcomes), "ends": dict(done.ends)},
        "stuck_before": len(trial.stuck_before),
        "stuck_after": len(trial.stuck_after),
        "changes": [_change(change) for change in trial.changes],
        "unchanged": trial.unchanged,
    }


def _change(change: Change) -> JsonObject:
    return {
        "effect": change.effect,
        "count": len(change.results),
        "instance_name": change.instance,
        "database_name": change.database,
        "to_service_name": change.service,
        "before": change.before._asdict(),
        "after": change.after._asdict(),
        "messages": [_message(result) for result in change.results],
    }
