"""Read T-SQL scripts into statements about routing and problems. Nothing is ever executed."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from hashlib import sha256

from routing.importing.encodings import GUESS, chosen_encoding, say_guess, without_implausible
from routing.importing.import_files import FilePlace, count_undecodable
from routing.importing.other_formats import find_other_format
from routing.importing.script_folders import without_undo
from routing.importing.sql_projects import SUFFIX as PROJECT
from routing.importing.sql_projects import read_project
from routing.importing.tsql.batch_course import ALWAYS
from routing.importing.tsql.grammar import parse_batch
from routing.importing.tsql.instance_state import InstanceState
from routing.importing.tsql.interpreter import ScriptInterpreter
from routing.importing.tsql.kept_batches import find_data_runs, keep_batch
from routing.importing.tsql.liquibase import as_changeset, find_rivals, read_any_batches
from routing.importing.tsql.parse_faults import count_open_blocks
from routing.importing.tsql.script_run import ScriptRun
from routing.importing.tsql.script_statements import (
    ScriptStatement,
    StatementKey,
    StatementProblem,
    in_order,
    quote,
)
from routing.importing.tsql.servers import is_same_server
from routing.importing.tsql.sqlcmd import Include, ScriptComments, SourceText, SqlBatch, find_comments
from routing.importing.tsql.statement_parser import ParserSettings
from routing.importing.tsql.tokens import tokenize
from routing.importing.tsql.tree import ParsedBatch, ScriptBatch
from routing.importing.tsql.vocabulary import as_written, speaks_of_routing

# A script as it was read, and its run against the state of an instance.


@dataclass(frozen=True)
class ReadScript:
    """A script after reading.

    ``statements`` are those that may run, in order, without knowledge of an instance. ``problems`` are unknown
    parts and statements that SQL Server always refuses, in the order of `in_order`. ``first_database`` is in use
    at the beginning. ``statement_count`` counts all recognised T-SQL statements. ``rivals`` are statements of
    changesets that define the same object, with the reason. ``servers`` are the names in ``:connect``.
    ``content_digest`` is the SHA-256 of the text with all files of ``:r``, the first database and the variables of
    ``-v``. ``own_time`` is the time of the file, if ``scripted_at`` is later. ``parts`` are the batches and the
    problems between them. ``guesses`` are sentences on files with a guessed encoding. ``included`` are files that
    ``:r`` names.
    """

    file: str
    scripted_at: datetime
    statements: tuple[ScriptStatement, ...] = ()
    problems: tuple[StatementProblem, ...] = ()
    statement_count: int = 0
    servers: tuple[str, ...] = ()
    content_digest: str = ""
    own_time: datetime | None = None
    first_database: str | None = None
    instance: str | None = None
    parts: tuple[ScriptBatch | StatementProblem, ...] = field(default=(), compare=False, repr=False)
    guesses: tuple[str, ...] = ()
    included: tuple[str, ...] = ()
    rivals: Mapping[StatementKey, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def says_anything(self) -> bool:
        """Whether statements were recognised in it, or something is noted on it."""
        return bool(self.statement_count or self.statements or any(problem.counted for problem in self.problems))


@dataclass(frozen=True)
class AppliedScript:
    """The state after a script, and the fate of its statements.

    ``statements`` were applied. The IF of those in ``passed_over`` was false. A ``counted`` problem is a remark on
    an applied statement.
    """

    state: InstanceState
    problems: tuple[StatementProblem, ...] = ()
    statements: tuple[ScriptStatement, ...] = ()
    passed_over: tuple[ScriptStatement, ...] = ()

    @property
    def refused(self) -> int:
        """How many statements do not count: refused, rolled back, or not known."""
        return sum(not problem.counted for problem in self.problems)


def _with_statements(script: ReadScript) -> ReadScript:
    """Return a script with its statements and problems that are independent of any instance."""
    run = _run_script(script, ScriptRun(script.first_database, None, instance=script.instance))
    rivals = find_rivals(run.effects)
    if rivals:
        script = replace(script, rivals=rivals)
        run = _run_script(script, ScriptRun(script.first_database, None, instance=script.instance))
    return replace(
        script,
        statements=tuple(effect.statement for effect in run.effects),
        problems=_problems_of(run, script.file, with_effects=False),
    )


def apply_script(
    state: InstanceState,
    script: ReadScript,
    leaves_out: Callable[[ScriptStatement], bool] = lambda statement: False,
) -> AppliedScript:
    """Apply a script to a state.

    Names of databases, routes and endpoints match in any case, as in SQL Server's default collation, and an exact
    match comes first. Service names match exactly, as in Service Broker. A database keeps the state's spelling.
    Statements for which ``leaves_out`` returns True change nothing.
    """
    run = _run_script(script, ScriptRun(script.first_database, state, leaves_out, script.instance))
    if run.holdings is None:
        raise TypeError("a script is applied to a state")
    return AppliedScript(
        run.holdings.state(),
        _problems_of(run, script.file, with_effects=True),
        tuple(effect.statement for effect in run.effects),
        tuple(run.passed_over),
    )


def _run_script(script: ReadScript, run: ScriptRun) -> ScriptRun:
    run.rivals = script.rivals
    settings = ParserSettings(script.scripted_at, is_script=True)
    interpreter = ScriptInterpreter(run, settings)
    connection = 0
    for part in script.parts:
        if isinstance(part, StatementProblem):
            run.problems.append(part)
            continue
        if part.connection != connection:
            connection = part.connection
            run.connect(None)
        if part.is_foreign:
            failed = part.parsed.faults[0].place[1] if part.parsed.faults else None
        else:
            run.changeset = part.changeset
            doubt = None if part.changeset is None else part.changeset.why_perhaps
            condition = ALWAYS.doubted(doubt and f"it runs only if {doubt}")
            interpreter.run_batch(part.parsed, condition.not_run(part.why_not).not_run(run.ended))
            failed = run.connection.failed_line
        if failed is not None and part.exits and run.ended is None:
            error = f"after the error in line {failed}"
            run.ended = (
                f"sqlcmd ends the script {error}, as :on error exit says"
                if part.changeset is None
                else f"Liquibase ends the update {error}"
            )
    run.close("the script ends")
    interpreter.calls.name_uncalled()
    return run


def _problems_of(run: ScriptRun, file: str, *, with_effects: bool) -> tuple[StatementProblem, ...]:
    problems = list(run.problems)
    for effect in run.effects if with_effects else ():
        statement = effect.statement
        problems += [
            StatementProblem(statement.file, statement.line, f"{statement.title}: {remark}", counted=True)
            for remark in dict.fromkeys((effect.remark, statement.doubt))
            if remark is not None
        ]
    return in_order(problems, file)


# The bytes of a script → its text, and which encoding that was.


_IN_BLOCK = "it stands in a template block that was not evaluated"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8", "UTF-8 with byte-order mark"),
    # UTF-32 LE begins with the mark of UTF-16 LE, so it is asked for first.
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32 LE with byte-order mark"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32 BE with byte-order mark"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16 LE with byte-order mark"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16 BE with byte-order mark"),
)
_UTF_7 = (b"+/v8", b"+/v9", b"+/v+", b"+/v/")
_CONTROLS = re.compile(r"[\x01-\x08\x0e-\x19\x1b-\x1f]")
_MOST_ODD = 0.1
_SAMPLE = 8192
_MANY = 0.3
_FEW = 0.05


@dataclass(frozen=True)
class DecodedScript:
    """A script's text, its encoding, and how many characters that encoding could not read."""

    text: str
    encoding: str
    unreadable: int = 0

    @property
    def is_text(self) -> bool:
        """Whether a script may be so: no text holds zeros, or control characters in great number."""
        odd = self.unreadable + len(_CONTROLS.findall(self.text))
        return "\0" not in self.text and odd <= _MOST_ODD * len(self.text)


