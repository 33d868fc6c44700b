"""T-SQL scripts → the statements about routing and the problems; nothing is ever executed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from hashlib import sha256

from routing.importing.reach import FilePlace
from routing.importing.tsql.decoding import DecodedScript, decode
from routing.importing.tsql.grammar import parse_batch
from routing.importing.tsql.script import ReadScript, read_parts
from routing.importing.tsql.script_statements import StatementProblem, quote
from routing.importing.tsql.servers import is_same_server
from routing.importing.tsql.sqlcmd import Include, SqlBatch, batches
from routing.importing.tsql.statement_parser import ParserSettings
from routing.importing.tsql.tokens import tokenize
from routing.importing.tsql.tree import ScriptBatch
from routing.importing.tsql.vocabulary import as_written


def read_script(
    text: str,
    *,
    file: str,
    scripted_at: datetime,
    database: str | None = None,
    instance: str | None = None,
    variables: Mapping[str, str] | None = None,
    include: Include | None = None,
    template_defaults: bool = True,
    servers: Collection[str | None] | None = None,
) -> ReadScript:
    """Read a script into batches of statements on routing, in order.

    ``file`` names it in places. ``scripted_at``, from which lifetimes count, must be aware.
    ``database`` is in use until the first USE. Batches after ``:connect`` to another server than
    ``instance`` are left out; with ``servers`` the batches of these alone are read and no other is spoken of, None
    being those before any ``:connect``. ``variables`` are the values of ``-v``. Without ``include``, files of
    ``:r`` are reported. A template's unfilled place is read with its default and remarked on, or
    refused if not ``template_defaults``. Raises ValueError for a naive ``scripted_at``.
    """
    if scripted_at.tzinfo is None:
        raise ValueError("scripted_at needs a time zone")
    since = scripted_at.astimezone(timezone.utc)
    parts: list[ScriptBatch | StatementProblem] = []
    named: list[str] = []
    connection = 0
    is_script = False
    contents = [text]

    def include_and_keep(including: str, written: str) -> tuple[str, str]:
        assert include is not None
        place, included = include(including, written)
        contents.append(included)
        return place, included

    for part in batches(text, file, variables or {}, include and include_and_keep):
        if isinstance(part, StatementProblem):
            parts.append(part)
            continue
        if part.connection != connection:
            connection = part.connection
            named += [] if part.server is None else [as_written(part.server)]
        is_foreign = servers is not None and part.server not in servers
        parsed = parse_batch(
            tokenize(part.text), partial(_place_in, part), ParserSettings(since, template_defaults, is_script)
        )
        if is_foreign:
            # What others run says nothing here, but an error may end the script.
            parsed = replace(parsed, statements=0)
        is_script = is_script or parsed.statements > 0
        why_not = None if servers is not None else _say_whose(part, instance)
        parts.append(ScriptBatch(parsed, part.connection, part.exits, why_not, is_foreign))
    script = read_parts(file, since, parts, database, template_defaults)
    digest = _digest_content(contents, database, variables or {})
    return replace(script, servers=tuple(dict.fromkeys(named)), content_digest=digest)


def _digest_content(contents: Sequence[str], database: str | None, variables: Mapping[str, str]) -> str:
    """Return the SHA-256 of what a script's statements depend on, its time and instance apart."""
    values = sorted({name.casefold(): value for name, value in variables.items()}.items())
    return sha256(repr((contents, database, values)).encode("utf-8", "surrogatepass")).hexdigest()


def read_file(
    path: FilePlace,
    *,
    scripted_at: datetime | None = None,
    database: str | None = None,
    instance: str | None = None,
    variables: Mapping[str, str] | None = None,
    template_defaults: bool = True,
    servers: Collection[str | None] | None = None,
) -> ReadScript:
    """Read a script file in any encoding; its time is the file's own by default.

    Files of ``:r`` are looked for beside the file that names them. Raises OSError, ValueError for what is no text.
    """
    decoded = _decode(path)
    if scripted_at is None:
        scripted_at = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
    script = read_script(
        decoded.text,
        file=str(path),
        scripted_at=scripted_at,
        database=database,
        instance=instance,
        variables=variables,
        include=_includes_of(path),
        template_defaults=template_defaults,
        servers=servers,
    )
    problems = script.problems
    if decoded.unreadable:
        why = f"{decoded.unreadable} of its characters cannot be read in {decoded.encoding}"
        problems = (StatementProblem(str(path), 1, why, counted=True), *problems)
    return replace(script, problems=problems, encoding=decoded.encoding)


def servers_in(path: FilePlace, variables: Mapping[str, str] | None = None) -> tuple[str | None, ...]:
    """Return the servers of a script's batches in their order, None before any ``:connect``.

    Raises as `read_file`.
    """
    parts = batches(_decode(path).text, str(path), variables or {}, _includes_of(path))
    return tuple(dict.fromkeys(batch.server for batch in parts if isinstance(batch, SqlBatch)))


def _includes_of(path: FilePlace) -> Include:
    """Return the reader of the files of ``:r``, each relative to the folder of the file that names it."""
    places = {str(path): path}

    def include(including: str, written: str) -> tuple[str, str]:
        included_path = places[including].parent / written.replace("\\", "/")
        if included_path.exists() and not included_path.is_file():
            raise ValueError("it is not an ordinary file")
        places[str(included_path)] = included_path
        return str(included_path), _decode(included_path).text

    return include


def _decode(path: FilePlace) -> DecodedScript:
    decoded = decode(path.read_bytes())
    if not decoded.is_text:
        raise ValueError("it is not text")
    return decoded


def _place_in(batch: SqlBatch, row: int) -> tuple[str, int]:
    return batch.places[row]


def _say_whose(batch: SqlBatch, instance: str | None) -> str | None:
    """Return the reason why a batch does not run on this instance; None where it does."""
    if _is_own(batch, instance):
        return None
    return f"it runs on the server {quote(as_written(batch.server or ''))} of :connect"


def _is_own(batch: SqlBatch, instance: str | None) -> bool:
    return batch.server is None or (instance is not None and is_same_server(batch.server, instance))
