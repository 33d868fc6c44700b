"""A check as what the page shows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from routing.features.check.answering import state_counts, state_trial
from routing.features.check.check_report import answer_line
from routing.features.check.checking import Check
from routing.features.check.message_results import MessageResult
from routing.features.check.notes import find_notes
from routing.features.check.pasting import named
from routing.features.check.phrases import cut, gap_sentence, join_words
from routing.features.lint.catalogue import BY_CODE
from routing.features.lint.finding_rows import rows_of
from routing.features.report.altered_routes import count_words, list_altered
from routing.features.report.facts import EstateInstance, FlowAdvice, MessageFlow, Report, ReportChanges
from routing.features.report.report_network import list_places
from routing.schemas import INPUTS, ROUTES
from routing.tables.table_columns import TableColumns
from routing.tables.times import micros_of
from routing.terms import NOT_KNOWN, Outcome, Reason

_Key = tuple[str, "str | None", str, str, "str | None", "str | None", "str | None", "str | None"]


def as_report(done: Check) -> Report:
    """Return the report of the messages that wait; with scripts to try, of them and of what they change.

    There is nothing over time, since all are decided at one time, nor a balance, since most of the dialogs that
    were shared out do not wait. The findings are all of lint's.
    """
    shown = done.tried or done
    return Report(
        headline=_headline(done),
        not_known=tuple(_not_known(done)),
        made_at=max(shown.estate.times.values()),
        flows=_flows(shown.results),
        places=_places(shown),
        findings=rows_of(shown.every_finding, BY_CODE),
        changes=None if done.tried is None else _changes(done, done.tried),
        advice=tuple(_advice(shown, is_tried=done.tried is not None)),
    )


def _headline(done: Check) -> str:
    """Return the answer, and how many messages wait as of when; with scripts to try, what they change."""
    answer = answer_line(done) if done.tried is None else state_trial(done, done.tried)
    counts = state_counts(done.tried or done)
    scripts = [] if done.tried is None else sorted({cut(one.file) for one in done.tried.evidence.scripts})
    return f"{answer} {counts}" + (f"; with {join_words(scripts)} in force" if scripts else "")


def _not_known(done: Check) -> Iterator[str]:
    """Yield sentences on gaps, rejected rows and notes, of both checks where scripts are tried."""
    yield from map(gap_sentence, (done.tried or done).gaps)
    # Those of scripts that are tried are told apart from those of what was read.
    for check in (done, *([] if done.tried is None else [done.tried])):
        yield from (f"rejected: {cut(sentence)}" for sentence in check.evidence.rejected)
        yield from (f"note: {cut(sentence)}" for sentence in find_notes(check))


def _flows(results: Sequence[MessageResult]) -> tuple[MessageFlow, ...]:
    """Return the messages by sender, service and result, the most first."""
    enqueued: dict[_Key, list[int]] = defaultdict(list)
    for result in results:
        enqueued[_key(result)].append(micros_of(result.row["enqueue_time"]))
    flows = [MessageFlow(*key, messages=len(times), oldest=min(times)) for key, times in enqueued.items()]
    return tuple(sorted(flows, key=lambda flow: (-flow.messages, flow.oldest)))


def _key(result: MessageResult) -> _Key:
    row, verdict = result.row, result.verdict
    who = row["instance_name"], row["database_name"], row["to_service_name"], result.outcome
    if verdict is None:
        return (*who, None, None, None, None)
    return (*who, str(verdict.reason), verdict.route_name, verdict.address, verdict.destination_database)


def _advice(done: Check, *, is_tried: bool) -> Iterator[FlowAdvice]:
    """Yield the remedies of each group that has any.

    SQL Server knows nothing of scripts that are tried: what it reported is not about what they set on its way.
    """
    for group in done.groups:
        if is_tried and not group.is_failing and group.first.is_on_its_way:
            continue
        result = _key(group.first)[:5]
        for advice in group.advice:
            where = "" if advice.instance == result[0] else f"On {named(advice.instance)}: "
            yield FlowAdvice(*result, advice.count, f"{where}{advice.remedy.words}", advice.remedy.statement)


def _places(done: Check) -> tuple[EstateInstance, ...]:
    rows = done.evidence.rows
    place_columns = {key: TableColumns.of_rows(rows[key], INPUTS[key]) for key in ("instances", "databases")}
    return tuple(list_places(place_columns))


def _changes(before: Check, after: Check) -> ReportChanges:
    at = max(after.estate.times.values())
    was, now = (TableColumns.of_rows(check.evidence.rows["routes"], ROUTES) for check in (before, after))
    return ReportChanges(
        run_id=None,
        finished_at=None,
        is_incremental=False,
        outcomes=count_words((*Outcome, NOT_KNOWN), before.outcomes, after.outcomes),
        reasons=count_words(Reason, _reasons(before), _reasons(after)),
        routes=list_altered(was, now, at, at),
    )


def _reasons(done: Check) -> Counter[str]:
    return Counter(str(result.verdict.reason) for result in done.results if result.verdict is not None)