def decode(data: bytes, errors: str = "replace") -> DecodedScript:
    """Decode a script's bytes.

    The first match counts: a byte-order mark, UTF-16 by its zero bytes, UTF-8, ``--encoding``, or Windows-1252.
    ``errors`` is the decoder's error handler, ``replace`` or `import_files.KEEP`. Raises ValueError for UTF-7.
    """
    if data.startswith(_UTF_7):
        raise ValueError("it is in UTF-7: save it as UTF-8")
    for byte_order_mark, codec, name in _MARKS:
        if data.startswith(byte_order_mark):
            return _decode_bytes(data[len(byte_order_mark) :], codec, name, errors)
    wide = _wide_codec(data)
    if wide is not None:
        return _decode_bytes(data, wide, f"{wide[:6].upper()} {wide[-2:].upper()}", errors)
    try:
        return DecodedScript(data.decode("utf-8"), "UTF-8")
    except UnicodeDecodeError:
        chosen = chosen_encoding()
        return _decode_bytes(data, chosen or "cp1252", chosen or GUESS, errors)


def _decode_bytes(data: bytes, codec: str, name: str, errors: str) -> DecodedScript:
    text = data.decode(codec, errors=errors)
    return DecodedScript(text, name, text.count("\ufffd") + count_undecodable(text))


