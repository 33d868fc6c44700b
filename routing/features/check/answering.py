"""The line that a check begins with: how many messages are stuck, and what a script would change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from routing.features.check.checking import Check
from routing.features.check.grouping import ProblemKind
from routing.features.check.message_results import MessageResult
from routing.features.check.path_ends import PathEnd
from routing.features.check.phrases import cut, join_words, when
from routing.features.check.problems import MessageProblem, count_kinds
from routing.render.wording import count
from routing.tables.times import moment_of
from routing.terms import NOT_KNOWN, Outcome

_STUCK = (ProblemKind.STUCK, ProblemKind.DROPPED)
_ARRIVING = {Outcome.DELIVERED: "delivered", Outcome.SENT: "sent", Outcome.FORWARDED: "forwarded"}


def state_answer(problems: Sequence[MessageProblem], total: int) -> str:
    """State how many of all messages are stuck, and what else is wrong, in one line.

    ``problems`` are all that there are, messages on their way among them.
    """
    if total == 0:
        return "No message waits in the transmission queues."
    parts = list(_state_parts(problems, total))
    kinds = count_kinds(problems)
    if kinds[ProblemKind.NOTHING] == total:
        every = "The only message is on its way" if total == 1 else f"All {total:,} messages are on their way"
        return f"{every}; nothing is stuck."
    is_decided = all(problem.first.verdict is not None for problem in problems)
    if is_decided and not any(kinds[kind] for kind in _STUCK):
        parts.insert(0, "routing keeps no message back")
    line = "; ".join(parts)
    return f"{line[:1].upper()}{line[1:]}."


def _state_parts(problems: Sequence[MessageProblem], total: int) -> Iterator[str]:
    kinds = count_kinds(problems)
    is_first = True

    def share(number: int, noun: str = "message") -> str:
        nonlocal is_first
        of = f"{number:,} of {count(total, noun)}" if is_first and total > 1 else count(number, noun)
        is_first = False
        return of

    for kind, word in ((ProblemKind.STUCK, "stuck"), (ProblemKind.DROPPED, "dropped")):
        if kinds[kind]:
            reasons = sum(problem.kind is kind for problem in problems)
            verb = "is" if kinds[kind] == 1 else "are"
            yield f"{share(kinds[kind])} {verb} {word} for {count(reasons, 'reason')}"
    connections = _count_connections(problems)
    if connections:
        yield f"{count(connections, 'connection')} {'fails' if connections == 1 else 'fail'}"
    if kinds[ProblemKind.REPORTED]:
        yield f"SQL Server reports trouble with {share(_count_reported(problems))}"
    if kinds[ProblemKind.NOT_KNOWN]:
        yield f"what becomes of {share(kinds[ProblemKind.NOT_KNOWN])} is not known"
    silent = sum(
        group.unacknowledged
        for problem in problems
        if problem.kind is ProblemKind.NOT_ACKNOWLEDGED
        for group in problem.groups
    )
    if silent:
        yield f"{share(silent)} {'was' if silent == 1 else 'were'} sent and {_not(silent)} acknowledged"
    if kinds[ProblemKind.PASSING]:
        number = kinds[ProblemKind.PASSING]
        yield f"{share(number)} {'waits' if number == 1 else 'wait'} for the next attempt of SQL Server"


def _not(number: int) -> str:
    return "is not" if number == 1 else "are not"


def _count_connections(problems: Sequence[MessageProblem]) -> int:
    """Count the addresses that instances do not reach."""
    groups = [group for one in problems if one.kind is ProblemKind.CONNECTION_FAILS for group in one.groups]
    return len(
        {
            (group.first.row["instance_name"], None if group.verdict is None else group.verdict.address)
            for group in groups
        }
    )


def _count_reported(problems: Sequence[MessageProblem]) -> int:
    groups = [group for one in problems if one.kind is ProblemKind.REPORTED for group in one.groups]
    return sum(result.status_text.text is not None for group in groups for result in group.results)


def state_counts(done: Check) -> str:
    """State how many messages wait, as of when, and how many have each outcome and end."""
    outcomes = done.outcomes
    counts = [f"{outcomes[word]:,} {word}" for word in (*map(str, Outcome), NOT_KNOWN) if outcomes[word]]
    asked = {result.row["instance_name"] for result in done.results}
    times = list(dict.fromkeys(when(moment_of(at)) for at in sorted(done.estate.times[name] for name in asked)))
    as_of = f" as of {times[0]}" + (f" to {times[-1]}" if len(times) > 1 else "") if times else ""
    counts_text = f": {', '.join(counts)}" if counts else ""
    return (
        f"{count(len(done.results), 'message')} in the transmission queues{as_of}{counts_text}{_state_ends(done)}"
    )


def _state_ends(done: Check) -> str:
    """State how many messages leave their instance and are not acknowledged, and where they end."""
    ends = Counter(result.path.end for result in done.results if result.path is not None and result.path.failing)
    if not ends:
        return ""
    end_counts = ", ".join(f"{ends[end]:,} {end}" for end in PathEnd if ends[end])
    return f"; of those that are sent: {end_counts}"


def state_trial(done: Check, tried: Check) -> str:
    """State how stuck messages fare with scripts in force: "With a.sql: 4 of 4 … would be sent."."""
    names = dict.fromkeys(cut(PurePath(one.file).name) for one in tried.evidence.scripts)
    pairs = list(zip(done.results, tried.results, strict=True))
    stuck = [after for before, after in pairs if is_stuck(before)]
    worse = sum(is_stuck(after) and not is_stuck(before) for before, after in pairs)
    freed = [result for result in stuck if result.verdict is not None and not is_stuck(result)]
    lost = sum(result.verdict is None for result in stuck)
    parts = []
    if stuck:
        nouns = "stuck message" if len(stuck) == 1 else "stuck messages"
        of = f"{len(freed):,} of {len(stuck):,} {nouns} would be {_state_arrival(freed)}"
        parts.append(of if freed or lost else f"{len(stuck):,} {nouns} would stay stuck")
    elif not worse:
        parts.append("nothing is stuck, as before")
    if lost:
        parts.append(f"of {lost:,} it would not be known")
    if worse:
        parts.append(f"{count(worse, 'message')} more would get stuck")
    return f"With {join_words(names) or 'the scripts'}: {'; '.join(parts)}."


def is_stuck(result: MessageResult) -> bool:
    """Return True if the rules keep or drop a message, at home or on its path."""
    if result.verdict is None:
        return False
    return not result.is_on_its_way or (result.path is not None and bool(result.path.failing))


def _state_arrival(freed: Sequence[MessageResult]) -> str:
    outcomes = {result.outcome for result in freed}
    words = [word for outcome, word in _ARRIVING.items() if str(outcome) in outcomes]
    return " or ".join(words) or "sent"
