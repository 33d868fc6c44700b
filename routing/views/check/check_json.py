"""Write a check as one JSON object for programs. See docs/reference/json.md for its keys."""

from __future__ import annotations

from datetime import datetime

from routing.advice.trouble_catalogue import error_number
from routing.cases.background import StatusText
from routing.cases.evidence import FileEvidence, ScriptRead, views_read
from routing.cases.known_estate import EstateKnowledge
from routing.cases.message_cases import MessageResult
from routing.cases.missing_knowledge import KnowledgeGap, gaps_on
from routing.cases.near_misses import NearMiss
from routing.importing.catalog.cell_values import UnknownTime
from routing.lint.lint_estate import LintFinding
from routing.render.wording import format_time
from routing.rules.following import HOP_COLUMNS, PathHop
from routing.rules.judging import JudgedPath, PathWay
from routing.rules.observed import NumberAgreement
from routing.rules.timeline import moment_of
from routing.terms import JsonObject, ReadRow
from routing.views.check.checking import Check, find_notes, severity_of
from routing.views.check.grouping import MessageGroup
from routing.views.check.problem_evidence import VIEWS_OF_AN_INSTANCE
from routing.views.check.trial import Change, Trial


def as_object(done: Check) -> JsonObject:
    """Convert a check to JSON values: times in ISO 8601, lists in the order in which they are printed.

    With scripts to try, all but ``read``, ``notes`` and ``then`` is the state with these in force.
    """
    shown = done.shown
    return {
        "read": _read(done.evidence),
        "notes": find_notes(done),
        "not_known": [gap_object(gap) for gap in shown.gaps],
        "refused": [one._asdict() for one in shown.evidence.server.list_refusals()],
        "decided_at": {name: format_time(moment_of(time)) for name, time in sorted(shown.estate.times.items())},
        "refused_messages": done.evidence.log.refused_messages,
        "messages": len(shown.results),
        "outcomes": dict(shown.outcomes),
        "ends": dict(shown.ends),
        "groups": [_group(one, shown) for one in shown.groups],
        "troubles": [one.as_object() for one in shown.troubles],
        "findings": [_finding(one) for one in shown.findings],
        "other_findings": dict(shown.other_findings),
        "then": None if done.tried is None or done.trial is None else _then(done, done.tried, done.trial),
    }


def _read(evidence: FileEvidence) -> JsonObject:
    return {
        "views": [
            {
                "view": one.view,
                "instance_name": one.instance,
                "databases": one.databases,
                "rows": one.rows,
                "exported_at": format_time(one.newest),
            }
            for one in views_read(evidence)
        ],
        "rows": {
            view: {
                "rows": rows,
                "rejected": evidence.log.rows_rejected.get(view, 0),
                "left_out": evidence.log.rows_left_out.get(view, 0),
            }
            for view, rows in evidence.log.rows_read.items()
        },
        "scripts": [_script(one) for one in evidence.log.scripts],
        "left_out": list(evidence.log.left_out),
        "rejected": list(evidence.log.rejected),
    }


def _script(one: ScriptRead) -> JsonObject:
    counts = {"statements": one.statements, "left_out": one.left_out, "rejected": one.rejected}
    return {"file": one.file, "instance_name": one.instance, **counts}


def gap_object(gap: KnowledgeGap) -> JsonObject:
    """Convert a gap to JSON values, with the view to export."""
    return {
        "instance_name": gap.instance,
        "database_name": gap.database,
        "code": gap.what.name,
        "message": gap.what.words,
        "view": gap.what.view,
    }


def _group(one: MessageGroup, done: Check) -> JsonObject:
    row, verdict = one.first.row, one.verdict
    reason = None if verdict is None else str(verdict.reason)
    return {
        "outcome": one.first.outcome,
        "reason": reason,
        "error_number": error_number(reason, one.first.case.scope),
        "end": one.first.end,
        "instance_name": row["instance_name"],
        "database_name": row["database_name"],
        "to_service_name": row["to_service_name"],
        "count": len(one.results),
        "oldest": _time(one.oldest),
        "matching_steps": list(one.steps),
        "steps": [{"matching_step": step, "count": count} for step, count in one.steps.items()],
        "route_name": None if verdict is None else verdict.route_name,
        "rerouted_from": None if verdict is None else verdict.rerouted_from,
        "address": None if verdict is None else verdict.address,
        "destination_database": None if verdict is None else verdict.destination_database,
        "broker_instances": list(one.brokers),
        "brokers": [{"broker_instance": broker, "count": count} for broker, count in one.brokers.items()],
        "path": None if one.path is None else path_object(one.path, done.knowledge),
        "near_misses": [_near(miss) for miss in one.near],
        "not_known": [gap_object(gap) for gap in one.gaps],
        "said": [
            _reported_status(one, status_text, count) for status_text, count in one.status_texts.most_common()
        ],
        "unacknowledged": one.unacknowledged,
        "agreements": {str(word): one.agreements[word] for word in NumberAgreement},
        "advice": None if one.remedy is None else one.remedy.text,
        "statement": None if one.remedy is None else one.remedy.statement,
        "statement_is_complete": one.remedy is not None and one.remedy.is_complete,
        "remedies": [{**advice.remedy.as_object(), "count": advice.count} for advice in one.advice],
        "findings": [_finding(lint_finding) for lint_finding in done.findings_on(one)],
        "messages": [_message(result) for result in one.results],
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
        "ways": [_path_way(one, path) for one in path.all_ways],
        "not_known": [*({**gap_object(gap), "address": None} for gap in gaps_on(path)), *unread],
    }


def _path_way(one: PathWay, path: JudgedPath) -> JsonObject:
    hop_path = one.hop_path
    return {
        "direction": "BACK" if one.is_return else "THERE",
        "outcome": str(hop_path.ending),
        "reason": None if hop_path.reason is None else str(hop_path.reason),
        "instance_name": hop_path.instance,
        "database_name": hop_path.database,
        "address": hop_path.address,
        "end": str(one.end),
        "fails": one in path.failing,
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
        "message": "the instance at this address is not among the exports",
        "view": ", ".join(VIEWS_OF_AN_INSTANCE),
        "address": address,
    }


def _near(miss: NearMiss) -> JsonObject:
    return {
        "what": miss.what,
        "instance_name": miss.instance,
        "database_name": miss.database,
        "name": miss.name,
        "service_name": miss.service,
        "broker_instance": miss.broker,
        "differences": list(miss.differences),
    }


def _reported_status(one: MessageGroup, status_text: StatusText, count: int) -> JsonObject:
    compared = one.compared(status_text)
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


def _finding(one: LintFinding) -> JsonObject:
    return {**one._asdict(), "severity": str(severity_of(one))}


def _then(done: Check, tried: Check, trial: Trial) -> JsonObject:
    return {
        "scripts": [_script(one) for one in tried.evidence.log.scripts],
        "rejected": list(tried.evidence.log.rejected),
        "notes": list(tried.evidence.log.notes),
        "before": {"outcomes": dict(done.outcomes), "ends": dict(done.ends)},
        "stuck_before": len(trial.stuck_before),
        "stuck_after": len(trial.stuck_after),
        "changes": [_change(one) for one in trial.changes],
        "unchanged": trial.unchanged,
    }


def _change(one: Change) -> JsonObject:
    return {
        "effect": one.effect,
        "count": len(one.results),
        "instance_name": one.instance,
        "database_name": one.database,
        "to_service_name": one.service,
        "before": one.before._asdict(),
        "after": one.after._asdict(),
        "messages": [_message(result) for result in one.results],
    }