def _wide_codec(data: bytes) -> str | None:
    """Return the codec of UTF-16 without a mark: T-SQL is mostly ASCII, so every other byte is mostly zero."""
    sample = data[:_SAMPLE]
    pairs = len(sample) // 2
    if pairs == 0:
        return None
    low, high = sample[0 : 2 * pairs : 2], sample[1 : 2 * pairs : 2]
    zeros_low, zeros_high = low.count(0) / pairs, high.count(0) / pairs
    if zeros_high >= _MANY and zeros_low <= _FEW:
        return "utf-16-le"
    if zeros_low >= _MANY and zeros_high <= _FEW:
        return "utf-16-be"
    return None


def read_script(
    text: str | Sequence[SourceText],
    *,
    file: str,
    scripted_at: datetime,
    database: str | None = None,
    instance: str | None = None,
    variables: Mapping[str, str] | None = None,
    include: Include | None = None,
    servers: Collection[str | None] | None = None,
) -> ReadScript:
    """Read a script of one or several texts into batches of statements on routing.

    ``file`` is its name in messages. Lifetimes count from ``scripted_at``, which must be aware. ``database`` is in
    use until the first USE. Batches after ``:connect`` to a server other than ``instance`` are skipped. With
    ``servers``, only their batches are read and the others are not reported. None means the batches before any
    ``:connect``. ``variables`` are the values of ``-v``. Without ``include``, files of ``:r`` are reported. A
    template's parameter is read with its default and reported. Raises ValueError for a naive ``scripted_at``.
    """
    if scripted_at.tzinfo is None:
        raise ValueError("scripted_at needs a time zone")
    since = scripted_at.astimezone(timezone.utc)
    parts: list[ScriptBatch | StatementProblem] = []
    named: list[str] = []
    connection = open_blocks = 0
    settings = ParserSettings(since)
    sources = [SourceText(text, file)] if isinstance(text, str) else text
    contents, included_files = [source.text for source in sources], list[str]()

    def include_and_keep(including: str, written: str) -> tuple[str, str]:
        assert include is not None
        place, included = include(including, written)
        contents.append(included)
        included_files.append(place)
        return place, included

    def take(part: SqlBatch | StatementProblem) -> None:
        nonlocal connection, open_blocks, settings
        if isinstance(part, StatementProblem):
            parts.append(part)
            return
        if part.connection != connection:
            connection = part.connection
            named.extend([] if part.server is None else [as_written(part.server)])
        is_foreign = servers is not None and part.server not in servers
        read = partial(_parse, part, settings)
        parsed = keep_batch(read(), read)
        if is_foreign:
            # Statements on other instances do not matter here, but an error may end the script.
            parsed = replace(parsed, statements=0)
        if parsed.statements > 0 and not settings.is_script:
            settings = replace(settings, is_script=True)
        why_not = _IN_BLOCK if open_blocks else None
        if why_not is None and servers is None:
            server = None if instance is not None and is_same_server(part.server or "", instance) else part.server
            why_not = None if server is None else f"it runs on the server {quote(as_written(server))} of :connect"
        open_blocks = max(0, open_blocks + count_open_blocks(as_written(part.text)))
        parts.append(ScriptBatch(parsed, part.connection, part.exits, why_not, is_foreign, part.changeset))

    read_any_batches(sources, variables or {}, include and include_and_keep, take)
    return _with_statements(
        ReadScript(
            file,
            since,
            statement_count=sum(part.parsed.statements for part in parts if isinstance(part, ScriptBatch)),
            servers=tuple(dict.fromkeys(named)),
            content_digest=_digest_content(contents, database, variables or {}),
            first_database=database,
            instance=instance,
            parts=tuple(parts),
            included=tuple(included_files),
        )
    )


