"""Define the errors of a run under one root. Each kind has a hint and an exit code.

Messages are one sentence. Lists are cut, and values are quoted and shortened.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import PurePath

from routing.storage_faults import find_lasting_fault, hint_of, join_tree, name_lasting_fault

EXIT_DONE = 0
EXIT_FOUND = 1
EXIT_CONTRACT = 2
EXIT_FAILED = 3

_SHOWN_FAULTS = 20
_SHOWN_CHARACTERS = 200


def show_text(text: str) -> str:
    """Return a text in quotes, with unprintable characters escaped and backslashes unchanged."""
    return repr(text).replace("\\\\", "\\")


def quote(value: object) -> str:
    """Return a value as error texts show it: printable, in quotes, at most 200 characters."""
    text = str(value)
    if len(text) > _SHOWN_CHARACTERS:
        text = text[:_SHOWN_CHARACTERS] + "…"
    return show_text(text)


def describe_value(value: object) -> str:
    """Return a value in quotes after its class. Values that may be large are shown by their class only."""
    if value is None or isinstance(value, bool):
        return str(value)
    kind = type(value).__name__
    is_plain = isinstance(value, (str, int, float, date, PurePath))
    return f"{kind} {quote(value)}" if is_plain else f"a {kind}"


class RoutingError(Exception):
    """Report a failure in one sentence. This is the root of all errors of the package.

    ``exit_code`` is the exit code of the command line (docs/reference/exit-codes.md).

    Args:
        message: the problem, in one sentence.
        hint: the advice.

    Example:
        >>> try:
        ...     routing.load_config("missing.yaml")
        ... except routing.RoutingError as error:
        ...     error.message, error.hint, error.exit_code
        ("the configuration 'missing.yaml' cannot be read: No such file or directory", 'check --config', 2)
    """

    _exit_code = EXIT_FAILED

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message if hint is None else f"{message} ({hint})")

    @property
    def exit_code(self) -> int:
        """The status with which the command line ends."""
        return self._exit_code

    def with_hint(self, hint: str) -> RoutingError:
        """Return the error with one more hint."""
        return type(self)(self.message, hint if self.hint is None else f"{self.hint}; {hint}")


class ContractError(RoutingError):
    """Report that an option, the configuration or an input is invalid. No table was changed.

    Args:
        message: the problem, in one sentence.
        hint: the advice.

    Example:
        >>> try:
        ...     routing.StoredMessage()
        ... except routing.ContractError as error:
        ...     error.message, error.exit_code
        ('no message is named', 2)
    """

    _exit_code = EXIT_CONTRACT


def unknown_key(key: str, known_keys: Iterable[str]) -> str:
    """Return the fault text of an unknown configuration key, with the nearest known one."""
    names = sorted(known_keys)
    nearest = difflib.get_close_matches(key, names, n=1, cutoff=0.5)
    if nearest:
        return f"unknown key {quote(key)}, did you mean {quote(nearest[0])}?"
    return f"unknown key {quote(key)}, known are {', '.join(names)}"


def name_nearest(text: str, names: Mapping[str, str]) -> str | None:
    """Return the value of the nearest key: the only one that begins with the text, or one spelt much like it."""
    begun = [key for key in names if text and key.startswith(text)]
    if len(begun) == 1:
        return names[begun[0]]
    near = difflib.get_close_matches(text[:_SHOWN_CHARACTERS], sorted(names), n=1)
    return names[near[0]] if near else None


def join_bounded(items: Sequence[str], noun: str, total: int | None = None) -> str:
    """Join items to ``2 faults: a; b``: at most 20 are shown, the rest are counted."""
    count = len(items) if total is None else total
    shown = "; ".join(items[:_SHOWN_FAULTS])
    rest = count - min(len(items), _SHOWN_FAULTS)
    plural = noun if count == 1 else f"{noun}s"
    return f"{count} {plural}: {shown}" + (f"; and {rest} more" if rest else "")


class InputError(ContractError):
    """An input table is missing, of the wrong shape, or holds faulty rows."""

    @classmethod
    def missing_table(cls, key: str, location: str) -> InputError:
        """Report that there is no Delta table at the location that a configuration key names."""
        return cls(
            f"tables.{key}: there is no Delta table at {quote(location)}",
            "correct the location or create the table",
        )

    @classmethod
    def lost_table(cls, key: str, location: str, run_id: str) -> InputError:
        """Report that an optional table is missing that the last counted run read."""
        return cls(
            f"tables.{key}: run {quote(run_id)} read this table, but it is missing at {quote(location)}",
            "correct the location or restore the table; without the key, messages may be decided differently",
        )

    @classmethod
    def missing_version(cls, key: str, location: str, version: int, newest: int) -> InputError:
        """Report that a table has no such version yet."""
        return cls(
            f"tables.{key}: {quote(location)} has no version {version}, its newest is {newest}",
            "name an older version",
        )

    @classmethod
    def unreadable_version(cls, key: str, version: int, why: str) -> InputError:
        """Report that a version of a table no longer exists, or never existed."""
        return cls(
            f"tables.{key}: version {version} cannot be read: {why}",
            "name a version with all its log and files",
        )

    def of_side(self, label: str) -> InputError:
        """Return the error with the side of a comparison that it is about."""
        return InputError(f"{label}: {self.message}", self.hint)

    @classmethod
    def not_append_only(cls, location: str, version: int, operation: str) -> InputError:
        """Report that a commit to the messages since the last run is neither an append nor a delete."""
        change = f"version {version} of {quote(location)} is neither an append nor a delete ({operation})"
        return cls.full_run_needed(f"{change}: it may have changed decided messages, or brought old ones back")

    @classmethod
    def full_run_needed(cls, why: str) -> InputError:
        """Report that an incremental run cannot continue from the last run that counts."""
        return cls(
            f"tables.messages: {why}",
            "run once with --set resolve.mode=full; the next incremental run continues from there",
        )

    @classmethod
    def new_rows_unknown(
        cls, location: str, why: Sequence[str], statement: str | None, *, is_first: bool = False
    ) -> InputError:
        """Report that the new rows are unknown. ``statement`` turns the feed on, and is None if it is on."""
        problem = f"cannot determine which rows of {quote(location)} are new: {'; '.join(why)}"
        if statement is None:
            return cls.full_run_needed(problem)
        again = (
            "" if is_first else ", and run once with --set resolve.mode=full; the next incremental run continues"
        )
        return cls(f"tables.messages: {problem}", f"{statement}{again}")

    @classmethod
    def without_versions(cls, location: str) -> InputError:
        """Report that an incremental run cannot read messages without versions."""
        return cls(
            f"tables.messages: {quote(location)} cannot be read at a version (it is a view, has row filters or"
            " masks, or is not a Delta table), so new messages cannot be determined",
            "name a Delta table, or run with --set resolve.mode=full",
        )

    @classmethod
    def nothing_recorded(cls, location: str) -> InputError:
        """Report that no run counts yet, so the outputs cannot be read."""
        return cls(f"no run is recorded in {quote(location)}", "run sbroute resolve first")

    @classmethod
    def wrong_columns(cls, key: str, faults: Sequence[str]) -> InputError:
        """Report that columns are missing or have a type that is not accepted."""
        return cls(f"table {key} has {join_bounded(faults, 'column fault')}", "docs/reference/tables.md has them")

    @classmethod
    def without_value(cls, key: str, column: str, rows: int) -> InputError:
        """Report that rows of a table that import keeps have no value in a key column."""
        return cls(f"table {key} has {rows:,} rows without {column}", "remove them, or import them again")

    @classmethod
    def faulty_rows(cls, faults: Sequence[str], total: int) -> InputError:
        """Report that configuration rows break their contract, so every decision would be doubtful."""
        return cls(
            f"the input tables have {join_bounded(faults, 'faulty row', total)}",
            "correct these rows; nothing was written",
        )


class RecordedAlready(InputError):
    """Report that a run with this id counts already, so it was not repeated."""

    @classmethod
    def by_id(cls, run_id: str, location: str) -> RecordedAlready:
        """Report that ``runs`` already has the id."""
        return cls(f"run {quote(run_id)} is already recorded in {quote(location)}", "give the next run a new id")


class RunError(ContractError):
    """The id of a run is invalid, not recorded, ambiguous, or recorded with other settings."""

    @classmethod
    def unknown(cls, run_id: str, location: str, nearest: Sequence[str]) -> RunError:
        """Report that no run has this id or begins with it."""
        nearest_ids = [quote(other) for other in nearest]
        hint = f"the nearest are {', '.join(nearest_ids)}" if nearest_ids else "no run is recorded there"
        return cls(f"no run {quote(run_id)} is recorded in {quote(location)}", hint)

    @classmethod
    def ambiguous(cls, prefix: str, run_ids: Sequence[str], total: int) -> RunError:
        """Report that the ids of several runs begin with this text."""
        runs = join_bounded([quote(run) for run in run_ids], "run", total)
        return cls(f"{quote(prefix)} is the beginning of {runs}", "write more of the id")

    @classmethod
    def unfit_id(cls, run_id: str, longest: int) -> RunError:
        """Report that the id for a run is empty, too long, or cannot be printed on one line."""
        return cls(
            f"{quote(run_id)} cannot be the id of a run: it has 1 to {longest} printable characters, and no blank"
            " at its ends",
            "the scheduler's id of the run is a good choice",
        )

    @classmethod
    def of_other_settings(cls, run_id: str, location: str, different: str) -> RunError:
        """Report that a run with this id already counts, and had other settings."""
        return cls(
            f"run {quote(run_id)} is already recorded in {quote(location)} with another configuration:"
            f" {different}",
            "use a new run id; a retry needs the configuration of the first try",
        )


class OutputError(ContractError):
    """An output cannot be written, or its location does not hold the expected table."""

    @classmethod
    def other_schema(cls, setting: str, location: str, faults: Sequence[str]) -> OutputError:
        """Report that the table at this location has another schema."""
        return cls(
            f"{setting}: {quote(location)} is a table with another schema, {join_bounded(faults, 'difference')}",
            "name another location",
        )

    @classmethod
    def out_is_taken(cls, location: str, why: str) -> OutputError:
        """Report that ``--out`` names a table of a configuration."""
        return cls(f"--out: {quote(location)} {why}", "name another location; nothing was written")

    @classmethod
    def newer_release(cls, location: str, newer: str, own_release: str) -> OutputError:
        """Report that a newer release wrote to the table, so its columns may have another meaning."""
        return cls(
            f"output.runs: {quote(location)} was written by release {quote(newer)}, this is {own_release}",
            "install that release or a newer one, or name other outputs",
        )

    @classmethod
    def without_versions(cls, location: str) -> OutputError:
        """Report that a view, or a table without versions, is in the place of a Delta table."""
        return cls(f"{quote(location)} is a view or not a Delta table", "name another location")

    @classmethod
    def no_runs(cls, location: str) -> OutputError:
        """Report that there is no table of runs yet."""
        return cls(f"output.runs: there is no Delta table at {quote(location)}", "sbroute resolve creates it")

    @classmethod
    def left_nothing(cls, key: str, location: str, run_id: str) -> OutputError:
        """Report that the result of the last counted run is missing: removed, restored or moved."""
        return cls(
            f"output.{key}: the rows of run {quote(run_id)} are not at {quote(location)}",
            "correct the location, or run sbroute resolve once with --set resolve.mode=full",
        )

    @classmethod
    def not_a_table(cls, setting: str, location: str) -> OutputError:
        """Report that the files at a location are not a Delta table."""
        return cls(
            f"{setting}: {quote(location)} is not empty and is not a Delta table",
            "name another location, or delete the folder if an interrupted command left it",
        )

    @classmethod
    def not_printable(cls, why: str) -> OutputError:
        """Report that standard output cannot be written."""
        return cls(f"standard output cannot be written: {why}", "tables that the command wrote are complete")

    @classmethod
    def no_page(cls, file: str, why: str) -> OutputError:
        """Report that the file of a page cannot be written."""
        hint = hint_of(why) or "name a file in an existing folder"
        return cls(f"{quote(file)} cannot be written: {why}", hint)

    @classmethod
    def folder_not_writable(cls, folder: str, why: str) -> OutputError:
        """Report that the folder of a command cannot be created or written."""
        return cls(f"{quote(folder)} cannot be written: {why}", hint_of(why) or "name another folder with --out")

    @classmethod
    def not_writable(cls, setting: str, location: str, why: str) -> OutputError:
        """Report that the location cannot be written to."""
        return cls(f"{setting}: {quote(location)} cannot be written: {why}", hint_of(why))

    @classmethod
    def full_run_needed(cls, key: str, location: str, why: str) -> OutputError:
        """Report that an incremental run cannot continue from the content of an output."""
        return cls(
            f"output.{key} at {quote(location)}: {why}",
            "DESCRIBE HISTORY shows the writer; run once with --set resolve.mode=full, which rewrites all outputs",
        )

    @classmethod
    def other_table(cls, key: str, location: str, run_id: str) -> OutputError:
        """Report that the table is not that of earlier runs: a wrong location, or a new table."""
        return cls(
            f"output.{key}: {quote(location)} is another table than the one that run {quote(run_id)} recorded",
            "correct the location, or move this table away and run once with --set resolve.mode=full",
        )

    @classmethod
    def other_job(cls, key: str, location: str, runs: str) -> OutputError:
        """Report that a run of another job, with another table ``runs``, wrote to this location."""
        return cls(
            f"output.{key}: {quote(location)} has rows of runs that are recorded in {quote(runs)}",
            "correct output.runs or this location; move the table away if that job no longer exists",
        )

    @classmethod
    def runs_changed(cls, location: str, version: int, operation: str, restorable: int | None) -> OutputError:
        """Report that another writer changed ``runs``. ``restorable`` is the version before, if known."""
        restore = "" if restorable is None else f"RESTORE it to version {restorable}, or "
        return cls(
            f"output.runs: version {version} of {quote(location)} was not written by a run ({operation}), and runs"
            " continue from its newest row",
            f"{restore}run once with --set resolve.mode=full, which rewrites all outputs",
        )

    @classmethod
    def runs_unknown(cls, location: str, run_id: str, oldest: int) -> OutputError:
        """Report that the log of ``runs`` no longer shows the writer of the newest row."""
        return cls(
            f"output.runs: cannot determine whether a run wrote the row of {quote(run_id)} in {quote(location)}:"
            f" its log has been cleaned up before version {oldest}, and the row does not fit the tables",
            "run once with --set resolve.mode=full, which rewrites all outputs",
        )

    @classmethod
    def unknown_content(cls, key: str, location: str, oldest: int) -> OutputError:
        """Report that the log of a table no longer shows the writer of its rows, and no run recorded it."""
        return cls(
            f"output.{key}: cannot determine the writer of the rows in {quote(location)}: its log"
            " has been cleaned up"
            f" before version {oldest}, and no run is recorded",
            f"move the table away if nobody needs it, or run sbroute resolve with --set output.{key}=LOCATION",
        )


class HistoryGap(RoutingError):
    """Commits of a table are unknown, because its log has been cleaned up."""

    @classmethod
    def cleaned(cls, location: str, version: int) -> HistoryGap:
        """Report that the log does not go back to the commit after this version."""
        return cls(
            f"the log of {quote(location)} has been cleaned up: changes after version {version} are unknown"
        )


class EnvironmentFault(ContractError):
    """Java or a Python package that the command needs is missing, or a name that it needs is taken."""

    @classmethod
    def no_package(cls, package: str, extra: str) -> EnvironmentFault:
        """Report that a package is missing, which ``extra`` of this package installs."""
        return cls(f"the Python package {package} is missing", f"in a clone: pip install '.[{extra}]'")

    @classmethod
    def udf_lacks(cls, package: str) -> EnvironmentFault:
        """Report that Python packages for the dialog-ID hash UDF are missing."""
        return cls(
            f"resolve.dialog_hash: udf needs the Python package {package}, which is missing",
            "in a clone: pip install '.[udf]'; or use dialog_hash: builtin",
        )

    @classmethod
    def no_workers(cls, why: str) -> EnvironmentFault:
        """Report that Spark runs no Python workers that have this package."""
        return cls(
            f"the Spark session has no Python workers with this package: {why}",
            "they need Python with pyarrow and pandas; for tables on this disk: --set resolve.engine=local",
        )

    @classmethod
    def function_taken(cls, name: str) -> EnvironmentFault:
        """Report that the session has another function of this name."""
        return cls(
            f"the session has another function {quote(name)}",
            f"DROP TEMPORARY FUNCTION {name} if nobody needs it, or write xxhash64(lower(conversation_id))",
        )

    def because(self, table: str, why: str, action: str = "read") -> EnvironmentFault:
        """Return the error with the reason why Spark is needed."""
        return type(self)(f"{table} is {action} by Spark ({why}), and {self.message}", self.hint)

    def for_spark(self, why: str) -> EnvironmentFault:
        """Return the error with the reason why the command needs Spark."""
        return type(self)(f"the command needs Spark ({why}), and {self.message}", self.hint)


class NoJavaFault(EnvironmentFault):
    """Spark is installed, but finds no Java that it can start."""

    @classmethod
    def no_java(cls, why: str, *, is_found: bool = False) -> NoJavaFault:
        """Report that Spark could not start, without Java or by the one that it found."""
        missing = "install Java 17 or 21, on Debian: apt-get install openjdk-17-jre-headless"
        failed = "check section spark of the configuration, and that Java is 17 or 21"
        return cls(f"Spark could not start: {why}", failed if is_found else missing)


class StorageError(RoutingError):
    """Report that a read or write failed. Earlier commits stay, and the run does not count.

    Args:
        message: the problem, in one sentence.
        hint: the advice.

    Example:
        >>> error = routing.StorageError("the disk is full", "run again once there is free space")
        >>> str(error), error.exit_code
        ('the disk is full (run again once there is free space)', 3)
    """

    @property
    def exit_code(self) -> int:
        """The status with which the command line ends: 2 for a fault that lasts."""
        return EXIT_FAILED if find_lasting_fault(self) is None else EXIT_CONTRACT

    @classmethod
    def failed(cls, doing: str, why: str) -> StorageError:
        """Report that Spark or the storage failed while the command was doing something."""
        return cls(f"the run failed while {doing}: {why}", hint_of(why) or "run again once the cause is gone")

    @classmethod
    def damaged_log(cls, location: str, version: int) -> StorageError:
        """Report that a line of a commit in Delta's log is not JSON."""
        return cls(
            f"the run failed while reading the log of {quote(location)}: a line of version {version} is not JSON",
            "restore the log from a backup, or recreate the table",
        )

    @classmethod
    def locked(cls, file: str, pid: str, run_id: str) -> StorageError:
        """Report that another process works on the same tables."""
        return cls(
            f"another run is at work on these tables: run {quote(run_id)}, process {quote(pid)},"
            f" holds {quote(file)}",
            "run again when it has ended",
        )

    @classmethod
    def locked_by_owner(cls, file: str, owner: str, age: str, command: str) -> StorageError:
        """Report that the owner of a lock file may be active. ``command`` removes the file."""
        return cls(
            f"another run is at work on these tables: {owner}, holds {quote(file)} for {age}",
            f"run again when it has ended; if that process is gone: {command}",
        )

    @classmethod
    def no_lock_file(cls, file: str) -> StorageError:
        """Report that the lock file is a link or not a regular file, so it is not written."""
        return cls(f"{quote(file)} is a link or not a regular file, so it is not used", "remove it and run again")

    @classmethod
    def overtaken(cls, key: str, location: str) -> StorageError:
        """Report that another run wrote to the same tables, so this run must not count."""
        return cls(
            f"another run wrote to output.{key} at {quote(location)} in between, so this run is not recorded",
            "run again; the changes of this run are rolled back",
        )

    @classmethod
    def imported_meanwhile(cls, key: str, location: str) -> StorageError:
        """Report that another import wrote to the same tables after this one had read them."""
        return cls(
            f"tables.{key} at {quote(location)} has changed since this import read it",
            "import again; the other change is kept",
        )

    @classmethod
    def not_restored(cls, key: str, location: str, version: int, why: str) -> StorageError:
        """Report that the commits of an unfinished run cannot be rolled back."""
        return cls(
            f"output.{key} at {quote(location)} does not match the last recorded run,"
            f" and version {version} cannot be restored: {why}",
            f"RESTORE it to version {version} once the cause is gone and run again, or run once with"
            " --set resolve.mode=full",
        )


def first_sentence(error: BaseException) -> str:
    """Return the first line of an error from Spark or Java, shortened.

    A fault of the disk takes precedence over the messages of libraries.
    """
    lines = (join_tree(str(error).strip()) or type(error).__name__).splitlines()
    line = lines[0].strip()
    if line.startswith("An error occurred while calling"):
        # py4j's own message does not help. The last cause has the reason.
        causes = [text for text in lines if text.startswith((": ", "Caused by: "))]
        line = causes[-1].removeprefix(": ").removeprefix("Caused by: ").strip() if causes else line
    line = name_lasting_fault(error, line) or line
    return line[: 2 * _SHOWN_CHARACTERS] + ("…" if len(line) > 2 * _SHOWN_CHARACTERS else "")
