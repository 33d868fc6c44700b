"""CREATE, ALTER and DROP: of what belongs to routing, of modules, and of anything else."""

from __future__ import annotations

from routing.importing.tsql.database_definitions import alter_database, create_database, drop_database
from routing.importing.tsql.definitions import (
    Definition,
    Place,
    alter_route,
    create_route,
    create_service,
    drop,
)
from routing.importing.tsql.endpoint_definitions import alter_endpoint, create_endpoint
from routing.importing.tsql.fate import Fate
from routing.importing.tsql.parsing import find_misspelt_noun
from routing.importing.tsql.passing import pass_over
from routing.importing.tsql.refusal import RefusalError, UnparsedError
from routing.importing.tsql.statements import (
    DropEndpoint,
    DropRoute,
    DropService,
    Statement,
    quote,
)
from routing.importing.tsql.tokens import Kind, Lexeme
from routing.importing.tsql.vocabulary import RESERVED, as_written
from routing.importing.tsql.walker import Walker

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
    elif read is None or name_at == 3:
        _pass_definition(walker, fate, cursor.peek(name_at), name_at == 3)
    else:
        name = cursor.peek(2)
        is_name = name.kind in (Kind.WORD, Kind.NAME) and name.upper not in RESERVED
        title = f"{verb} {noun} {quote(as_written(name.text))}" if is_name else f"{verb} {noun}"
        _read_definition(walker, fate, read, title)


def _pass_definition(walker: Walker, fate: Fate, noun: Lexeme, has_or_alter: bool) -> None:
    """A definition of something else, unless it is misspelt."""
    verb, why = walker.cursor.peek().upper, None
    if has_or_alter and (verb, noun.upper) in _DEFINITIONS:
        why = UnparsedError("it has no clause OR ALTER")
    else:
        meant = find_misspelt_noun(noun.upper)
        if meant is not None:
            why = UnparsedError(f"{meant} was meant by {quote(noun.text)}")
    if why is not None:
        walker.refuse(walker.here(), f"{verb} {noun.upper}", why, fate)
    pass_over(walker, fate)


def _read_definition(walker: Walker, fate: Fate, read: Definition, title: str) -> None:
    session, cursor = walker.session, walker.cursor
    place, position = walker.here(), cursor.position
    statements: list[Statement] = []
    walker.take_notes()
    try:
        statements = read(cursor, Place(*place, session.database, session.scripted_at))
    except RefusalError as refusal:
        walker.refuse(place, title, refusal, fate)
        cursor.position = max(cursor.position, position + 2)
    else:
        for note in walker.take_notes():
            session.report(place, f"{title}: {note}", counted=True)
    walker.skip()
    walker.add(statements, fate)


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