def _digest_content(contents: Sequence[str], database: str | None, variables: Mapping[str, str]) -> str:
    """Return the SHA-256 of everything that decides a script's statements, apart from its time and instance."""
    values = sorted({name.casefold(): value for name, value in variables.items()}.items())
    return sha256(repr((contents, database, values)).encode("utf-8", "surrogatepass")).hexdigest()


def read_file(
    path: FilePlace,
    *,
    scripted_at: datetime | None = None,
    database: str | None = None,
    instance: str | None = None,
    variables: Mapping[str, str] | None = None,
    servers: Collection[str | None] | None = None,
    delimiter: str = "",
) -> ReadScript:
    """Read a script file in any encoding, or a database project. The default time is the file's own.

    Files of ``:r`` are searched beside the file that names them. A project's own database takes precedence over
    ``database``, and ``variables`` over its values. ``delimiter`` ends statements, as a changelog of Liquibase
    says. Raises OSError, and ValueError if the file is not text.
    """
    guesses: list[str] = []
    opened = _open(path, guesses)
    if scripted_at is None:
        scripted_at = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
    script = read_script(
        [as_changeset(source, delimiter) for source in opened.sources],
        file=str(path),
        scripted_at=scripted_at,
        database=opened.database or database,
        instance=instance,
        variables=_with_defaults(variables, opened.variables),
        include=_includes_of(path, guesses),
        servers=servers,
    )
    problems = script.problems
    if opened.undo_line is not None:
        why = "the part below undoes the script, and is skipped"
        problems = (*problems, StatementProblem(str(path), opened.undo_line, why, counted=True))
    if opened.unreadable:
        why = f"{opened.unreadable} of its characters cannot be read in {opened.encoding}"
        problems = (StatementProblem(str(path), 1, why, counted=True), *problems)
    return replace(script, problems=problems, guesses=tuple(dict.fromkeys(guesses)))


@dataclass(frozen=True)
class _OpenedScript:
    """The texts of a file. A project also has a database and default values of variables."""

    sources: Sequence[SourceText]
    encoding: str = "UTF-8"
    unreadable: int = 0
    variables: Mapping[str, str] = field(default_factory=dict)
    database: str | None = None
    undo_line: int | None = None


def _open(path: FilePlace, guesses: list[str]) -> _OpenedScript:
    if path.suffix.lower() == PROJECT:
        project = read_project(path)
        guesses += project.guesses
        return _OpenedScript(project.sources, variables=project.variables, database=project.database)
    decoded = _decode_names(path, guesses)
    text, undo_line = without_undo(decoded.text)
    return _OpenedScript([SourceText(text, str(path))], decoded.encoding, decoded.unreadable, undo_line=undo_line)


