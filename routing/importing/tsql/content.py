"""The statements that say something about routing: definitions, USE, and EXEC of more text."""

from __future__ import annotations

from routing.importing.tsql.definitions import (
    Definition,
    Place,
    alter_route,
    create_route,
    create_service,
    drop,
)
from routing.importing.tsql.dynamic import read_execution
from routing.importing.tsql.fate import Fate
from routing.importing.tsql.refusal import RefusalError
from routing.importing.tsql.server_definitions import (
    alter_database,
    alter_endpoint,
    create_database,
    create_endpoint,
    drop_database,
)
from routing.importing.tsql.statements import (
    DropEndpoint,
    DropRoute,
    DropService,
    Statement,
    quote,
)
from routing.importing.tsql.tokens import Kind
from routing.importing.tsql.vocabulary import as_written, speaks_of_routing
from routing.importing.tsql.walker import Walker, pass_over

_DEFINITIONS: dict[tuple[str, str], Definition] = {
    ("CREATE", "ROUTE"): create_route,
    ("ALTER", "ROUTE"): alter_route,
    ("DROP", "ROUTE"): drop(DropRoute, "ROUTE"),
    ("CREATE", "SERVICE"): create_service,
    ("DROP", "SERVICE"): drop(DropService, "SERVICE"),
    ("CREATE", "ENDPOINT"): create_endpoint,
    ("ALTER", "ENDPOINT"): alter_endpoint,
    ("DROP", "ENDPOINT"): drop(DropEndpoint, "ENDPOINT"),
    ("CREATE", "DATABASE"): create_database,
    ("ALTER", "DATABASE"): alter_database,
    ("DROP", "DATABASE"): drop_database,
}
_MODULES = frozenset(["PROC", "PROCEDURE", "FUNCTION", "TRIGGER"])


def definition(walker: Walker, fate: Fate) -> None:
    """CREATE, ALTER, DROP: of what belongs to routing, of a module, or of anything else."""
    cursor = walker.cursor
    verb, noun = cursor.peek().upper, cursor.peek(1).upper
    read = _DEFINITIONS.get((verb, noun))
    name_at = 3 if cursor.at_words("CREATE", "OR", "ALTER") else 1
    if verb != "DROP" and cursor.peek(name_at).upper in _MODULES:
        _module(walker, fate, name_at)
    elif read is None:
        pass_over(walker, fate)
    else:
        name = cursor.peek(2)
        is_name = name.kind in (Kind.WORD, Kind.NAME)
        title = f"{verb} {noun} {quote(as_written(name.text))}" if is_name else f"{verb} {noun}"
        _read_definition(walker, fate, read, title)


def _read_definition(walker: Walker, fate: Fate, read: Definition, title: str) -> None:
    session, cursor = walker.session, walker.cursor
    place, position = walker.here(), cursor.position
    statements: list[Statement] = []
    walker.take_notes()
    try:
        statements = read(cursor, Place(*place, session.database, session.scripted_at))
    except RefusalError as refusal:
        session.report(place, f"{title}: {refusal.why}", refusal.number)
        cursor.position = max(cursor.position, position + 2)
    else:
        for note in walker.take_notes():
            session.report(place, f"{title}: {note}", counted=True)
    walker.skip()
    session.add(statements, walker.settle(fate))


def _module(walker: Walker, fate: Fate, name_at: int) -> None:
    """The rest of the batch is the body of a procedure, function or trigger, not run here."""
    cursor = walker.cursor
    kind, name = cursor.peek(name_at).text.lower(), cursor.peek(name_at + 1).text
    if cursor.peek(name_at + 2).text == ".":
        name = cursor.peek(name_at + 3).text
    module = f"{kind} {quote(as_written(name))}"
    why = f"it stands in the body of the {module}, which the script only creates"
    cursor.next()
    while not cursor.at_end:
        walker.statement(fate.not_run(why))


def use(walker: Walker, fate: Fate) -> None:
    """USE sets the database of what follows."""
    place, effective = walker.here(), walker.settle(fate)
    walker.cursor.next()
    walker.take_notes()
    try:
        walker.session.use(walker.cursor.name("database name"), place, effective)
    except RefusalError as refusal:
        if not effective.never:
            walker.session.forget_database(place, f"USE: {refusal.why}")
    else:
        for note in walker.take_notes():
            walker.session.report(place, f"USE: {note}", counted=True)
    walker.skip()


def execute(walker: Walker, fate: Fate) -> None:
    """EXEC: a literal's text is read, any other reported; a procedure's body is not followed."""
    place, effective = walker.here(), walker.settle(fate)
    start = walker.cursor.position
    run = read_execution(walker.cursor)
    walker.skip()
    if run.is_procedure_call:
        walker.report_hidden(start, place)
    elif run.server is not None:
        if run.text is None or speaks_of_routing(run.text):
            why = f"EXEC: it runs on the linked server {quote(run.server)}"
            walker.session.report(place, why)
    elif run.text is not None:
        walker.run_text(run.text, place, effective, run.database)
    elif not effective.never:
        walker.session.report(place, f"EXEC {run.why}")


def restore(walker: Walker, fate: Fate) -> None:
    """RESTORE DATABASE brings routes and services that the script does not name."""
    if walker.cursor.peek(1).upper == "DATABASE" and not walker.settle(fate).never:
        name = quote(as_written(walker.cursor.peek(2).text))
        why = f"RESTORE DATABASE {name}: what the restored database holds is not in the script"
        walker.session.report(walker.here(), why)
    pass_over(walker, fate)
