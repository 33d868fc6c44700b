"""Statements that run something or say where it runs: USE, EXEC, RESTORE, DBCC."""

from __future__ import annotations

from collections.abc import Sequence

from routing.importing.tsql.definitions import Place
from routing.importing.tsql.dynamic import Executed, read_execution
from routing.importing.tsql.fate import Fate
from routing.importing.tsql.held_texts import find_hidden_statement, runs_in_every_database, takes_data
from routing.importing.tsql.passing import pass_over
from routing.importing.tsql.procedures import read_procedure
from routing.importing.tsql.refusal import RefusalError, UnparsedError
from routing.importing.tsql.statements import quote
from routing.importing.tsql.tokens import Kind, Lexeme
from routing.importing.tsql.vocabulary import as_written, speaks_of_routing
from routing.importing.tsql.walker import Walker

_RESTORED = ("DATABASE", "LOG")


def use(walker: Walker, fate: Fate) -> None:
    """USE sets the database of what follows."""
    place, effective = walker.here(), walker.settle(fate)
    walker.cursor.next()
    walker.take_notes()
    try:
        walker.session.use(walker.cursor.name("database name"), place, effective)
    except UnparsedError as refusal:
        walker.refuse(place, "USE", refusal, fate)
    except RefusalError as refusal:
        if not effective.never:
            walker.session.forget_database(place, f"USE: {refusal.why}")
    else:
        for note in walker.take_notes():
            walker.session.report(place, f"USE: {note}", counted=True)
    walker.skip()


def execute(walker: Walker, fate: Fate) -> None:
    """EXEC: a text that is known is read, any other reported; a procedure's body is not followed."""
    place, effective = walker.here(), walker.settle(fate)
    start = walker.cursor.position
    try:
        run = read_execution(walker.cursor, lambda words: walker.evaluate(words, fate, is_plain=True))
    except UnparsedError as refusal:
        walker.refuse(place, "EXEC", refusal, fate)
        walker.skip()
        return
    if run.procedure is not None and run.server is None:
        _call(walker, fate, run.procedure, place)
    walker.skip()
    words = walker.cursor.between(start, walker.cursor.position)
    if run.procedure is not None:
        _pass_texts(walker, fate, run.procedure, words, place)
        walker.refuse_misspelt_definition(start, place)
    elif run.server is not None:
        _report_linked(walker, run, run.server, place)
    elif run.text is not None and run.has_variables and not walker.session.affords(len(run.text.text), place):
        return
    elif run.text is not None:
        walker.texts.run(words)
        walker.run_text(run.text.text, place, effective, run.database)
    else:
        walker.texts.pass_on(words)
        if not effective.never:
            walker.session.report(place, f"EXEC {run.why}", run.number)
    walker.forget_changed(start)


def _pass_texts(
    walker: Walker, fate: Fate, procedure: str, words: Sequence[Lexeme], place: tuple[str, int]
) -> None:
    """What a procedure does with the texts that it is given: it may run them, unless it is known to take data."""
    if runs_in_every_database(procedure):
        walker.texts.run(words)
        known = walker.variables.resolve(words, fate)
        if _has_unknown_value(known) or any(speaks_of_routing(word.text) for word in known):
            everywhere = RefusalError("it runs in every database, and only the server knows which those are")
            walker.refuse(place, f"EXEC {procedure}", everywhere, fate)
        return
    if takes_data(procedure, words):
        walker.texts.show(words)
        return
    walker.texts.pass_on(words)
    why = find_hidden_statement(words)
    if why is not None:
        walker.session.report(place, why)


def _has_unknown_value(words: Sequence[Lexeme]) -> bool:
    """Return whether a call still has a variable as a value, once those that are known are replaced."""
    following = [*(word.text for word in words[1:]), ""]
    pairs = zip(words, following, strict=True)
    return any(word.kind is Kind.WORD and word.text.startswith("@") and after != "=" for word, after in pairs)


def _call(walker: Walker, fate: Fate, procedure: str, place: tuple[str, int]) -> None:
    session = walker.session

    def value_of(variable: Lexeme) -> str | None:
        value = walker.variables.value(variable.text, fate)
        return None if value is None else value.text

    try:
        where = Place(*place, session.database, session.scripted_at)
        statements = read_procedure(procedure, walker.cursor, where, value_of)
    except RefusalError as refusal:
        walker.refuse(place, procedure, refusal, fate)
    else:
        walker.add(statements or [], fate)


def _report_linked(walker: Walker, run: Executed, server: str, place: tuple[str, int]) -> None:
    if run.text is None or speaks_of_routing(run.text.text):
        walker.session.report(place, f"EXEC: it runs on the linked server {quote(server)}")


def restore(walker: Walker, fate: Fate) -> None:
    """RESTORE DATABASE brings routes and services that the script does not name."""
    what, named = walker.cursor.peek(1).upper, walker.cursor.peek(2)
    if what in _RESTORED:
        title = f"RESTORE {what} {quote(as_written(named.text))}"
        why = RefusalError("what the restored database holds is not in the script")
        walker.refuse(walker.here(), title, why, fate)
    pass_over(walker, fate)


def check(walker: Walker, fate: Fate) -> None:
    """DBCC CLONEDATABASE makes a database with the routes and services of another; other checks make none."""
    if walker.cursor.peek(1).upper == "CLONEDATABASE":
        why = RefusalError("what the cloned database holds is not in the script")
        walker.refuse(walker.here(), "DBCC CLONEDATABASE", why, fate)
    pass_over(walker, fate)