def _with_defaults(values: Mapping[str, str] | None, defaults: Mapping[str, str]) -> dict[str, str]:
    named = {name.casefold() for name in values or {}}
    return {**{name: value for name, value in defaults.items() if name.casefold() not in named}, **(values or {})}


@dataclass(frozen=True)
class ScriptOutline:
    """A script's servers in the order of batches (None before any ``:connect``), files of ``:r``, and its text."""

    servers: tuple[str | None, ...]
    included: tuple[str, ...]
    text: str


def outline_of(path: FilePlace, variables: Mapping[str, str] | None = None) -> ScriptOutline:
    """Return the servers and files that a script names. Raises as `read_file`."""
    opened, included = _open(path, []), list[str]()
    include = _includes_of(path, [])

    def include_and_note(including: str, written: str) -> tuple[str, str]:
        file, text = include(including, written)
        included.append(file)
        return file, text

    servers = find_servers(opened.sources, _with_defaults(variables, opened.variables), include_and_note)
    return ScriptOutline(servers, tuple(included), opened.sources[0].text if opened.sources else "")


def find_servers(
    sources: Sequence[SourceText], variables: Mapping[str, str], include: Include | None
) -> tuple[str | None, ...]:
    """Return the servers that the batches of a script run on, None for its own."""
    servers: dict[str | None, None] = {}

    def take(part: SqlBatch | StatementProblem) -> None:
        if isinstance(part, SqlBatch):
            servers[part.server] = None

    read_any_batches(sources, variables, include, take)
    return tuple(servers)


def read_comments(path: FilePlace) -> ScriptComments:
    """Read the statements in a script's comments. Raises the errors of `read_file`."""
    return find_comments(_decode(path).text)


def _includes_of(path: FilePlace, guesses: list[str]) -> Include:
    """Return the reader of the files of ``:r``: beside the file that names them, else beside the first of all."""
    places = {str(path): path}

    def include(including: str, written: str) -> tuple[str, str]:
        name = written.replace("\\", "/")
        candidates = [places[including].parent / name, path.parent / name]
        included_path = next((place for place in candidates if place.exists()), None)
        if included_path is None:
            included_path = _find_in_any_case(places[including].parent, name) or candidates[0]
        if included_path.exists() and not included_path.is_file():
            raise ValueError("it is not an ordinary file")
        places[str(included_path)] = included_path
        return str(included_path), _decode_names(included_path, guesses).text

    return include


def _find_in_any_case(folder: FilePlace, name: str) -> FilePlace | None:
    """Return the file of a path in any case, as Windows allows."""
    place = folder
    for part in name.split("/"):
        if part in ("", ".", "..") or not place.is_dir():
            place = place / part if part in (".", "..") else place
            continue
        same = [entry for entry in place.iterdir() if entry.name.casefold() == part.casefold()]
        if len(same) != 1:
            return None
        place = same[0]
    return place


def _decode(path: FilePlace) -> DecodedScript:
    data = path.read_bytes()
    decoded = decode(data)
    other_format = find_other_format(path.name, data, decoded.text)
    if other_format is not None:
        raise ValueError(other_format)
    if not decoded.is_text:
        raise ValueError("it is not text")
    if decoded.encoding.startswith("UTF-16") and speaks_of_routing(data.decode("latin-1")):
        raise ValueError("it has parts that are not in UTF-16: save it as UTF-8")
    return decoded


def _decode_names(path: FilePlace, guesses: list[str]) -> DecodedScript:
    """Decode a script for its statements: a guess is noted, and counts in no name that it makes implausible."""
    decoded = _decode(path)
    if decoded.encoding != GUESS:
        return decoded
    guesses.append(say_guess(str(path), decoded.text))
    return replace(decoded, text=without_implausible(decoded.text))


def _parse(batch: SqlBatch, settings: ParserSettings) -> ParsedBatch:
    return parse_batch(tokenize(batch.text, find_data_runs(batch.text)), batch.places.__getitem__, settings)
